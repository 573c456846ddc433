// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_COORDINATOR_OBSERVE_PROGRESS_LINE_H_
#define TUG_COORDINATOR_OBSERVE_PROGRESS_LINE_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "coordinator/progress/progress.h"

namespace tug {

// Progress of a running job for the user: on a terminal one row that is rewritten; elsewhere a
// plain line every kPlainGap and every 5% of the steps, at most one per second. Events get lines of
// their own. Not thread-safe.
class ProgressLine {
 public:
  static constexpr absl::Duration kTerminalGap = absl::Milliseconds(100);
  static constexpr absl::Duration kPlainGap = absl::Seconds(10);
  static constexpr absl::Duration kMinPlainGap = absl::Seconds(1);
  static constexpr size_t kRecentSteps = 50;

  // Called with text as WriteStandardError is. Null: no progress is shown, and events go to the log
  // (base/log.h).
  using Output = std::function<void(absl::string_view)>;

  // `replay`: name of the profile that workers replay; empty: training.
  ProgressLine(Output out, bool terminal, uint64_t steps, std::string replay = "")
      : out_(std::move(out)), terminal_(terminal), replay_(std::move(replay)), steps_(steps) {}
  ~ProgressLine() { Clear(); }

  // The step that the job will end with; an orderly stop changes it.
  void set_steps(uint64_t steps) { steps_ = steps; }

  void Step(const StepMetrics& metrics, absl::Time now);
  // Writes a line of its own. On a terminal the progress line moves below it.
  void Say(const std::string& text);
  // Sets what the job waits for (empty: nothing), and since how long. On a terminal it is shown
  // instead of progress before the first step. A wait of kLongWait gets a line, repeated every
  // kWaitGap.
  void Wait(const std::string& text, absl::Duration lasts, absl::Time now);
  static constexpr absl::Duration kLongWait = absl::Seconds(5);
  static constexpr absl::Duration kWaitGap = absl::Seconds(5);
  // Writes the newest state if it was not shown yet, and ends the line.
  void Finish();

  // "step 340/2000  loss 2.113  31,402 tokens/s  left 0:48  exchange 4.1 ms, 6.6 MB/step"; in a
  // replay "replay of vgg16  step 340/2000  198 samples/s  left ..."
  std::string Text() const;

 private:
  void Show(const std::string& text);
  void Clear();

  const Output out_;
  const bool terminal_;
  const std::string replay_;
  uint64_t steps_;
  std::deque<StepMetrics> recent_;
  absl::Time shown_at_ = absl::InfinitePast();
  uint64_t shown_step_ = 0;
  std::string waiting_;
  absl::Time wait_told_at_ = absl::InfinitePast();
  bool line_open_ = false;  // the terminal shows a rewritable line
};

// "31,402"; "6.6 MB"; "0:48", "1:02:03".
std::string WithThousands(uint64_t number);
std::string ByteText(double bytes);
std::string DurationText(double seconds);

}  // namespace tug

#endif  // TUG_COORDINATOR_OBSERVE_PROGRESS_LINE_H_
