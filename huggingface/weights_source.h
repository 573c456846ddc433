// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_HUGGINGFACE_WEIGHTS_SOURCE_H_
#define TUG_HUGGINGFACE_WEIGHTS_SOURCE_H_

#include <cstdint>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "checkpoint/checkpoint.h"
#include "huggingface/gpt2_weights.h"
#include "proto/blocks.pb.h"
#include "proto/job.pb.h"

namespace tug {

// Source of a new job's weights (train.init_from): a folder of Hugging Face's GPT-2, or a tug
// checkpoint. Const methods are thread-safe. Movable.
class WeightsSource {
 public:
  // `path`: a folder with a config.json, or a path for FindCheckpoint. Errors: those of
  // Gpt2Weights, FindCheckpoint and CheckpointReader; FAILED_PRECONDITION for a checkpoint of a
  // replay or of an external model.
  static absl::StatusOr<WeightsSource> Open(const std::string& path);

  // Folder with the weights; for a run, that of its newest checkpoint at the time of Open.
  const std::string& path() const { return path_; }

  // "path=value" for each field of the model's shape that a job leaves unset and whose default is
  // not the value here; also for the tokenizer, if the job has text and names none. `given`: the
  // job without defaults.
  std::vector<std::string> ShapeOverrides(const JobConfig& given) const;

  // Copies the resolved tokenizer of a checkpoint to `data`, so that tokens keep their meaning.
  // Call before the job's text is read. Errors: FAILED_PRECONDITION for another kind of tokenizer,
  // with the --set flags that match it. No effect for a Hugging Face folder, or if either job has
  // random data.
  absl::Status TakeTokenizer(DataConfig& data) const;

  // Checks that the weights fit the job's model, whose layout is `blocks`. Errors:
  // FAILED_PRECONDITION with the --set flags that change the job's model to this one, or with the
  // first label that differs.
  absl::Status Check(const JobConfig& job, const BlockTable& blocks) const;

  // Reads every weight. Errors: those of ReadRange. REQUIRES: Check has passed.
  absl::Status CheckValues(const BlockTable& blocks) const;

  // User-facing text: where the weights come from, and tensors that the model does not use.
  std::string Notice(const BlockTable& blocks) const;

  // Copies elements [begin, end) of a block. Errors: those of CheckpointReader::ReadRange and of
  // CheckFinite. REQUIRES: Check has passed, out.size() == end - begin.
  absl::Status ReadRange(const BlockSpec& block, uint64_t begin, uint64_t end,
                         std::span<float> out) const;

 private:
  using Source = std::variant<Gpt2Weights, CheckpointReader>;
  WeightsSource(std::string path, Source source)
      : path_(std::move(path)), source_(std::move(source)) {}

  std::string path_;
  Source source_;
};

}  // namespace tug

#endif  // TUG_HUGGINGFACE_WEIGHTS_SOURCE_H_
