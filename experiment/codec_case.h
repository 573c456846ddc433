#ifndef TUG_EXPERIMENT_CODEC_CASE_H_
#define TUG_EXPERIMENT_CODEC_CASE_H_

#include <string>

#include "absl/status/statusor.h"
#include "proto/job.pb.h"

namespace tug {

// What is pushed and what is pulled, as an experiment names it.
struct CodecCase {
  std::string name;       // "fp32", "top_k:0.01-ef/int8"
  std::string push_text;  // a PushCodecConfig as text, of what was named; empty: FP32
  CommConfig::Format pull = CommConfig::FP32;
  double pull_density = 0;  // of CHANGES; 0: as the job has it by default

  // Whether nothing is compressed.
  bool is_fp32() const { return push_text.empty() && pull == CommConfig::FP32; }
  friend bool operator==(const CodecCase&, const CodecCase&) = default;
};

// CODEC[:NUMBER][+ef|-ef][/PULL[:NUMBER]]. CODEC: fp32 or a codec of PushCodecConfig; NUMBER: the
// field of its message (density of top_k, levels of qsgd, rank of power_sgd); +ef, -ef: with and
// without error feedback, as the codec has it by default otherwise; PULL: a CommConfig.Format
// (auto: PULL_AUTO), FP32 if it is not named, with NUMBER the density of CHANGES. Errors:
// INVALID_ARGUMENT, naming what is known. Pure.
absl::StatusOr<CodecCase> ParseCodecCase(const std::string& text);

}  // namespace tug

#endif  // TUG_EXPERIMENT_CODEC_CASE_H_
