// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_HUGGINGFACE_GPT2_WEIGHTS_H_
#define TUG_HUGGINGFACE_GPT2_WEIGHTS_H_

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "checkpoint/safetensors.h"
#include "proto/blocks.pb.h"
#include "proto/job.pb.h"

namespace tug {

// Hugging Face's name of a parameter of model/layout.h: "transformer." + name, as in GPT-2;
// "lm_head.weight" is unchanged.
std::string HfName(const std::string& tensor);

// A folder of Hugging Face's GPT-2, mapped into memory. Accepts names with and without
// "transformer.", and tensors of type F32, F16 or BF16 (the latter two are widened). Layouts equal
// model/layout.h: linear layers are [in, out]. Const methods are thread-safe. Movable.
//
// Head. If config.json ties the head, or does not specify it, the tensors decide: an lm_head.weight
// that differs from wte.weight is a separate head, as in transformers from version 5 on; without
// wte.weight (safetensors.torch.save_model drops either of the two), lm_head.weight is also the
// embedding.
class Gpt2Weights {
 public:
  // Errors: those of ReadHfConfig; a missing or damaged model.safetensors; FAILED_PRECONDITION if
  // it has a tensor under both names.
  static absl::StatusOr<Gpt2Weights> Open(const std::string& folder);

  const ModelConfig& config() const { return config_; }
  // Whether the file has a separate head that config.json does not specify.
  bool has_unexpected_head() const { return has_unexpected_head_; }

  // Checks that every tensor of the blocks exists, with its shape and a readable type; wpe.weight
  // may have more rows, for a job with less context. Errors: FAILED_PRECONDITION, naming the
  // tensor.
  absl::Status Check(const BlockTable& blocks) const;

  // Tensors of the file, with their types, that are not parameters of these blocks. Omits redundant
  // ones: attention masks, and a head that equals the embedding.
  std::vector<std::string> Unused(const BlockTable& blocks) const;

  // Copies elements [begin, end) of a block. REQUIRES: Check has passed, out.size() == end - begin.
  void ReadRange(const BlockSpec& block, uint64_t begin, uint64_t end, std::span<float> out) const;

 private:
  Gpt2Weights(SafetensorsReader file, ModelConfig config);
  absl::Status IndexTensors();
  void ResolveHead();
  // Null if missing.
  const TensorView* Find(const std::string& tensor) const;

  SafetensorsReader file_;
  ModelConfig config_;
  std::map<std::string, size_t> index_;  // index in file_.tensors(), by name without "transformer."
  bool has_unexpected_head_ = false;
};

}  // namespace tug

#endif  // TUG_HUGGINGFACE_GPT2_WEIGHTS_H_
