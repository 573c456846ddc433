// SPDX-License-Identifier: Apache-2.0
// Counters and monitoring figures of a lane thread.
#include <ctime>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/lane.h"

namespace tug {
namespace {

// CPU time of the calling thread.
double ThreadSeconds() {
  timespec cpu{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &cpu);
  return absl::ToDoubleSeconds(absl::DurationFromTimespec(cpu));
}

}  // namespace

LaneReport LaneThread::report() const {
  LaneReport report;
  {
    absl::MutexLock lock(&mutex_);
    report = report_;
    report.ready = report.progress.Serves(orders_.wanted());
  }
  report.figures.shared_bytes = transport_->SharedBytes();
  if (snapshots_ != nullptr) report.parts = snapshots_->parts();
  return report;
}

LaneFigures LaneThread::Figures() const {
  const Shard& shard = core_.shard();
  const ShardCounters& counters = shard.counters();
  const TransportCounters transport = transport_->counters();
  const uint64_t dropped = transport.dropped + transport.connections_refused + counters.malformed;
  return {.sum_seconds = counters.decode_seconds,
          .optimizer_seconds = counters.optimizer_seconds,
          .serve_seconds = counters.serve_seconds,
          .cpu_seconds = job_.config.watch().metrics() ? ThreadSeconds() : 0,
          .updates = counters.updates,
          .staleness = {counters.staleness.begin(), counters.staleness.end()},
          .dropped_pushes = counters.dropped_pushes,
          .deferred_pushes = counters.deferred,
          .repeated_messages = counters.repeats,
          .messages_dropped = dropped,
          .messages_refused = counters.refused,
          .waiting_bytes = shard.waiting_answer_bytes(),
          .outstanding_bytes = shard.outstanding_answer_bytes(),
          .most_outstanding_bytes = counters.peak_answer_bytes,
          .socket_bytes = transport.socket_bytes,
          .sent_bytes = transport.sent_bytes,
          .received_bytes = transport.received_bytes,
          .weight_bytes = memory_->weights().most(),
          .optimizer_bytes = memory_->state().most(),
          .sum_bytes = core_.peak_sum_bytes(),
          .cached_bytes = core_.peak_cached_bytes()};
}

void LaneThread::Publish() {
  if (const absl::Status failure = memory_->failure(); !failure.ok()) {
    AddNotice({absl::StrCat("offload/", number_),
               absl::StrCat("placement.offload_dir: ", std::string(failure.message()),
                            "; the remaining state is kept in memory. Choose a folder on a larger "
                            "disk for the next run")});
  }
  LaneFigures figures = Figures();
  ShardActivity activity = core_.shard().activity();
  std::vector<std::string> algorithms;
  if (core_.reduces()) algorithms = core_.shard().reduction()->algorithms();
  absl::MutexLock lock(&mutex_);
  // The lane publishes between two messages, never during an update: the counter shows that updates
  // happened.
  if (activity.doing == ShardActivity::Doing::kResting &&
      figures.updates > report_.figures.updates) {
    activity.doing = ShardActivity::Doing::kUpdating;
  }
  report_.figures = std::move(figures);
  report_.progress = core_.progress();
  report_.algorithms = std::move(algorithms);
  if (activity == report_.activity) return;
  report_.activity = std::move(activity);
  report_.active_since = time_.Now();
}

}  // namespace tug
