// SPDX-License-Identifier: Apache-2.0
#include "coordinator/observe/progress_line.h"

#include <algorithm>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tug {
namespace {

using ::testing::HasSubstr;

// Collects the output.
struct Capture {
  ProgressLine::Output output() {
    return [this](absl::string_view piece) { text.append(piece.data(), piece.size()); };
  }
  std::string text;
};

StepMetrics Step(uint64_t step) {
  StepMetrics metrics;
  metrics.step = step;
  metrics.loss = 2.1134;
  metrics.tokens = 768;
  metrics.seconds = 0.0244;
  metrics.wait_seconds = 0.0041;
  metrics.pushed_bytes = 3300000;
  metrics.pulled_bytes = 3300000;
  return metrics;
}

int Lines(const std::string& text) {
  return static_cast<int>(std::count(text.begin(), text.end(), '\n'));
}

TEST(ProgressText, IsReadable) {
  EXPECT_EQ(WithThousands(0), "0");
  EXPECT_EQ(WithThousands(999), "999");
  EXPECT_EQ(WithThousands(1234567), "1,234,567");
  EXPECT_EQ(DurationText(47.2), "0:48");
  EXPECT_EQ(DurationText(3723), "1:02:03");
  EXPECT_EQ(DurationText(-1), "?");
  EXPECT_EQ(ByteText(6.6e6), "6.6 MB");
}

TEST(ProgressLine, SaysThatItIsAReplayAndCountsSamples) {
  Capture capture;
  ProgressLine line(capture.output(), true, 2000, "vgg16");
  line.Step(Step(340), absl::UnixEpoch());
  EXPECT_EQ(line.Text(),
            "replay of vgg16  step 340/2000  31,475 samples/s  left 0:41  exchange 4.1 ms, 6.6 "
            "MB/step");
}

TEST(ProgressLine, SaysWhatAPersonWantsToKnow) {
  Capture out;
  ProgressLine line(out.output(), /*terminal=*/false, 2000);
  line.Step(Step(340), absl::UnixEpoch());
  EXPECT_EQ(
      out.text,
      "step 340/2000  loss 2.113  31,475 tokens/s  left 0:41  exchange 4.1 ms, 6.6 MB/step\n");
}

TEST(ProgressLine, WritesAPlainLineNowAndThen) {
  Capture out;
  ProgressLine line(out.output(), /*terminal=*/false, 100000);
  for (uint64_t step = 1; step <= 3000; ++step) {
    line.Step(Step(step), absl::UnixEpoch() + absl::Milliseconds(10) * step);
  }
  EXPECT_EQ(Lines(out.text), 3);  // at once, after 10 s, after 20 s
  line.Finish();
  EXPECT_EQ(Lines(out.text), 4);
  EXPECT_THAT(out.text, HasSubstr("step 3000/"));
}

TEST(ProgressLine, TellsOfALongWaitAgainAndAgain) {
  Capture out;
  ProgressLine line(out.output(), /*terminal=*/false, 100);
  for (int second = 1; second <= 16; ++second) {
    line.Wait("waiting for 1 server to join", absl::Seconds(second),
              absl::UnixEpoch() + absl::Seconds(second));
  }
  EXPECT_EQ(Lines(out.text), 3);  // after 5 s, 10 s and 15 s
  EXPECT_THAT(out.text, HasSubstr("waiting for 1 server to join\n"));
}

TEST(ProgressLine, RewritesOneRowOnATerminal) {
  Capture out;
  ProgressLine line(out.output(), /*terminal=*/true, 100);
  line.Wait("waiting for 1 worker", absl::Seconds(1), absl::UnixEpoch());
  for (uint64_t step = 1; step <= 50; ++step) {
    line.Step(Step(step), absl::UnixEpoch() + absl::Milliseconds(200) * step);
  }
  EXPECT_EQ(Lines(out.text), 0);
  line.Say("checkpoint");
  // A terminal narrower than the line must not wrap it: the next update rewrites one row.
  EXPECT_THAT(out.text, HasSubstr("\r\x1b[Kcheckpoint\n\r\x1b[K\x1b[?7lstep 50/100"));
  EXPECT_TRUE(out.text.ends_with("\x1b[?7h"));
  line.Finish();
  EXPECT_EQ(Lines(out.text), 2);
}

}  // namespace
}  // namespace tug
