// SPDX-License-Identifier: Apache-2.0
#include "coordinator/observe/run_reporter.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/files/replace_file.h"
#include "base/status_macros.h"
#include "checkpoint/best_checkpoint.h"
#include "coordinator/membership/next_lines.h"
#include "coordinator/observe/run_folder.h"
#include "coordinator/observe/sync_figures.h"
#include "coordinator/observe/watch_text.h"
#include "coordinator/trace/blame.h"
#include "coordinator/trace/trace_file.h"

namespace tug {
std::string ShortPath(const std::string& path) {
  std::error_code error;
  const std::string relative = std::filesystem::proximate(path, error).string();
  return error || relative.empty() || relative.rfind("..", 0) == 0 ? path : relative;
}

std::string EvalText(const EvalMetrics& metrics, const ModelConfig& model) {
  const bool classes = model.family() == ModelConfig::ENCODER;
  std::string text = absl::StrFormat("validation loss %.4f", metrics.loss);
  if (!classes) absl::StrAppendFormat(&text, ", perplexity %.2f", std::exp(metrics.loss));
  absl::StrAppendFormat(&text, ", accuracy %.1f%% (%s %s)", 100 * metrics.accuracy,
                        WithThousands(metrics.targets), classes ? "samples" : "tokens");
  return text;
}

std::string BestText(double loss, uint64_t step, const TrainConfig& train) {
  std::string text = absl::StrFormat("best %.4f at step %d", loss, step);
  if (train.eval_samples() == 0) return text;
  return absl::StrCat(text, " (of ", train.eval_samples(),
                      " samples; the last evaluation read the whole split)");
}

void RunReporter::OnStep(const StepMetrics& metrics, absl::Time now) {
  const bool told = metrics_.is_behind();
  exports_.Step(metrics, SinceBegin(now), now, told);
  metrics_.Step(metrics, SinceBegin(now));
  history_.OnStep(metrics, SinceBegin(now));
  workers_.Add(metrics);
  newest_step_ = metrics;
  seconds_ += metrics.mean_seconds;
  Count([&](JobTotals& totals) {
    ++totals.steps;
    totals.tokens += metrics.tokens;
    totals.pushed_bytes += metrics.pushed_bytes;
    totals.pulled_bytes += metrics.pulled_bytes;
  });
  if (!told) line_.Step(metrics, now);
}

void RunReporter::OnEval(const EvalMetrics& metrics, absl::Time now) {
  newest_eval_ = metrics;
  Count([&](JobTotals& totals) {
    ++totals.evaluations;
    totals.validation_loss = metrics.loss;
  });
  exports_.Eval(metrics, SinceBegin(now), now, metrics_.is_behind());
  history_.OnEval(metrics);
  Tell([&] { metrics_.Eval(metrics, SinceBegin(now)); },
       absl::StrFormat("evaluation of step %d: %s", metrics.version,
                       EvalText(metrics, config_.model())));
}

void RunReporter::OnCheckpoint(const CommitCheckpointAction& commit, const std::string& folder) {
  Count([&](JobTotals& totals) {
    ++totals.checkpoints;
    for (const ManifestFile& file : commit.manifest.files()) {
      totals.checkpoint_bytes += file.size_bytes();
    }
    totals.checkpoint_write_seconds += commit.write_seconds;
    totals.checkpoint_pause_seconds += commit.pause_seconds;
  });
  Tell(
      [&] {
        metrics_.Checkpoint(commit.manifest.version(), folder, commit.pause_seconds,
                            commit.write_seconds);
      },
      absl::StrFormat("checkpoint %s: written in %.2f s, training paused for at most %.0f ms",
                      std::filesystem::path(folder).filename().string(), commit.write_seconds,
                      std::ceil(commit.pause_seconds * 1e3)));
}

std::string EndReason(const StatusReply& status, uint64_t job_steps) {
  if (status.step() >= job_steps) return "done";
  return status.stopped_early() ? "stopped early" : "stopped";
}

std::string TraceText(const std::vector<StepFigures>& figures) {
  const StepFigures mean = MeanOf(figures);
  return absl::StrFormat("compute %.1f ms and exposed communication %.1f ms per step, overlap %.2f",
                         mean.compute_seconds * 1e3, mean.exposed_seconds * 1e3, mean.overlap());
}

void RunReporter::OnTrace(const JobTrace& trace) {
  uint64_t last = 0, dropped = 0;  // the last step with an event
  for (const TracedNode& node : trace.nodes) {
    for (const TracedTrack& track : node.tracks) {
      dropped += track.dropped;
      for (const TraceEvent& event : track.events) last = std::max(last, event.clock + 1);
    }
  }
  if (last <= trace.range.first) {
    line_.Say(absl::StrCat("no trace: the run ended before step ", trace.range.first + 1,
                           " (trace.first_step)"));
    return;
  }
  const std::string path = absl::StrCat(run_dir_, "/", kTraceFile);
  const std::vector<StepFigures> figures = FiguresOf(trace);
  const std::vector<StepPath> paths = CriticalPathsOf(trace);
  if (const absl::Status written = WriteTraceFile(path, trace, figures, paths); !written.ok()) {
    line_.Say(absl::StrCat("no trace: ", written.message()));
    return;
  }
  trace_text_ = absl::StrCat("trace: ", ShortPath(path), " (steps ", trace.range.first + 1, " to ",
                             last, ")");
  // External models record nothing.
  if (!figures.empty()) absl::StrAppend(&trace_text_, ": ", TraceText(figures));
  if (dropped > 0) {
    absl::StrAppend(&trace_text_, "; ", dropped,
                    " spans are missing: trace fewer steps (--trace-steps A..B)");
  }
  if (!trace.silent.empty()) {
    absl::StrAppend(&trace_text_, "; incomplete: spans are missing from ",
                    absl::StrJoin(trace.silent, ", "));
  }
  absl::StrAppend(&trace_text_, "; open it at ui.perfetto.dev");
  blame_lines_ = BlameLines(BlameOf(paths));
  Tell([&] { metrics_.CriticalPaths(paths); }, absl::StrCat("trace written: ", ShortPath(path)));
}

void RunReporter::RecallTrace(const TraceRange& range) {
  const std::string path = absl::StrCat(run_dir_, "/", kTraceFile);
  if (!std::filesystem::exists(path)) return;
  trace_text_ = absl::StrCat("trace: ", ShortPath(path), " (from step ", range.first + 1,
                             " on); open it at ui.perfetto.dev");
}

void RunReporter::OnTrial(const TrialMetrics& metrics) {
  tuning_text_ = absl::StrCat(
      "comm.scheduler AUTO: the job ended during tuning (trial ", metrics.trial.number, " of ",
      metrics.trials,
      "), so its steps ran with varying settings. Train longer, or set comm.tuner.trials lower");
  Tell([&] { metrics_.Trial(metrics); }, absl::StrCat("comm: ", TuningText(metrics)));
}

void RunReporter::OnSettled(const SettledMetrics& metrics) {
  tuning_text_ = absl::StrCat("comm: ", TuningText(metrics));
  Tell([&] { metrics_.Settled(metrics); }, tuning_text_);
}

void RunReporter::OnDrift(const DriftMetrics& metrics) {
  OnNotice(absl::StrCat("comm: ", TuningText(metrics)));
}

void RunReporter::OnNotice(const std::string& text) {
  Count([](JobTotals& totals) { ++totals.notices; });
  Tell([&] { metrics_.Notice(text); }, text);
}

void RunReporter::OnSettings(const SettingsChange& change) {
  metrics_.Settings(change);
  if (!change.changed.empty()) history_.OnSettings(change);
}

void RunReporter::OnTimeline(const TimelineBegun& timeline, absl::Time now) {
  Count([](JobTotals& totals) { ++totals.rollbacks; });
  exports_.BeginTimeline(timeline.number, timeline.version, now, metrics_.is_behind());
  metrics_.SetTimeline(timeline.number);
  OnNotice(absl::StrCat("the job continues from step ", timeline.version, " (timeline ",
                        timeline.number, ")"));
}

void RunReporter::OnStatus(const StatusReply& status) {
  history_.OnStatus(status, SinceBegin(RealTime().Now()));
  line_.set_steps(status.steps());
  exports_.SetSync(SyncFiguresOf(status));
  line_.Wait(WaitText(status), absl::Seconds(status.wait().seconds()), RealTime().Now());
}

absl::Status RunReporter::Flush() {
  RETURN_IF_ERROR(exports_.status());
  return metrics_.Flush();
}

void RunReporter::Finish(const StatusReply& status, uint64_t job_steps, absl::Duration time) {
  line_.Finish();
  const bool learned = newest_step_.has_value() && replay_.empty();
  const absl::Status drawn = learned ? DrawLossCurve() : absl::OkStatus();
  if (!drawn.ok()) line_.Say(std::string(drawn.message()));
  if (status.phase() != DONE) return;
  Summarise(status, job_steps, time);
  if (const absl::Status written = metrics_.Flush(); !written.ok()) {
    line_.Say(std::string(written.message()));
  }
}

std::string RunReporter::ResultText(uint64_t end) const {
  std::string text;
  const JobTotals told = totals();
  if (seconds_ > 0) {
    const double rate = static_cast<double>(told.tokens) / seconds_;
    absl::StrAppend(&text, ", ", WithThousands(static_cast<uint64_t>(rate)),
                    replay_.empty() ? " tokens/s" : " samples/s");
  }
  if (!newest_step_.has_value()) return text;
  if (!replay_.empty()) {
    absl::StrAppendFormat(&text, ", %.1f ms per step",
                          seconds_ / static_cast<double>(told.steps) * 1e3);
    return text;
  }
  if (newest_step_->step <= end) {
    absl::StrAppendFormat(&text, ", training loss %.4f", newest_step_->loss);
  }
  if (newest_eval_.has_value() && newest_eval_->version <= end) {
    absl::StrAppend(&text, ", ", EvalText(*newest_eval_, config_.model()));
  }
  return text;
}

void RunReporter::Summarise(const StatusReply& status, uint64_t job_steps, absl::Duration time) {
  const bool complete = status.step() >= job_steps;
  const std::string reason = EndReason(status, job_steps);
  metrics_.Workers(workers_);
  metrics_.Nodes(status);
  metrics_.End(status, config_.sync(), reason);
  line_.Say(absl::StrFormat("%s%s: %d of %d steps in %s%s", reason,
                            replay_.empty() ? "" : ", replay of " + replay_, status.step(),
                            job_steps, DurationText(absl::ToDoubleSeconds(time)),
                            ResultText(status.step())));
  if (status.has_best() && (status.stopped_early() || status.best().version() != status.step())) {
    line_.Say(
        absl::StrCat("validation loss: ",
                     BestText(status.best().loss(), status.best().version(), config_.train())));
  }
  const std::string sync_text = SyncText(config_.sync(), SyncFiguresOf(status));
  if (!sync_text.empty()) line_.Say(sync_text);
  if (!tuning_text_.empty()) line_.Say(tuning_text_);
  if (!trace_text_.empty()) line_.Say(trace_text_);
  for (const std::string& text : blame_lines_) line_.Say(text);
  std::string memory;
  for (const NodeStatus& node : status.nodes()) {
    const NodeCounters& counters = node.counters();
    if (counters.peak_memory_bytes() == 0) continue;
    absl::StrAppend(&memory, memory.empty() ? "peak memory: " : ", ", node.name(), " ",
                    ByteText(static_cast<double>(counters.peak_memory_bytes())));
    if (counters.predicted_memory_bytes() != 0) {
      absl::StrAppend(&memory, " (predicted ",
                      ByteText(static_cast<double>(counters.predicted_memory_bytes())), ")");
    }
  }
  if (!memory.empty()) line_.Say(memory);
  PrintNextLines(status, complete);
}

void RunReporter::PrintNextLines(const StatusReply& status, bool complete) {
  const std::string run = ShortPath(run_dir_);
  if (newest_step_.has_value()) {
    line_.Say(absl::StrCat("run folder ", run, ": ", kConfigFile, ", ", kMetricsFile, ", ",
                           replay_.empty() ? absl::StrCat(kLossPicture, ", ") : "",
                           "checkpoints/, ", kLogFolder, "/"));
  }
  if (const auto best = ReadBest(run_dir_);
      best.ok() && best->version != status.last_checkpoint()) {
    line_.Say(absl::StrFormat("best checkpoint: step %d, validation loss %.4f: %s/%s",
                              best->version, best->loss, run, kBestFile));
  }
  // The launcher may have another working folder.
  const RunOutcome outcome = {.run = continue_with_.empty() ? run : run_dir_,
                              .continue_with = continue_with_,
                              .checkpoint = status.last_checkpoint(),
                              .complete = complete,
                              .stopped_early = status.stopped_early(),
                              .explainable = !blame_lines_.empty()};
  for (const std::string& line : NextLines(config_, outcome)) line_.Say(line);
}

absl::Status RunReporter::DrawLossCurve() {
  ASSIGN_OR_RETURN(LossCurve curve, ReadLossCurve(absl::StrCat(run_dir_, "/", kMetricsFile)));
  curve.title = title_;
  return WriteFile(absl::StrCat(run_dir_, "/", kLossPicture), LossCurveSvg(curve));
}

}  // namespace tug
