// SPDX-License-Identifier: Apache-2.0
#include "cli/watch/status_watch.h"

#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "base/time_source.h"
#include "cli/watch/terminal.h"
#include "cli/watch/watch_view.h"
#include "coordinator/observe/metrics_log.h"
#include "coordinator/observe/progress_line.h"
#include "coordinator/observe/run_folder.h"
#include "coordinator/observe/watch_text.h"
#include "process/coordinator_query.h"
#include "process/interrupts.h"
#include "process/run_end.h"
#include "process/standard_streams.h"

namespace tug {
namespace {

constexpr absl::Duration kBetweenDrawings = absl::Milliseconds(500);
constexpr absl::Duration kBetweenLooks = absl::Milliseconds(50);  // for keys, signals and the size
// Time for another coordinator to recover the job.
constexpr absl::Duration kSilence = absl::Seconds(10);

// The parts of a status that change only when the job progresses; excludes waiting times.
std::string Gist(const StatusReply& status) {
  std::vector<std::string> nodes;
  for (const NodeStatus& node : status.nodes()) nodes.push_back(node.name());
  return absl::StrCat(status.phase(), " ", status.step(), " ", status.last_checkpoint(), " ",
                      status.failure(), " ", absl::StrJoin(nodes, ","));
}

class Watch {
 public:
  explicit Watch(const CoordinatorArguments& arguments) : arguments_(arguments) {
    if (Terminal::IsThere()) terminal_.emplace();
  }

  absl::Status Run() {
    ASSIGN_OR_RETURN(client_, ConnectTo(arguments_));
    while (true) {
      const absl::StatusOr<StatusReply> status = client_->Status();
      if (status.ok()) {
        heard_ = time_.Now();
        if (newest_.run_dir().empty()) RecallLosses(status->run_dir());
        newest_ = *status;
        losses_.Add(newest_.step(), newest_.loss());
        Show();
        if (newest_.phase() == DONE || newest_.phase() == FAILED) return ReportJobEnd();
      } else if (HasEnded()) {
        return ReportJobEnd();
      } else if (HasLeft()) {
        return absl::AbortedError(
            absl::StrCat("the coordinator is gone and the job did not finish: see its output where "
                         "it was started, or ",
                         newest_.run_dir(), "/logs"));
      } else if (time_.Now() - heard_ > kSilence) {
        return status.status();
      }
      if (IsToStop()) return absl::OkStatus();
    }
  }

 private:
  // Reads earlier losses from the run folder, if it is visible here.
  void RecallLosses(const std::string& run_dir) {
    const absl::StatusOr<LossCurve> curve = ReadLossCurve(absl::StrCat(run_dir, "/", kMetricsFile));
    if (!curve.ok()) return;
    for (const LossPoint& point : curve->training) losses_.Add(point.step, point.loss);
  }

  void Show() {
    if (terminal_.has_value())
      return terminal_->Draw(WatchLines(newest_, losses_, terminal_->size()));
    const std::string gist = Gist(newest_);
    if (gist == shown_) return;
    shown_ = gist;
    for (const WatchLine& line : WatchLines(newest_, losses_, {})) {
      std::printf("%s\n", line.text.c_str());
    }
    std::printf("\n");
    FlushResults().IgnoreError();  // an error is reported at the end
  }

  // Whether the coordinator, which does not reply, has exited because the job is over.
  bool HasEnded() {
    if (newest_.run_dir().empty()) return false;
    if (const auto end = ReadRunEnd(newest_.run_dir()); end.has_value()) {
      newest_.set_phase(DONE);
      newest_.set_step(end->step);
      newest_.set_steps(end->reason == "done" ? end->step : newest_.steps());
      reason_ = end->reason;
      return true;
    }
    // The run folder is not visible here.
    return newest_.steps() > 0 && newest_.step() >= newest_.steps();
  }

  // Whether the coordinator has removed its address file, as at every end. Otherwise another one
  // may be listening elsewhere.
  bool HasLeft() {
    if (newest_.run_dir().empty()) return false;
    std::error_code error;
    if (!std::filesystem::exists(newest_.run_dir(), error) || error) return false;
    const absl::StatusOr<CoordinatorAddress> at = ReadCoordinatorAddress(newest_.run_dir());
    if (!at.ok()) return true;
    if (at->address == client_->address() && at->job == newest_.job()) return false;
    // Read the keys again: a resumed job has new ones.
    CoordinatorArguments owner = arguments_;
    owner.address.clear();
    owner.run = newest_.run_dir();
    auto other = ConnectTo(owner);
    if (other.ok()) client_ = *std::move(other);
    return false;
  }

  absl::Status ReportJobEnd() {
    if (newest_.phase() == FAILED) {
      return absl::AbortedError(absl::StrCat("the job has failed: ", newest_.failure()));
    }
    if (reason_.empty()) reason_ = newest_.stopped_early() ? "stopped early" : "ended";
    std::printf("%s: %s at step %s of %s\n", newest_.name().c_str(), reason_.c_str(),
                WithThousands(newest_.step()).c_str(), WithThousands(newest_.steps()).c_str());
    return absl::OkStatus();
  }

  // Waits until the next drawing; true: the user quit.
  bool IsToStop() {
    const absl::Time next = time_.Now() + kBetweenDrawings;
    const WatchSize size = terminal_.has_value() ? terminal_->size() : WatchSize();
    while (time_.Now() < next) {
      if (interrupts_.Count() > 0) return true;
      if (!terminal_.has_value()) {
        absl::SleepFor(kBetweenLooks);
        continue;
      }
      const std::optional<char> key = terminal_->ReadKey(kBetweenLooks);
      if (key == 'q' || key == 'Q') return true;
      const WatchSize now = terminal_->size();
      if (now.columns != size.columns || now.rows != size.rows) return false;
    }
    return false;
  }

  const CoordinatorArguments& arguments_;
  const RealTime time_;
  Interrupts interrupts_;  // constructed before gRPC starts threads
  std::optional<Terminal> terminal_;
  std::unique_ptr<ControlClient> client_;
  StatusReply newest_;
  LossTrail losses_;
  absl::Time heard_ = time_.Now();
  std::string shown_;
  std::string reason_;
};

}  // namespace

absl::Status WatchStatus(const CoordinatorArguments& arguments) { return Watch(arguments).Run(); }

}  // namespace tug
