// SPDX-License-Identifier: Apache-2.0
#include "coordinator/observe/progress_line.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/log.h"

namespace tug {

std::string WithThousands(uint64_t number) {
  const std::string digits = std::to_string(number);
  std::string text;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) text += ',';
    text += digits[i];
  }
  return text;
}

std::string ByteText(double bytes) {
  if (bytes < 1e3) return absl::StrFormat("%.0f B", bytes);
  if (bytes < 1e6) return absl::StrFormat("%.1f kB", bytes / 1e3);
  if (bytes < 1e9) return absl::StrFormat("%.1f MB", bytes / 1e6);
  return absl::StrFormat("%.2f GB", bytes / 1e9);
}

std::string DurationText(double seconds) {
  if (!std::isfinite(seconds) || seconds < 0) return "?";
  const int64_t whole = static_cast<int64_t>(std::ceil(std::min(seconds, 1e9)));
  const int64_t hours = whole / 3600, minutes = whole / 60 % 60, rest = whole % 60;
  if (hours > 0) return absl::StrFormat("%d:%02d:%02d", hours, minutes, rest);
  return absl::StrFormat("%d:%02d", minutes, rest);
}

namespace {

// Control sequences of terminals (DECAWM, EL). Without automatic wrapping a narrow terminal clips
// the line, which then stays in one row.
constexpr char kRewrite[] = "\r\x1b[K\x1b[?7l";
constexpr char kWrapAgain[] = "\x1b[?7h";

}  // namespace

std::string ProgressLine::Text() const {
  if (recent_.empty()) return waiting_;
  double tokens = 0, seconds = 0, wait = 0, bytes = 0;
  for (const StepMetrics& metrics : recent_) {
    tokens += static_cast<double>(metrics.tokens);
    seconds += metrics.seconds;
    wait += metrics.wait_seconds;
    bytes += static_cast<double>(metrics.pushed_bytes + metrics.pulled_bytes);
  }
  const double count = static_cast<double>(recent_.size());
  const StepMetrics& newest = recent_.back();
  const uint64_t left = steps_ > newest.step ? steps_ - newest.step : 0;
  const bool replays = !replay_.empty();
  std::string text = absl::StrFormat("%sstep %d/%d  ", replays ? "replay of " + replay_ + "  " : "",
                                     newest.step, steps_);
  if (!replays) absl::StrAppendFormat(&text, "loss %.3f  ", newest.loss);
  absl::StrAppendFormat(&text, "%s %s/s  left %s  exchange %.1f ms, %s/step",
                        WithThousands(seconds > 0 ? static_cast<uint64_t>(tokens / seconds) : 0),
                        replays ? "samples" : "tokens",
                        DurationText(seconds / count * static_cast<double>(left)),
                        wait / count * 1e3, ByteText(bytes / count));
  return text;
}

void ProgressLine::Step(const StepMetrics& metrics, absl::Time now) {
  recent_.push_back(metrics);
  if (recent_.size() > kRecentSteps) recent_.pop_front();
  const absl::Duration gap = now - shown_at_;
  const bool twentieth = metrics.step - shown_step_ >= std::max<uint64_t>(1, steps_ / 20);
  const bool due =
      terminal_ ? gap >= kTerminalGap : gap >= kPlainGap || (twentieth && gap >= kMinPlainGap);
  if (!due) return;
  shown_at_ = now;
  Show(Text());
}

void ProgressLine::Show(const std::string& text) {
  if (!recent_.empty()) shown_step_ = recent_.back().step;
  if (out_ == nullptr) return;
  out_(terminal_ ? absl::StrCat(kRewrite, text, kWrapAgain) : absl::StrCat(text, "\n"));
  line_open_ = terminal_;
}

void ProgressLine::Say(const std::string& text) {
  if (out_ == nullptr) return LogInfo(text);
  LogInFile(LogLevel::kInfo, text);
  const bool reopen = line_open_;
  // In one write: a slow reader may miss progress, but no lines.
  out_(absl::StrCat(reopen ? "\r\x1b[K" : "", text, "\n"));
  line_open_ = false;
  if (reopen) Show(Text());
}

void ProgressLine::Wait(const std::string& text, absl::Duration lasts, absl::Time now) {
  if (!text.empty() && lasts >= kLongWait && now - wait_told_at_ >= kWaitGap) {
    wait_told_at_ = now;
    Say(text);
  }
  if (!terminal_ || text == waiting_ || !recent_.empty()) return;
  waiting_ = text;
  if (text.empty()) {
    Clear();
  } else {
    Show(text);
  }
}

void ProgressLine::Finish() {
  if (!recent_.empty() && (terminal_ || recent_.back().step != shown_step_)) Show(Text());
  if (line_open_) out_("\n");
  line_open_ = false;
}

void ProgressLine::Clear() {
  if (!line_open_) return;
  out_("\r\x1b[K");
  line_open_ = false;
}

}  // namespace tug
