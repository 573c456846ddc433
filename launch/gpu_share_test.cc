// SPDX-License-Identifier: Apache-2.0
#include "launch/gpu_share.h"

#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tug {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(GpusOfWorker, AreAsManyForEachInARow) {
  const std::vector<int> gpus = {0, 1, 2, 4, 5, 6, 7};
  EXPECT_THAT(GpusOfWorker(gpus, {0, 1}), ElementsAre(0, 1, 2, 4, 5, 6, 7));
  EXPECT_THAT(GpusOfWorker(gpus, {0, 2}), ElementsAre(0, 1, 2));
  EXPECT_THAT(GpusOfWorker(gpus, {1, 2}), ElementsAre(4, 5, 6));
  EXPECT_THAT(GpusOfWorker(gpus, {6, 7}), ElementsAre(7));
}

TEST(GpusOfWorker, AreSharedWhereThereAreFewer) {
  EXPECT_THAT(GpusOfWorker({0, 1, 2}, {0, 4}), ElementsAre(0));
  EXPECT_THAT(GpusOfWorker({0, 1, 2}, {2, 4}), ElementsAre(2));
  EXPECT_THAT(GpusOfWorker({0, 1, 2}, {3, 4}), ElementsAre(0));
  EXPECT_THAT(GpusOfWorker({}, {3, 4}), IsEmpty());
}

TEST(GpusOfWorker, NoneIsSharedWhileAnotherHasNoWorker) {
  for (uint32_t workers = 1; workers <= 9; ++workers) {
    for (int count = 1; count <= 9; ++count) {
      std::vector<int> gpus;
      for (int gpu = 0; gpu < count; ++gpu) gpus.push_back(gpu);
      std::multiset<int> taken;
      for (uint32_t worker = 0; worker < workers; ++worker) {
        for (const int gpu : GpusOfWorker(gpus, {worker, workers})) taken.insert(gpu);
      }
      const std::set<int> different(taken.begin(), taken.end());
      EXPECT_TRUE(different.size() == taken.size() || different.size() == gpus.size())
          << workers << " workers, GPUs: " << count;
    }
  }
}

TEST(GpuShare, IsTextAndBack) {
  const auto share = ParseGpuShare("1/4");
  ASSERT_TRUE(share.has_value());
  EXPECT_EQ(GpuShareText(*share), "1/4");
  for (const char* bad : {"", "1", "/", "1/", "/4", "4/4", "0/0", "-1/4", "1/4/2", "a/b"}) {
    EXPECT_FALSE(ParseGpuShare(bad).has_value()) << bad;
  }
}

}  // namespace
}  // namespace tug
