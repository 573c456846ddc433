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

// Hugging Face's name of a parameter of model/layout.h: "transformer." and ours, which are GPT-2's;
// "lm_head.weight" as it is.
std::string HfName(const std::string& tensor);

// A folder of Hugging Face's GPT-2, mapped into memory. Names with and without "transformer.";
// tensors of type F32, F16 or BF16, the latter widened. Layouts are ours: linear layers [in, out].
// Const methods are thread-safe. Movable.
//
// The head. A config.json that ties it, or leaves that open, is believed only as far as the file
// goes: lm_head.weight with other values than wte.weight is a head of its own, as in transformers
// from version 5 on; where there is no wte.weight (safetensors.torch.save_model drops either of
// the two) lm_head.weight is the embedding too.
class Gpt2Weights {
 public:
  // Errors: those of ReadHfConfig; a missing or damaged model.safetensors; FAILED_PRECONDITION if
  // it has a tensor under both names.
  static absl::StatusOr<Gpt2Weights> Open(const std::string& folder);

  const ModelConfig& config() const { return config_; }
  // The head is one of its own although config.json does not say so.
  bool has_unexpected_head() const { return has_unexpected_head_; }

  // Whether every tensor of the blocks is there, with its shape; of wpe.weight the file may have
  // more rows, for a job with less context. Errors: FAILED_PRECONDITION, naming the tensor.
  absl::Status Check(const BlockTable& blocks) const;

  // Tensors of the file that are no parameters of these blocks, with their types; without those of
  // which nothing is lost: attention masks, and a head that equals the embedding.
  std::vector<std::string> Unused(const BlockTable& blocks) const;

  // Copies elements [begin, end) of a block. REQUIRES: Check has passed, out.size() == end - begin.
  void ReadRange(const BlockSpec& block, uint64_t begin, uint64_t end, std::span<float> out) const;

 private:
  Gpt2Weights(SafetensorsReader file, ModelConfig config);
  absl::Status IndexTensors();
  void ResolveHead();
  // Null if it is not there.
  const TensorView* Find(const std::string& tensor) const;

  SafetensorsReader file_;
  ModelConfig config_;
  std::map<std::string, size_t> index_;  // in file_.tensors(), by our name
  bool has_unexpected_head_ = false;
};

}  // namespace tug

#endif  // TUG_HUGGINGFACE_GPT2_WEIGHTS_H_
