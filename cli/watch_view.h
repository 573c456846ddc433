#ifndef TUG_CLI_WATCH_VIEW_H_
#define TUG_CLI_WATCH_VIEW_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "proto/control.pb.h"

namespace tug {

// What `tug status --watch` shows. Pure, but for LossTrail.

// Losses that were seen, the newest last. Not thread-safe.
class LossTrail {
 public:
  static constexpr size_t kMost = 4096;

  // An earlier step begins anew (the job has gone back); one that is there, or a loss that is not
  // finite, adds nothing.
  void Add(uint64_t step, double loss);
  // `columns` characters, the last one the newest; each the mean of its part, low to high as far as
  // there are losses. Empty: there are less than two.
  std::string Sparkline(size_t columns) const;

 private:
  uint64_t step_ = 0;
  std::deque<double> losses_;
};

struct WatchLine {
  enum class Tone { kPlain, kHeading, kLate, kBad };
  std::string text;  // UTF-8, every character a column; without control characters
  Tone tone = Tone::kPlain;
};

struct WatchSize {
  size_t columns = 120;
  size_t rows = 1000;
};

// The job, who is late, and a row a node, as many as there is room for. No line is longer than
// `columns`, and there are at most `rows`; columns of the table that matter least are left out
// where it is narrow.
std::vector<WatchLine> WatchLines(const StatusReply& status, const LossTrail& losses,
                                  const WatchSize& size);

// Characters of a text, and the first so many of it, with an ellipsis if there are more.
size_t ColumnsOf(const std::string& text);
std::string Clipped(const std::string& text, size_t columns);

}  // namespace tug

#endif  // TUG_CLI_WATCH_VIEW_H_
