#ifndef TUG_HUGGINGFACE_WEIGHTS_SOURCE_H_
#define TUG_HUGGINGFACE_WEIGHTS_SOURCE_H_

#include <cstdint>
#include <span>
#include <string>
#include <variant>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "checkpoint/checkpoint.h"
#include "huggingface/gpt2_weights.h"
#include "proto/blocks.pb.h"
#include "proto/job.pb.h"

namespace tug {

// Where a new job's weights come from (train.init_from): a folder of Hugging Face's GPT-2, or a
// checkpoint of ours. Const methods are thread-safe. Movable.
class WeightsSource {
 public:
  // `path`: a folder with a config.json, or what FindCheckpoint takes. Errors: those of Gpt2Weights
  // and of FindCheckpoint and CheckpointReader; FAILED_PRECONDITION for a checkpoint of a program
  // with a model of its own.
  static absl::StatusOr<WeightsSource> Open(const std::string& path);

  // The folder that holds the weights: of a run, that of its newest checkpoint when it was opened.
  const std::string& path() const { return path_; }

  // Before a job's text is read: gives `data` what the tokenizer of a checkpoint knows, so that
  // tokens mean what they did there. Errors: FAILED_PRECONDITION for another kind of tokenizer,
  // with the --set flags that make it the same. A Hugging Face folder, or one side without text:
  // nothing is done.
  absl::Status TakeTokenizer(DataConfig& data) const;

  // Whether it holds the weights of the job's model, whose layout is `blocks`. Errors:
  // FAILED_PRECONDITION with the --set flags that make the job's model the one it holds, or with
  // the first label that is another one.
  absl::Status Check(const JobConfig& job, const BlockTable& blocks) const;

  // Reads every weight. Errors: those of ReadRange. REQUIRES: Check has passed.
  absl::Status CheckValues(const BlockTable& blocks) const;

  // What of it the model leaves out, for people; mostly empty.
  std::string Notice(const BlockTable& blocks) const;

  // Copies elements [begin, end) of a block. Errors: those of CheckpointReader::ReadRange and of
  // CheckFinite.
  // REQUIRES: Check has passed, out.size() == end - begin.
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
