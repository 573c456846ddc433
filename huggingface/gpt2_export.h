// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_HUGGINGFACE_GPT2_EXPORT_H_
#define TUG_HUGGINGFACE_GPT2_EXPORT_H_

#include <string>

#include "absl/status/statusor.h"
#include "checkpoint/checkpoint.h"

namespace tug {

// Summary of an export, for the user.
struct ExportedGpt2 {
  size_t tensors = 0;
  uint64_t size_bytes = 0;  // size of model.safetensors
  std::string tokenizer;    // tokenizer files written, or the reason for none
};

// Writes the weights of a checkpoint as a folder in Hugging Face's GPT-2 format: config.json,
// model.safetensors (FP32) and the tokenizer's files, if the format supports the tokenizer:
//   GPT2_BPE       vocab.json, merges.txt, tokenizer_config.json; added_tokens.json if it has any
//   BYTE           the same, with the 256 bytes as tokens and no merges
//   SENTENCEPIECE  tokenizer.model, for the SentencePiece library; tokenizer_config.json, which
//                  names the transformers class that reads it
// Writes into a new folder next to it (mkdtemp: `folder`.partial- and six characters), then syncs
// and moves the result. Only a kill leaves the partial folder. Memory is bounded. Errors:
// FAILED_PRECONDITION for a model that the format cannot represent (CheckHfCanHold), for a `folder`
// that is not empty, and for weights that are not finite; file errors, naming the file.
absl::StatusOr<ExportedGpt2> ExportGpt2(const CheckpointReader& checkpoint,
                                        const std::string& folder);

}  // namespace tug

#endif  // TUG_HUGGINGFACE_GPT2_EXPORT_H_
