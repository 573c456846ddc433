// SPDX-License-Identifier: Apache-2.0
#include "collective/collective_header.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tug {
namespace {

constexpr CollectiveShape kShape{.elements = uint64_t{1} << 40,
                                 .type = static_cast<uint32_t>(ElementType::kBf16),
                                 .parts = 12,
                                 .steps = 34};

CollectiveHeader Carried(MessageKind kind, const CollectiveHeader& says) {
  WireHeader header;
  header.kind = kind;
  WriteCollectiveHeader(says, header);
  EXPECT_EQ(CollectiveOf(header), says.number);
  return ReadCollectiveHeader(header);
}

TEST(CollectiveHeader, ElementsSayWhereTheyBelong) {
  const CollectiveHeader read =
      Carried(MessageKind::kElements, {.number = 5,
                                       .shape = kShape,
                                       .over_network = true,
                                       .message = 6,
                                       .first_element = uint64_t{1} << 39});
  EXPECT_EQ(read.number, 5u);
  EXPECT_EQ(read.shape, kShape);
  EXPECT_TRUE(read.over_network);
  EXPECT_EQ(read.message, 6u);
  EXPECT_EQ(read.first_element, uint64_t{1} << 39);
  EXPECT_FALSE(read.received);
}

TEST(CollectiveHeader, AWordAboutAPortSaysWhetherTheMessagesHaveCome) {
  for (const bool received : {false, true}) {
    const CollectiveHeader read =
        Carried(MessageKind::kClearToSend,
                {.number = 5, .shape = kShape, .message = 6, .received = received});
    EXPECT_EQ(read.message, 6u);
    EXPECT_EQ(read.received, received);
    EXPECT_EQ(read.first_element, 0u);
  }
}

TEST(CollectiveHeader, AFailureSaysWhoseAndWhich) {
  WireHeader header;
  header.kind = MessageKind::kRankFailed;
  WriteRankFailure({.rank = 3, .code = 14}, header);
  const RankFailure failure = ReadRankFailure(header);
  EXPECT_EQ(failure.rank, 3u);
  EXPECT_EQ(failure.code, 14u);
}

TEST(CollectiveHeader, TextNamesATypeThatThereIsNotByItsNumber) {
  EXPECT_EQ(CollectiveText({.elements = 4096, .parts = 2, .steps = 2}),
            "4096 FP32 elements in 2 parts and 2 steps");
  EXPECT_THAT(CollectiveText({.elements = 1, .type = 77}), testing::HasSubstr("type 77"));
}

}  // namespace
}  // namespace tug
