#ifndef TUG_EXPERIMENT_COMPRESSION_RESULTS_H_
#define TUG_EXPERIMENT_COMPRESSION_RESULTS_H_

// What `tug experiment compression` found out, apart from how it is drawn (compression_report.h).
// Functions are pure and thread-safe.
//
// Two questions are apart: whether steps become shorter, on each link (`links`), and whether as
// much is learned in them (`learning`). A codec pays on a link if its steps are shorter than FP32's
// by kLeastGain; it learns as well if its final validation loss is at most `loss_margin` above
// FP32's.

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "experiment/codec_case.h"
#include "experiment/run_figures.h"
#include "nlohmann/json.hpp"

namespace tug {

// Steps that are shorter by less than this part are as long, for all that was measured.
inline constexpr double kLeastGain = 0.05;

// A training, to its end.
struct LearningRun {
  CodecCase codec;
  double learning_rate = 0;
  uint64_t whole_steps = 0;  // at its beginning, pushed as FP32
  RunFigures figures;

  // Payloads of all workers in the whole of it, with what a codec's warm-up pushed as FP32.
  double PushedBytes() const;
  double PulledBytes() const;
  double Seconds() const;  // to the end of its last step
};

// Some steps of the same job behind a link.
struct LinkRun {
  CodecCase codec;
  std::string link;  // "none", "100mbit"
  uint32_t servers = 1;
  uint64_t warm_up = 0;  // steps that are not measured
  RunFigures figures;

  // Medians over the measured steps: of how long one takes, and of a worker's waiting for weights
  // in it, which is the communication that computing does not hide. NaN: nothing was measured.
  double StepSeconds() const;
  double WaitSeconds() const;
  // Payloads of all workers, the mean over all steps: what is confirmed after the end of its step
  // is counted in the next one, so the mean is off by a step's bytes at most in all of them.
  double PushedBytes() const;
  double PulledBytes() const;
  // Of all, per step of the job, headers included; what asks for pulls and confirms pushes, and the
  // first and last weights, are among them. None: nothing went through sockets.
  std::optional<double> WorkerSocketBytes() const;
  std::optional<double> ServerSocketBytes() const;
  // Of a worker, and of a server with all its lanes, per step of the job. None: not measured.
  std::optional<double> EncodeSeconds() const;
  std::optional<double> DecodeSeconds() const;
};

struct Verdict {
  double step_seconds = 0;
  double fp32_seconds = 0;

  double SpeedUp() const { return fp32_seconds / step_seconds; }
  bool pays() const { return step_seconds <= fp32_seconds * (1 - kLeastGain); }
};

struct CompressionResults {
  std::string command;  // as it was called
  std::vector<std::pair<std::string, std::string>> settings;
  double loss_margin = 0;
  std::vector<CodecCase> codecs;        // in the order named
  std::vector<std::string> link_names;  // in the order named
  std::vector<LearningRun> learning;
  std::vector<LinkRun> links;

  // null: not run.
  const LinkRun* Find(const CodecCase& codec, const std::string& link) const;
  const LinkRun* FindFp32(const std::string& link) const;
  // Where a codec ran with several learning rates, the run that ended with the least loss.
  const LearningRun* Best(const CodecCase& codec) const;
  const LearningRun* BestFp32() const;

  // None: of FP32 itself, or one of the two was not measured.
  std::optional<Verdict> VerdictOf(const LinkRun& run) const;
  // Final validation loss over FP32's; NaN or infinite where the loss is. None: as above.
  std::optional<double> LossOverFp32(const CodecCase& codec) const;
  std::optional<bool> LearnsAsWell(const CodecCase& codec) const;
};

// Tables: cells as text; the first line has the headings.
// A codec a line, a link a column: whether it pays, and whether it learns as well.
std::vector<std::vector<std::string>> VerdictTable(const CompressionResults& results);
// A line for each link and codec that was run.
std::vector<std::vector<std::string>> LinkTable(const CompressionResults& results);
// A line for each training.
std::vector<std::vector<std::string>> LearningTable(const CompressionResults& results);

// The verdicts, a sentence for each codec and link, with the figures that they rest on.
std::vector<std::string> Findings(const CompressionResults& results);
// Findings and tables, as Markdown.
std::string ResultsMarkdown(const CompressionResults& results);
// All figures, also of each step.
nlohmann::ordered_json ResultsJson(const CompressionResults& results);

}  // namespace tug

#endif  // TUG_EXPERIMENT_COMPRESSION_RESULTS_H_
