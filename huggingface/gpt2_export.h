#ifndef TUG_HUGGINGFACE_GPT2_EXPORT_H_
#define TUG_HUGGINGFACE_GPT2_EXPORT_H_

#include <string>

#include "absl/status/statusor.h"
#include "checkpoint/checkpoint.h"

namespace tug {

// What was written, for a person.
struct ExportedGpt2 {
  size_t tensors = 0;
  uint64_t size_bytes = 0;  // of model.safetensors
  std::string tokenizer;    // which files of the tokenizer there are, or why there are none
};

// Writes the weights of a checkpoint as a folder of Hugging Face's GPT-2: config.json,
// model.safetensors (FP32) and, where that format has them, the tokenizer's files:
//   GPT2_BPE       vocab.json, merges.txt, tokenizer_config.json; added_tokens.json if it has any
//   BYTE           the same, with the 256 bytes for tokens and no merges
//   SENTENCEPIECE  tokenizer.model, for the SentencePiece library; tokenizer_config.json, which
//                  names the class of transformers that reads it
// Everything goes to a new folder beside it, `folder`.partial-XXXXXX, first; that is synced and
// moved, and only a kill leaves it there. Memory is bounded. Errors: FAILED_PRECONDITION for a
// model that the format cannot hold (CheckHfCanHold), for a `folder` with anything in it, and for
// weights that are not finite; those of files, naming them.
absl::StatusOr<ExportedGpt2> ExportGpt2(const CheckpointReader& checkpoint,
                                        const std::string& folder);

}  // namespace tug

#endif  // TUG_HUGGINGFACE_GPT2_EXPORT_H_
