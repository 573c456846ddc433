#ifndef TUG_COORDINATOR_PROGRESS_LINE_H_
#define TUG_COORDINATOR_PROGRESS_LINE_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "coordinator/progress.h"

namespace tug {

// What a person sees while a job runs: on a terminal one line that is rewritten, elsewhere a plain
// line every kPlainGap and every 5% of the steps, but no more than one a second; and lines of their
// own for events. Not thread-safe.
class ProgressLine {
 public:
  static constexpr absl::Duration kTerminalGap = absl::Milliseconds(100);
  static constexpr absl::Duration kPlainGap = absl::Seconds(10);
  static constexpr absl::Duration kLeastPlainGap = absl::Seconds(1);
  static constexpr size_t kRecentSteps = 50;

  // Takes what WriteStandardError takes. None: no progress is shown, and events go to the log
  // (base/log.h).
  using Output = std::function<void(absl::string_view)>;

  // `replay`: the name of the profile where workers replay one, else empty.
  ProgressLine(Output out, bool terminal, uint64_t steps, std::string replay = "")
      : out_(std::move(out)), terminal_(terminal), replay_(std::move(replay)), steps_(steps) {}
  ~ProgressLine() { Clear(); }

  // The step the job will end with; an orderly stop changes it.
  void set_steps(uint64_t steps) { steps_ = steps; }

  void Step(const StepMetrics& metrics, absl::Time now);
  // A line of its own. The progress line, on a terminal, moves below it.
  void Say(const std::string& text);
  // What the job waits for, and for how long it has; empty: for nothing. On a terminal it is shown
  // in place of progress before the first step; of a wait of kLongWait there is a line, and again
  // every kWaitGap.
  void Wait(const std::string& text, absl::Duration lasts, absl::Time now);
  static constexpr absl::Duration kLongWait = absl::Seconds(5);
  static constexpr absl::Duration kWaitGap = absl::Seconds(5);
  // Writes the newest state if it has not been shown, and ends the line.
  void Finish();

  // "step 340/2000  loss 2.113  31,402 tokens/s  exchange 4.1 ms, 6.6 MB/step  left 0:48"; of a
  // replay "replay of vgg16  step 340/2000  198 samples/s  exchange ..."
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
  bool line_open_ = false;  // a rewritable line stands on the terminal
};

// "31,402"; "6.6 MB"; "0:48", "1:02:03".
std::string WithThousands(uint64_t number);
std::string ByteText(double bytes);
std::string DurationText(double seconds);

}  // namespace tug

#endif  // TUG_COORDINATOR_PROGRESS_LINE_H_
