// SPDX-License-Identifier: Apache-2.0
#include "cli/watch/watch_view.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "coordinator/observe/progress_line.h"
#include "coordinator/observe/watch_text.h"

namespace tug {
namespace {

constexpr size_t kSparkColumns = 24;
constexpr size_t kBarColumns = 24;
constexpr size_t kMaxLate = 4;

bool BeginsCharacter(char byte) { return (static_cast<unsigned char>(byte) & 0xc0) != 0x80; }

// Nodes' texts must not control the terminal.
std::string WithoutControls(const std::string& text) {
  std::string clean;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const bool c1 =
        byte == 0xc2 && i + 1 < text.size() && static_cast<unsigned char>(text[i + 1]) < 0xa0;
    if (c1) ++i;
    clean += byte < 0x20 || byte == 0x7f || c1 ? '?' : text[i];
  }
  return clean;
}

std::string Padded(const std::string& text, size_t columns, bool right) {
  const size_t width = ColumnsOf(text);
  const std::string space(columns > width ? columns - width : 0, ' ');
  return right ? space + text : text + space;
}

std::string Bar(const StatusReply& status) {
  if (status.steps() == 0) return "";
  const double done =
      std::min(1.0, static_cast<double>(status.step()) / static_cast<double>(status.steps()));
  const auto full = static_cast<size_t>(done * kBarColumns);
  return absl::StrCat("  [", std::string(full, '#'), std::string(kBarColumns - full, '.'), "]");
}

std::string JobText(const StatusReply& status) {
  std::string text =
      absl::StrCat(status.name(), ": ", PhaseText(status.phase()), ", step ",
                   WithThousands(status.step()), " of ", WithThousands(status.steps()));
  absl::StrAppend(&text, Bar(status));
  if (status.seconds_left() > 0) {
    absl::StrAppend(&text, "  ", DurationText(status.seconds_left()), " left");
  }
  return text;
}

std::string FiguresText(const StatusReply& status, const LossTrail& losses) {
  const bool replays = !status.replay().empty();
  std::string text;
  if (replays) {
    text = absl::StrCat("replay of ", status.replay());
  } else if (status.step() > 0) {
    text = absl::StrCat(
        "loss ", std::isnan(status.loss()) ? "unknown" : absl::StrFormat("%.4f", status.loss()));
    const std::string spark = losses.Sparkline(kSparkColumns);
    if (!spark.empty()) absl::StrAppend(&text, " ", spark);
  } else {
    text = "no step yet";
  }
  if (status.tokens_per_second() > 0) {
    absl::StrAppend(&text, "  ", WithThousands(static_cast<uint64_t>(status.tokens_per_second())),
                    replays ? " samples/s" : " tokens/s");
  }
  absl::StrAppend(
      &text, status.last_checkpoint() == 0
                 ? "  no checkpoint yet"
                 : absl::StrCat("  checkpoint of step ", WithThousands(status.last_checkpoint())));
  return text;
}

// ---- the table ----

struct Column {
  const char* title;
  bool right = false;
  size_t from_columns = 0;  // minimum width of the screen for this column
};

// Row fills in the cells in this order.
constexpr Column kColumns[] = {{"NODE"},
                               {"RANK", true, 64},
                               {"HOST, PID", false, 110},
                               {"STEP", true},
                               {"TIME: COMPUTE | WAIT", false, 64},
                               {"SENDS: NETWORK", true, 84},
                               {"SENDS: SHARED MEMORY", true, 84},
                               {"MEMORY", true, 100},
                               {"STALE", true, 120},
                               {"ACTIVITY"}};
constexpr size_t kColumnCount = std::size(kColumns);

std::string RateText(double bytes_per_second, uint64_t total) {
  return total == 0 ? "" : absl::StrCat(ByteText(bytes_per_second), "/s");
}

std::vector<std::string> Row(const NodeStatus& node, const StatusReply& status) {
  const bool worker = node.kind() == WORKER;
  const NodeCounters& counters = node.counters();
  std::string times, activity = ActivityText(node, status);
  if (node.step_seconds() > 0) {
    times = absl::StrFormat("%.0f ms: %.0f | %.0f", node.step_seconds() * 1e3,
                            node.compute_seconds() * 1e3, node.wait_seconds() * 1e3);
  }
  if (node.seconds_since_heartbeat() >= kSilentSeconds) {
    activity = absl::StrFormat("no heartbeat for %.1f s", node.seconds_since_heartbeat());
  }
  const bool has_staleness = status.has_staleness() && !worker;
  return {node.name(),
          node.has_all_reduce_rank() ? absl::StrCat(node.all_reduce_rank()) : "",
          absl::StrCat(node.host(), ", ", node.pid()),
          worker ? WithThousands(node.clock() + 1) : "",
          times,
          RateText(node.socket_bytes_per_second(), counters.socket_bytes()),
          RateText(node.shared_memory_bytes_per_second(), counters.shared_memory_bytes()),
          ByteText(static_cast<double>(counters.peak_memory_bytes())),
          has_staleness ? absl::StrFormat("%.2f", MeanStaleness(counters)) : "",
          absl::StrCat(node.draining() ? "leaving, " : "", activity)};
}

using Cells = std::vector<std::vector<std::string>>;  // by row and column

// Width of each column; 0: omitted, because the screen is too narrow or no node has a value.
std::vector<size_t> WidthsOf(const Cells& cells, size_t screen_columns) {
  std::vector<size_t> widths(kColumnCount, 0);
  for (const std::vector<std::string>& row : cells) {
    for (size_t c = 0; c < kColumnCount; ++c) widths[c] = std::max(widths[c], ColumnsOf(row[c]));
  }
  for (size_t c = 0; c < kColumnCount; ++c) {
    const bool fits = screen_columns >= kColumns[c].from_columns;
    if (widths[c] == 0 || !fits) {
      widths[c] = 0;
    } else {
      widths[c] = std::max(widths[c], ColumnsOf(kColumns[c].title));
    }
  }
  return widths;
}

std::vector<WatchLine> Table(const StatusReply& status, const WatchSize& size, size_t rows) {
  Cells cells;
  const auto nodes = static_cast<size_t>(status.nodes_size());
  const size_t shown = nodes + 1 <= rows ? nodes : rows - std::min<size_t>(rows, 2);
  for (size_t n = 0; n < shown; ++n) {
    cells.push_back(Row(status.nodes(static_cast<int>(n)), status));
  }
  for (std::vector<std::string>& row : cells) {
    for (std::string& cell : row) cell = WithoutControls(cell);
  }
  const std::vector<size_t> widths = WidthsOf(cells, size.columns);
  std::vector<std::string> titles;
  for (const Column& column : kColumns) titles.push_back(column.title);
  cells.insert(cells.begin(), std::move(titles));
  std::vector<WatchLine> lines;
  for (const std::vector<std::string>& row : cells) {
    std::string text;
    for (size_t c = 0; c < kColumnCount; ++c) {
      if (widths[c] == 0) continue;
      if (!text.empty()) text += "  ";
      text += c + 1 == kColumnCount ? row[c] : Padded(row[c], widths[c], kColumns[c].right);
    }
    lines.push_back({text, lines.empty() ? WatchLine::Tone::kHeading : WatchLine::Tone::kPlain});
  }
  if (shown < nodes) lines.push_back({absl::StrCat("and ", nodes - shown, " more nodes")});
  return lines;
}

}  // namespace

void LossTrail::Add(uint64_t step, double loss) {
  if (step < step_) losses_.clear();  // the job has rolled back
  if (step == step_ || !std::isfinite(loss)) return;
  step_ = step;
  losses_.push_back(loss);
  if (losses_.size() > kMost) losses_.pop_front();
}

std::string LossTrail::Sparkline(size_t columns) const {
  static constexpr const char* kBars[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  if (losses_.size() < 2) return "";
  columns = std::min(columns, losses_.size());
  std::vector<double> means;
  for (size_t c = 0; c < columns; ++c) {
    const size_t begin = c * losses_.size() / columns, end = (c + 1) * losses_.size() / columns;
    double sum = 0;
    for (size_t i = begin; i < end; ++i) sum += losses_[i];
    means.push_back(sum / static_cast<double>(end - begin));
  }
  const auto [low, high] = std::minmax_element(means.begin(), means.end());
  const double range = *high - *low;
  std::string line;
  for (const double mean : means) {
    const double part = range > 0 ? (mean - *low) / range : 0;
    line += kBars[static_cast<size_t>(std::lround(part * (std::size(kBars) - 1)))];
  }
  return line;
}

size_t ColumnsOf(const std::string& text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), BeginsCharacter));
}

std::string Clipped(const std::string& text, size_t columns) {
  if (ColumnsOf(text) <= columns) return text;
  if (columns == 0) return "";
  size_t end = 0;
  for (size_t characters = 0; end < text.size(); ++end) {
    if (BeginsCharacter(text[end]) && ++characters == columns) break;
  }
  return text.substr(0, end) + "…";
}

std::vector<WatchLine> WatchLines(const StatusReply& status, const LossTrail& losses,
                                  const WatchSize& size) {
  using Tone = WatchLine::Tone;
  const bool failed = status.phase() == FAILED;
  std::vector<WatchLine> lines = {{JobText(status), failed ? Tone::kBad : Tone::kPlain},
                                  {FiguresText(status, losses)}};
  if (status.all_reduces()) lines.push_back({AllReduceText(status)});
  if (!status.failure().empty()) lines.push_back({status.failure(), Tone::kBad});
  const std::vector<std::string> late = LateTexts(status);
  for (size_t i = 0; i < late.size(); ++i) {
    if (i == kMaxLate) {
      lines.push_back({absl::StrCat("and ", late.size() - i, " more"), Tone::kLate});
      break;
    }
    lines.push_back({late[i], Tone::kLate});
  }
  if (late.empty() && status.phase() == RUNNING) lines.push_back({"no node is slow"});
  if (status.nodes_size() > 0 && lines.size() + 2 < size.rows) {
    for (WatchLine& line : Table(status, size, size.rows - lines.size())) {
      lines.push_back(std::move(line));
    }
  }
  if (lines.size() > size.rows) lines.resize(size.rows);
  for (WatchLine& line : lines) line.text = Clipped(WithoutControls(line.text), size.columns);
  return lines;
}

}  // namespace tug
