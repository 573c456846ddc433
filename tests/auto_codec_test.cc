// SPDX-License-Identifier: Apache-2.0
// Jobs whose workers choose the encodings of pushes and pulls per link. Real processes.

#include <cmath>
#include <fstream>
#include <iterator>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/run_result.h"
#include "tests/support/tug_test.h"

namespace tug {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

class AutoCodecTest : public TugTest {
 protected:
  static Texts Auto(Texts more = {}) {
    return Texts{"comm.push_codec.auto={}", "comm.push_codec.warmup_steps=0",
                 "comm.pull_format=PULL_AUTO"} +
           more;
  }
  // Contents of metrics.jsonl.
  std::string Metrics(const std::string& run) const {
    std::ifstream file(Path(run) + "/metrics.jsonl");
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }
  Losses LossesOf(const std::string& run) const {
    const absl::StatusOr<Losses> losses = ReadLosses(Path(run));
    EXPECT_TRUE(losses.ok()) << losses.status();
    return losses.value_or(Losses());
  }
};

TEST_F(AutoCodecTest, ThroughSharedMemoryEverythingIsFp32ToTheBit) {
  Train("fp32");
  Train("auto", Auto());
  ASSERT_FALSE(HasFailure());
  ExpectSameState(Path("fp32"), Path("auto"));
  ExpectSameLosses(LossesOf("fp32"), LossesOf("auto"));
  EXPECT_THAT(Metrics("auto"), Not(HasSubstr("\"encode_seconds\""))) << "nothing is encoded";
}

TEST_F(AutoCodecTest, OverASlowLinkFewBytesAreChosenAndLearnedFrom) {
  const Texts link = {"comm.shared_memory=false", "comm.impair.rate_mbit=10", "train.steps=300"};
  Train("fp32", {"train.steps=300"});
  Train("auto", Auto(link));
  ASSERT_FALSE(HasFailure());
  const std::string metrics = Metrics("auto");
  EXPECT_THAT(metrics, ContainsRegex("worker-[0-9]+ pushes to server-[-server0-9, ]+ as "
                                     "(top_k_int8|one_bit|int8) \\([0-9.]+ Mbit/s\\)"));
  EXPECT_THAT(metrics, ContainsRegex("pulls from server-[-server0-9, ]+ as int8"));
  const Losses fp32 = LossesOf("fp32"), chosen = LossesOf("auto");
  const double loss = chosen.validation.at(300);
  EXPECT_TRUE(std::isfinite(loss));
  EXPECT_LT(loss, chosen.training.at(1));
  EXPECT_NEAR(loss, fp32.validation.at(300), 0.4);
}

}  // namespace
}  // namespace tug
