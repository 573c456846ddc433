#ifndef TUG_HUGGINGFACE_GPT2_WEIGHTS_H_
#define TUG_HUGGINGFACE_GPT2_WEIGHTS_H_

#include <cstdint>
#include <map>
#include <span>
#include <string>

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
class Gpt2Weights {
 public:
  // Errors: those of ReadHfConfig; a missing or damaged model.safetensors.
  static absl::StatusOr<Gpt2Weights> Open(const std::string& folder);

  const ModelConfig& config() const { return config_; }

  // Whether every tensor of the blocks is there, with its shape; of wpe.weight the file may have
  // more rows, for a job with less context. Errors: FAILED_PRECONDITION, naming the tensor.
  absl::Status Check(const BlockTable& blocks) const;

  // Copies elements [begin, end) of a block. REQUIRES: Check has passed, out.size() == end - begin.
  void ReadRange(const BlockSpec& block, uint64_t begin, uint64_t end, std::span<float> out) const;

 private:
  Gpt2Weights(SafetensorsReader file, ModelConfig config);
  // Null if it is not there.
  const TensorView* Find(const std::string& tensor) const;

  SafetensorsReader file_;
  ModelConfig config_;
  std::map<std::string, size_t> index_;  // in file_.tensors(), by our name
};

}  // namespace tug

#endif  // TUG_HUGGINGFACE_GPT2_WEIGHTS_H_
