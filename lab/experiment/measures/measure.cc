// SPDX-License-Identifier: Apache-2.0
#include "lab/experiment/measures/measure.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/median.h"
#include "config/sync_mode.h"

namespace tug {
namespace {

using Value = std::optional<double>;

constexpr double kMega = 1e6;
// Training loss is the mean over the last 1/kLossParts of a run's steps.
constexpr size_t kLossParts = 20;

bool Learns(const MeasuredRun& run) { return run.config.compute() != JobConfig::REPLAY; }

template <typename Of>
Value MedianOfSteps(const MeasuredRun& run, const Of& of) {
  std::vector<double> values;
  for (const StepPoint& point : StepsAfter(run.figures, run.warm_up_steps)) {
    values.push_back(of(point));
  }
  if (values.empty()) return std::nullopt;
  return Median(std::move(values));
}

template <typename Of>
Value MeanOfSteps(const MeasuredRun& run, const Of& of) {
  double sum = 0;
  const std::vector<StepPoint> steps = StepsAfter(run.figures, run.warm_up_steps);
  if (steps.empty()) return std::nullopt;
  for (const StepPoint& point : steps) sum += of(point);
  return sum / static_cast<double>(steps.size());
}

double Batches(const MeasuredRun& run) { return std::max(1u, run.config.sync().local_steps()); }

Value StepTime(const MeasuredRun& run) {
  return MedianOfSteps(run, [](const StepPoint& p) { return p.step_seconds * 1e3; });
}

Value MeanStepTime(const MeasuredRun& run) {
  return MedianOfSteps(run, [](const StepPoint& p) { return p.mean_seconds * 1e3; });
}

// Job steps per second. Under BSP by the workers' own clocks, which are exact for short jobs too:
// the mean over workers, since the slowest times of all steps add up to more than the total time if
// another worker is slow each time. Otherwise by the coordinator's clock, which learns of steps
// with heartbeats.
Value JobStepRate(const MeasuredRun& run) {
  if (run.config.sync().policy() != SyncConfig::BSP) {
    const double rate = StepRate(run.figures, run.warm_up_steps);
    return rate > 0 ? Value(rate) : std::nullopt;
  }
  const Value seconds = MeanOfSteps(run, [](const StepPoint& p) { return p.mean_seconds; });
  if (!seconds.has_value() || *seconds <= 0) return std::nullopt;
  return 1 / *seconds;
}

Value BatchRate(const MeasuredRun& run) {
  const Value rate = JobStepRate(run);
  if (!rate.has_value()) return std::nullopt;
  return *rate * Batches(run);
}

Value UpdateRate(const MeasuredRun& run) {
  const Value rate = JobStepRate(run);
  if (!rate.has_value()) return std::nullopt;
  return *rate * static_cast<double>(VersionsPerStep(run.config));
}

Value TokenRate(const MeasuredRun& run) {
  const Value tokens =
      MeanOfSteps(run, [](const StepPoint& p) { return static_cast<double>(p.tokens); });
  const Value rate = JobStepRate(run);
  if (!Learns(run) || !tokens.has_value() || !rate.has_value()) return std::nullopt;
  return *tokens * *rate;
}

Value ExposedTime(const MeasuredRun& run) {
  return MedianOfSteps(run, [](const StepPoint& p) { return p.wait_seconds * 1e3; });
}

Value Overlap(const MeasuredRun& run) {
  return MedianOfSteps(run, [](const StepPoint& p) { return p.overlap * 100; });
}

// `of`, in percent of all workers' step time.
template <typename Of>
Value PartOfWorkers(const MeasuredRun& run, const Of& of) {
  double seconds = 0, part = 0;
  for (const WorkerTimes& times : run.figures.workers) {
    seconds += times.seconds;
    part += of(times);
  }
  if (seconds <= 0) return std::nullopt;
  return 100 * part / seconds;
}

Value WaitShare(const MeasuredRun& run) {
  return PartOfWorkers(run, [](const WorkerTimes& t) { return t.wait_seconds; });
}

Value MostWaitShare(const MeasuredRun& run) {
  Value most;
  for (const WorkerTimes& times : run.figures.workers) {
    if (times.seconds <= 0) continue;
    most = std::max(most.value_or(0), 100 * times.wait_seconds / times.seconds);
  }
  return most;
}

// None unless all workers wait for the straggler. A worker that shares cores, or runs several
// virtual workers, has no pace of its own.
Value StragglerPace(const MeasuredRun& run) {
  const StragglerConfig& straggler = run.config.straggler();
  const ClusterConfig& cluster = run.config.cluster();
  const Value rate = JobStepRate(run);
  if (Learns(run) || straggler.slowdown() <= 1 || !rate.has_value() ||
      !SyncModeOf(run.config.sync().policy()).waits_for_slowest ||
      cluster.workers() != cluster.virtual_workers()) {
    return std::nullopt;
  }
  for (const WorkerTimes& times : run.figures.workers) {
    if (times.virtual_worker != straggler.virtual_worker() || times.steps == times.skipped)
      continue;
    const double seconds = times.compute_seconds + times.straggle_seconds;
    return 100 * *rate * seconds / static_cast<double>(times.steps - times.skipped);
  }
  return std::nullopt;
}

Value ComputeShare(const MeasuredRun& run) {
  return PartOfWorkers(run, [](const WorkerTimes& t) { return t.compute_seconds; });
}

Value PushedBytes(const MeasuredRun& run) {
  return MeanOfSteps(
      run, [](const StepPoint& p) { return static_cast<double>(p.pushed_bytes) / kMega; });
}

Value PulledBytes(const MeasuredRun& run) {
  return MeanOfSteps(
      run, [](const StepPoint& p) { return static_cast<double>(p.pulled_bytes) / kMega; });
}

Value PerStep(const MeasuredRun& run, double sum) {
  if (run.figures.steps.empty()) return std::nullopt;
  return sum / static_cast<double>(run.figures.steps.size());
}

Value SocketBytes(const MeasuredRun& run) {
  return PerStep(
      run, static_cast<double>(run.figures.worker_socket_bytes + run.figures.server_socket_bytes) /
               kMega);
}

Value ThroughSockets(const MeasuredRun& run, uint64_t bytes) {
  if (bytes == 0) return std::nullopt;
  return PerStep(run, static_cast<double>(bytes) / kMega);
}

Value WorkerSocketBytes(const MeasuredRun& run) {
  return ThroughSockets(run, run.figures.worker_socket_bytes);
}

Value ServerSocketBytes(const MeasuredRun& run) {
  return ThroughSockets(run, run.figures.server_socket_bytes);
}

// Per step, of the host with the most bytes.
template <typename Of>
Value BusiestLink(const MeasuredRun& run, const Of& of) {
  if (run.links.empty()) return std::nullopt;
  uint64_t most = 0;
  for (const LinkTraffic& link : run.links) most = std::max<uint64_t>(most, of(link));
  return PerStep(run, static_cast<double>(most) / kMega);
}

Value BothWays(const MeasuredRun& run) {
  return BusiestLink(run, [](const LinkTraffic& l) { return l.sent_bytes + l.received_bytes; });
}

Value OneWay(const MeasuredRun& run) {
  return BusiestLink(run,
                     [](const LinkTraffic& l) { return std::max(l.sent_bytes, l.received_bytes); });
}

Value FinalLossOf(const MeasuredRun& run) {
  return Learns(run) ? FinalLoss(run.figures) : std::nullopt;
}

Value BestLoss(const MeasuredRun& run) {
  Value best;
  if (!Learns(run)) return best;
  for (const EvalPoint& point : run.figures.evals) {
    if (std::isfinite(point.loss)) best = std::min(best.value_or(point.loss), point.loss);
  }
  return best;
}

Value TrainingLoss(const MeasuredRun& run) {
  const std::vector<StepPoint>& steps = run.figures.steps;
  if (!Learns(run) || steps.empty()) return std::nullopt;
  const size_t count = std::max<size_t>(1, steps.size() / kLossParts);
  double sum = 0;
  for (size_t i = steps.size() - count; i < steps.size(); ++i) sum += steps[i].loss;
  return sum / static_cast<double>(count);
}

// Interpolates linearly between the evaluations before and after.
Value LossAtSamples(const MeasuredRun& run) {
  if (!Learns(run) || !run.at_samples.has_value()) return std::nullopt;
  const auto wanted = static_cast<double>(*run.at_samples);
  const EvalPoint* before = nullptr;
  for (const EvalPoint& point : run.figures.evals) {
    const double samples = SamplesAt(run.config, point.step);
    if (samples == wanted) return point.loss;
    if (samples > wanted) {
      if (before == nullptr) return std::nullopt;
      const double from = SamplesAt(run.config, before->step);
      const double part = (wanted - from) / (samples - from);
      return before->loss + part * (point.loss - before->loss);
    }
    before = &point;
  }
  return std::nullopt;
}

Value TimeToLoss(const MeasuredRun& run) {
  if (!Learns(run) || !run.target_loss.has_value()) return std::nullopt;
  for (const EvalPoint& point : run.figures.evals) {
    if (point.loss <= *run.target_loss) return point.seconds;
  }
  return std::nullopt;
}

Value Staleness(const MeasuredRun& run) {
  if (run.figures.updates == 0) return std::nullopt;
  return MeanStaleness(run.figures);
}

Value MostStale(const MeasuredRun& run) {
  if (run.figures.updates == 0) return std::nullopt;
  return static_cast<double>(MostStaleness(run.figures));
}

Value DroppedPushes(const MeasuredRun& run) {
  return static_cast<double>(run.figures.dropped_pushes);
}

Value MostHeld(const MeasuredRun& run, bool server) {
  Value most;
  for (const NodeFigures& node : run.figures.nodes) {
    if (node.server != server) continue;
    most = std::max(most.value_or(0), static_cast<double>(node.held.total()) / kMega);
  }
  return most;
}

Value WorkerMemory(const MeasuredRun& run) { return MostHeld(run, false); }
Value ServerMemory(const MeasuredRun& run) { return MostHeld(run, true); }

Value Codec(const MeasuredRun& run, double seconds) {
  if (seconds <= 0) return std::nullopt;
  return PerStep(run, seconds * 1e3);
}

Value EncodeTime(const MeasuredRun& run) { return Codec(run, run.figures.encode_seconds); }
Value DecodeTime(const MeasuredRun& run) { return Codec(run, run.figures.decode_seconds); }

Value JobTime(const MeasuredRun& run) {
  if (run.figures.steps.empty()) return std::nullopt;
  return run.figures.steps.back().seconds;
}

Value WallTime(const MeasuredRun& run) { return run.wall_seconds; }

constexpr auto kLower = Better::kLower;
constexpr auto kHigher = Better::kHigher;
constexpr auto kRatio = Comparing::kRatio;
constexpr auto kDifference = Comparing::kDifference;

constexpr Measure kMeasures[] = {
    {"step_time", "step time", "ms", kLower, kRatio, 2, true,
     "time of a job step, median over a run", StepTime},
    {"mean_step_time", "mean step time", "ms", kLower, kRatio, 2, true,
     "time of a job step, mean over workers, median over a run", MeanStepTime},
    {"batch_rate", "batch rate", "batches/s", kHigher, kRatio, 2, true,
     "batches per second: job steps times sync.local_steps", BatchRate},
    {"update_rate", "update rate", "updates/s", kHigher, kRatio, 2, true,
     "model updates per second: job steps, or pushes where each push is an update", UpdateRate},
    {"token_rate", "token rate", "tokens/s", kHigher, kRatio, 0, true,
     "tokens per second; not measured in a replay", TokenRate},
    {"exposed_time", "exposed time", "ms", kLower, kRatio, 2, true,
     "time per job step waiting for weights, mean over workers, median over a run", ExposedTime},
    {"overlap", "overlap", "%", kHigher, kDifference, 1, true,
     "share of the exchange hidden by computing, on the worker that hides least, median over a run",
     Overlap},
    {"wait_share", "time waiting for weights", "%", kLower, kDifference, 1, true,
     "share of the workers' step time spent waiting for weights", WaitShare},
    {"most_wait_share", "longest time waiting for weights", "%", kLower, kDifference, 1, true,
     "share of the step time spent waiting for weights, on the worker that waited most",
     MostWaitShare},
    {"straggler_pace", "straggler's pace", "%", kHigher, kDifference, 1, true,
     "in a replay where all workers wait for a slow one: speed, as a share of the speed if that "
     "worker never waited",
     StragglerPace},
    {"compute_share", "time computing", "%", kHigher, kDifference, 1, true,
     "share of the workers' step time spent in forward and backward passes", ComputeShare},
    {"pushed_bytes", "pushed per step", "MB", kLower, kRatio, 3, true,
     "payload pushed by all workers per job step", PushedBytes},
    {"pulled_bytes", "pulled per step", "MB", kLower, kRatio, 3, true,
     "payload pulled by all workers per job step", PulledBytes},
    {"socket_bytes", "through sockets per step", "MB", kLower, kRatio, 3, true,
     "written to sockets by all nodes per job step, headers included; 0 with shared memory",
     SocketBytes},
    {"worker_socket_bytes", "from workers through sockets per step", "MB", kLower, kRatio, 3, true,
     "written to sockets by workers per job step: pushes and requests for weights; none with "
     "shared memory",
     WorkerSocketBytes},
    {"server_socket_bytes", "from servers through sockets per step", "MB", kLower, kRatio, 3, true,
     "written to sockets by servers per job step: weights and acknowledgements of pushes; none "
     "with shared memory",
     ServerSocketBytes},
    {"link_bytes", "over the busiest link per step", "MB", kLower, kRatio, 3, true,
     "sent and received over the busiest host's link per job step; on a testbed only", BothWays},
    {"one_way_bytes", "over the busiest link one way per step", "MB", kLower, kRatio, 3, true,
     "bytes over the busiest host's link per job step, in its busier direction; on a testbed only",
     OneWay},
    {"final_loss", "final loss", "nats per token", kLower, kDifference, 4, false,
     "validation loss at the end, over the whole validation split", FinalLossOf},
    {"best_loss", "best loss", "nats per token", kLower, kDifference, 4, false,
     "lowest validation loss", BestLoss},
    {"training_loss", "training loss", "nats per token", kLower, kDifference, 4, false,
     "training loss, mean over the last 5% of the job steps", TrainingLoss},
    {"loss_at_samples", "loss after the same samples", "nats per token", kLower, kDifference, 4,
     false, "validation loss at at_samples samples, interpolated linearly between evaluations",
     LossAtSamples},
    {"time_to_loss", "time to the target loss", "s", kLower, kRatio, 1, true,
     "time from the first step to the first evaluation with a loss of at most target_loss",
     TimeToLoss},
    {"staleness", "mean staleness", "updates", kLower, kDifference, 2, true,
     "mean staleness of an update", Staleness},
    {"most_staleness", "largest staleness", "updates", kLower, kDifference, 0, true,
     "largest staleness of an update", MostStale},
    {"dropped_pushes", "dropped pushes", "pushes", kLower, kDifference, 0, true,
     "pushes dropped because they arrived too late for their update", DroppedPushes},
    {"worker_memory", "worker's memory", "MB", kLower, kRatio, 2, true,
     "peak memory of weights and gradients, on the worker that holds most", WorkerMemory},
    {"server_memory", "server's memory", "MB", kLower, kRatio, 2, true,
     "peak memory of weights, optimizer state and sums, on the server that holds most",
     ServerMemory},
    {"encode_time", "encoding time", "ms", kLower, kRatio, 2, true,
     "encoding time per job step, sum over all workers", EncodeTime},
    {"decode_time", "decoding time", "ms", kLower, kRatio, 2, true,
     "decoding time per job step, sum over all lanes", DecodeTime},
    {"job_time", "time of all steps", "s", kLower, kRatio, 2, true,
     "time from the beginning of the first step to the end of the last", JobTime},
    {"wall_time", "time of the whole run", "s", kLower, kRatio, 2, true,
     "time from the start of the first process to the end of the last", WallTime},
};

}  // namespace

std::span<const Measure> Measures() { return kMeasures; }

const Measure* FindMeasure(const std::string& name) {
  for (const Measure& measure : kMeasures) {
    if (name == measure.name) return &measure;
  }
  return nullptr;
}

std::vector<std::string> MeasureNames() {
  std::vector<std::string> names;
  for (const Measure& measure : kMeasures) names.push_back(measure.name);
  return names;
}

std::string MeasureHeading(const Measure& measure) {
  return absl::StrCat(measure.title, " (", measure.unit, ")");
}

std::string MeasureHeading(const std::string& name) {
  const Measure* const measure = FindMeasure(name);
  TUG_CHECK(measure != nullptr) << name;
  return MeasureHeading(*measure);
}

double SamplesAt(const JobConfig& config, uint64_t step) {
  double batch = config.train().global_batch();
  const double all = config.cluster().virtual_workers();
  if (all > 0) batch *= (all - static_cast<double>(OmittedPushes(config.sync()))) / all;
  return static_cast<double>(step) * batch * std::max(1u, config.sync().local_steps());
}

}  // namespace tug
