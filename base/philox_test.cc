// SPDX-License-Identifier: Apache-2.0
#include "base/philox.h"

#include "gtest/gtest.h"

namespace tug {
namespace {

using Words = std::array<uint32_t, 4>;

// Random123, examples/kat_vectors: philox4x32 with 10 rounds.
TEST(Philox, MatchesTheKnownAnswersOfRandom123) {
  EXPECT_EQ(Philox4x32({0, 0, 0, 0}, {0, 0}),
            (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(Philox4x32({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(Philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, UniformIsNeverZeroOrOne) {
  EXPECT_GT(UniformFromBits(0), 0.0f);
  EXPECT_LT(UniformFromBits(0xffffffff), 1.0f);
  EXPECT_NEAR(UniformFromBits(0x80000000), 0.5f, 1e-6f);
}

}  // namespace
}  // namespace tug
