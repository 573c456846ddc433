// SPDX-License-Identifier: Apache-2.0
// Properties of the header over random fields and random bytes. A failure prints the seed and the
// round; both are fixed, so a failure repeats.

#include <xxhash.h>

#include <array>
#include <iostream>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "proto/wire.h"

namespace tug {
namespace {

constexpr uint64_t kSeed = 20240817;
using Bytes = std::array<std::byte, kHeaderBytes>;

class WireFuzz : public ::testing::Test {
 protected:
  WireFuzz() : random_(kSeed) { std::cout << "seed " << kSeed << std::endl; }

  WireHeader RandomHeader() {
    WireHeader header;
    header.kind = static_cast<MessageKind>(1 + random_() % 11);
    header.want = static_cast<Want>(random_() % 2);
    header.virtual_worker_count = static_cast<uint16_t>(random_());
    header.sender = static_cast<uint32_t>(random_());
    header.job = random_();
    header.timeline = static_cast<uint32_t>(random_());
    header.view = static_cast<uint32_t>(random_());
    header.block = static_cast<uint32_t>(random_());
    header.first_segment = static_cast<uint32_t>(random_());
    header.segment_count = static_cast<uint32_t>(random_());
    header.virtual_worker = static_cast<uint32_t>(random_());
    header.clock = random_();
    header.version = random_();
    header.token_count = random_();
    header.ack_id = random_();
    header.payload_bytes = random_() % (kMaxPayloadBytes + 1);
    header.payload_xxh3 = random_();
    return header;
  }

  template <typename Container>
  void FillRandomly(Container& bytes) {
    for (std::byte& b : bytes) b = static_cast<std::byte>(random_());
  }

  std::mt19937_64 random_;
};

TEST_F(WireFuzz, AnyHeaderSurvivesTheRoundTrip) {
  for (int round = 0; round < 20000; ++round) {
    const WireHeader header = RandomHeader();
    Bytes bytes;
    EncodeHeader(header, bytes);
    const auto decoded = DecodeHeader(bytes);
    ASSERT_TRUE(decoded.ok()) << decoded.status() << ", seed " << kSeed << " round " << round;
    ASSERT_EQ(*decoded, header) << "seed " << kSeed << " round " << round;
  }
}

TEST_F(WireFuzz, RandomBytesOfAnyLengthAreRefused) {
  for (int round = 0; round < 20000; ++round) {
    std::vector<std::byte> bytes(random_() % 200);
    FillRandomly(bytes);
    ASSERT_FALSE(DecodeHeader(bytes).ok()) << "seed " << kSeed << " round " << round;
  }
}

TEST_F(WireFuzz, SeveralChangedBytesAreRefused) {
  for (int round = 0; round < 20000; ++round) {
    Bytes bytes;
    EncodeHeader(RandomHeader(), bytes);
    const Bytes original = bytes;
    for (uint64_t n = 1 + random_() % 8; n > 0; --n) {
      bytes[random_() % kHeaderBytes] = static_cast<std::byte>(random_());
    }
    if (bytes == original) continue;
    ASSERT_FALSE(DecodeHeader(bytes).ok()) << "seed " << kSeed << " round " << round;
  }
}

// A hostile sender can compute the checksum. A header that passes must be in range, and encoding it
// must give the same bytes, so nothing is hidden in it.
TEST_F(WireFuzz, AcceptedForgedHeadersAreInRangeAndCanonical) {
  int passed = 0;
  for (int round = 0; round < 20000; ++round) {
    Bytes bytes;
    EncodeHeader(RandomHeader(), bytes);
    bytes[6 + random_() % 4] = static_cast<std::byte>(random_() % 15);
    if (random_() % 4 == 0) bytes[80 + random_() % 8] = static_cast<std::byte>(random_());
    const uint64_t sum = XXH3_64bits(bytes.data(), 96);
    for (size_t i = 0; i < 8; ++i) bytes[96 + i] = static_cast<std::byte>(sum >> (8 * i));
    const auto decoded = DecodeHeader(bytes);
    if (!decoded.ok()) continue;
    ++passed;
    ASSERT_GE(static_cast<int>(decoded->kind), 1);
    ASSERT_LE(static_cast<int>(decoded->kind), 16);
    ASSERT_LE(static_cast<int>(decoded->want), 1);
    ASSERT_LE(static_cast<int>(decoded->codec), static_cast<int>(Codec::kChanges));
    ASSERT_LE(decoded->payload_bytes, kMaxPayloadBytes);
    Bytes again;
    EncodeHeader(*decoded, again);
    ASSERT_EQ(again, bytes) << "seed " << kSeed << " round " << round;
  }
  EXPECT_GT(passed, 100);
}

}  // namespace
}  // namespace tug
