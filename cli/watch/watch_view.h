// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_CLI_WATCH_WATCH_VIEW_H_
#define TUG_CLI_WATCH_WATCH_VIEW_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "proto/control.pb.h"

namespace tug {

// View of `tug status --watch`. Pure, except LossTrail.

// Observed losses, the newest last. Not thread-safe.
class LossTrail {
 public:
  static constexpr size_t kMost = 4096;

  // An earlier step restarts the trail (the job has rolled back); the same step again, or a
  // non-finite loss, is ignored.
  void Add(uint64_t step, double loss);
  // At most `columns` characters, the newest losses last; each is the mean of its part, scaled
  // between the lowest and the highest. Empty with fewer than two losses.
  std::string Sparkline(size_t columns) const;

 private:
  uint64_t step_ = 0;
  std::deque<double> losses_;
};

struct WatchLine {
  enum class Tone { kPlain, kHeading, kLate, kBad };
  std::string text;  // UTF-8, one column per character; no control characters
  Tone tone = Tone::kPlain;
};

struct WatchSize {
  size_t columns = 120;
  size_t rows = 1000;
};

// The job, its late nodes, and a table with one row per node, as many as fit. Lines have at most
// `columns` characters, and there are at most `rows`; a table omits columns that no node has a
// value for, and a narrow one its least important ones.
std::vector<WatchLine> WatchLines(const StatusReply& status, const LossTrail& losses,
                                  const WatchSize& size);

// Number of characters of a text, and its first `columns` characters, with an ellipsis if it has
// more.
size_t ColumnsOf(const std::string& text);
std::string Clipped(const std::string& text, size_t columns);

}  // namespace tug

#endif  // TUG_CLI_WATCH_WATCH_VIEW_H_
