// SPDX-License-Identifier: Apache-2.0
#include "server/segments/lane_memory.h"

#include <signal.h>
#include <sys/resource.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tug {
namespace {

using Use = LaneMemory::Use;

std::string Folder(const std::string& name) {
  const std::string path = ::testing::TempDir() + "/" + name;
  std::filesystem::remove_all(path);
  std::filesystem::create_directories(path);
  return path;
}

TEST(LaneMemory, CountsTheMostOfWeightsAndStateAtATime) {
  const auto memory = LaneMemory::Create();
  {
    const AlignedBuffer sent = memory->New(Use::kSentWeights, 1000);
    const AlignedBuffer other = memory->New(Use::kWeights, 500);
    const AlignedBuffer snapshot = memory->New(Use::kSnapshot, 10'000);
    AlignedBuffer m = memory->New(Use::kState, 70);
    EXPECT_EQ(memory->weights().now(), 1500u);
    m = memory->New(Use::kState, 60);
    EXPECT_EQ(memory->state().now(), 60u);
  }
  EXPECT_EQ(memory->weights().now(), 0u);
  EXPECT_EQ(memory->weights().most(), 1500u);
  EXPECT_EQ(memory->state().most(), 130u);
}

TEST(LaneMemory, SentWeightsLieWhereTheTransportSays) {
  std::vector<size_t> asked;
  const auto memory = LaneMemory::Create([&](size_t size_bytes) {
    asked.push_back(size_bytes);
    return std::make_shared<AlignedBuffer>(size_bytes);
  });
  memory->New(Use::kWeights, 128);
  memory->New(Use::kState, 128);
  EXPECT_TRUE(asked.empty());
  memory->New(Use::kSentWeights, 192);
  EXPECT_THAT(asked, ::testing::ElementsAre(192));
}

TEST(LaneMemory, OffloadedStateLiesInAFileWithoutAName) {
  const std::string folder = Folder("offload");
  const auto memory = LaneMemory::Create([](size_t) -> std::shared_ptr<AlignedBuffer> {
    ADD_FAILURE() << "the transport's memory";
    return nullptr;
  });
  ASSERT_TRUE(memory->Offload(folder, 1 << 20).ok());
  {
    AlignedBuffer weights = memory->New(Use::kSentWeights, 1 << 16);
    AlignedBuffer m = memory->New(Use::kState, 1 << 16);
    std::fill(weights.floats().begin(), weights.floats().end(), 3.0f);
    std::fill(m.floats().begin(), m.floats().end(), 5.0f);
    EXPECT_EQ(weights.floats().back(), 3.0f);
  }
  const AlignedBuffer again = memory->New(Use::kState, 1 << 16);
  EXPECT_TRUE(std::all_of(again.floats().begin(), again.floats().end(), [](float value) {
    return value == 0;
  })) << "what was another's begins with zeros";
  EXPECT_EQ(memory->state().most(), uint64_t{1} << 16);
  EXPECT_TRUE(std::filesystem::is_empty(folder));
  EXPECT_TRUE(memory->failure().ok());
}

TEST(LaneMemory, NamesTheFolderItCannotOffloadTo) {
  const auto memory = LaneMemory::Create();
  const absl::Status missing = memory->Offload("/no/such/folder", 1 << 20);
  EXPECT_EQ(missing.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(missing.message()), ::testing::HasSubstr("/no/such/folder"));
}

TEST(LaneMemory, RefusesOffloadBeyondDiskSpaceBeforeWriting) {
  const std::string folder = Folder("full");
  const auto memory = LaneMemory::Create();
  const absl::Status full = memory->Offload(folder, uint64_t{1} << 50);
  EXPECT_EQ(full.code(), absl::StatusCode::kResourceExhausted) << full;
  EXPECT_THAT(std::string(full.message()), ::testing::HasSubstr(folder));
  EXPECT_TRUE(std::filesystem::is_empty(folder));
}

TEST(LaneMemory, ABufferThatTheFileHasNoRoomForLiesInMemoryAndSaysWhy) {
  const auto memory = LaneMemory::Create();
  ASSERT_TRUE(memory->Offload(Folder("little"), 1 << 16).ok());
  // Like a full disk, except for the signal.
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit little{.rlim_cur = 1 << 20, .rlim_max = before.rlim_max};
  ASSERT_NE(signal(SIGXFSZ, SIG_IGN), SIG_ERR);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &little), 0);
  AlignedBuffer large = memory->New(Use::kState, 128 << 20);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  large.floats().back() = 1;
  EXPECT_EQ(memory->state().now(), uint64_t{128} << 20);
  EXPECT_EQ(memory->failure().code(), absl::StatusCode::kResourceExhausted) << memory->failure();
}

}  // namespace
}  // namespace tug
