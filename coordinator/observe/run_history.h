// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_COORDINATOR_OBSERVE_RUN_HISTORY_H_
#define TUG_COORDINATOR_OBSERVE_RUN_HISTORY_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "coordinator/observe/loss_curve.h"
#include "coordinator/observe/thinned_curve.h"
#include "coordinator/progress/progress.h"
#include "proto/control.pb.h"

namespace tug {

// History of a job for its viewers, in bounded memory however long it runs: the curve is thinned,
// of the rest the newest is kept.
//
// Viewers poll for news: every part has a number, and `since` is the newest number of the previous
// call. If parts that were returned have changed (thinning, a rollback), everything is returned
// again. Thread-safe.
class RunHistory {
 public:
  static constexpr size_t kMaxPoints = 1024;
  static constexpr size_t kMaxEvals = 256;
  static constexpr size_t kEventLimit = 200;
  static constexpr size_t kEventBytes = 500;
  static constexpr size_t kSteps = 20;  // steps with times by worker
  static constexpr size_t kMaxWorkers = 64;
  static constexpr size_t kLinkSamples = 300;  // at least a second apart
  static constexpr size_t kMaxNodes = 64;
  static constexpr size_t kMaxSettings = 16;

  struct Eval {
    uint64_t step = 0;
    double loss = 0;
    bool final = false;
  };
  struct Event {
    double at_seconds = 0;
    uint64_t step = 0;
    std::string text;
  };
  struct StepTimes {
    uint64_t step = 0;
    std::vector<WorkerStepTimes> workers;
  };
  // Bytes per second that a node sends.
  struct NodeRates {
    uint32_t node = 0;
    double sockets = 0;
    double shared_memory = 0;
  };
  struct LinkSample {
    double at_seconds = 0;
    std::vector<NodeRates> nodes;
  };
  // Result of Since.
  struct News {
    uint64_t newest = 0;  // number to pass to the next Since
    bool anew = false;    // true: the whole history; drop what earlier calls returned
    std::vector<ThinnedCurve::Point> points;
    std::optional<ThinnedCurve::Point> open;
    std::vector<Eval> evals;
    std::vector<Event> events;
    std::vector<StepTimes> steps;
    std::vector<LinkSample> links;
    std::vector<SettingsChange> settings;
  };

  // `at_seconds`: since the coordinator began.
  void OnStep(const StepMetrics& metrics, double at_seconds);
  void OnEval(const EvalMetrics& metrics);
  void OnEvent(const std::string& text, double at_seconds);
  void OnSettings(const SettingsChange& change);
  void OnStatus(const StatusReply& status, double at_seconds);

  // Returns the parts newer than number `since`; 0: all.
  News Since(uint64_t since) const;

 private:
  template <typename Part>
  struct Numbered {
    uint64_t number = 0;
    Part part;
  };
  // Appends a part and drops the oldest beyond `most`.
  template <typename Part>
  void Append(std::deque<Numbered<Part>>& parts, Part part, size_t most)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    parts.push_back({++newest_, std::move(part)});
    if (parts.size() > most) parts.pop_front();
  }

  mutable absl::Mutex mutex_;
  uint64_t newest_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t anew_ ABSL_GUARDED_BY(mutex_) = 0;  // results of Since before this number are void
  ThinnedCurve curve_ ABSL_GUARDED_BY(mutex_){kMaxPoints};
  std::vector<uint64_t> point_numbers_ ABSL_GUARDED_BY(mutex_);  // by point of curve_
  std::deque<Numbered<Eval>> evals_ ABSL_GUARDED_BY(mutex_);
  std::deque<Numbered<Event>> events_ ABSL_GUARDED_BY(mutex_);
  std::deque<Numbered<StepTimes>> steps_ ABSL_GUARDED_BY(mutex_);
  std::deque<Numbered<LinkSample>> links_ ABSL_GUARDED_BY(mutex_);
  std::deque<Numbered<SettingsChange>> settings_ ABSL_GUARDED_BY(mutex_);
  uint64_t step_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace tug

#endif  // TUG_COORDINATOR_OBSERVE_RUN_HISTORY_H_
