// SPDX-License-Identifier: Apache-2.0
#include "proto/wire.h"

#include <xxhash.h>

#include <array>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tug {
namespace {

using ::testing::HasSubstr;
using Bytes = std::array<std::byte, kHeaderBytes>;

WireHeader DistinctFields() {
  WireHeader header;
  header.kind = MessageKind::kWeights;
  header.codec = Codec::kNone;
  header.want = Want::kAtLeast;
  header.virtual_worker_count = 0x0102;
  header.sender = 0x80000003;
  header.job = 0x1112131415161718;
  header.timeline = 0x21222324;
  header.view = 0x31323334;
  header.block = 0x41424344;
  header.first_segment = 0x51525354;
  header.segment_count = 0x61626364;
  header.virtual_worker = 0x71727374;
  header.clock = 0x8182838485868788;
  header.version = 0x9192939495969798;
  header.token_count = 0xA1A2A3A4A5A6A7A8;
  header.ack_id = 0xB1B2B3B4B5B6B7B8;
  header.payload_bytes = 0x01020304;
  header.payload_xxh3 = 0xC1C2C3C4C5C6C7C8;
  return header;
}

Bytes Encode(const WireHeader& header) {
  Bytes bytes;
  EncodeHeader(header, bytes);
  return bytes;
}

// Recomputes the header checksum after a deliberate change of bytes.
void Reseal(Bytes& bytes) {
  const uint64_t sum = XXH3_64bits(bytes.data(), 96);
  for (size_t i = 0; i < 8; ++i) bytes[96 + i] = static_cast<std::byte>(sum >> (8 * i));
}

std::string Hex(std::span<const std::byte> bytes) {
  std::string hex;
  for (const std::byte b : bytes) {
    absl::StrAppend(&hex, absl::Hex(static_cast<uint8_t>(b), absl::kZeroPad2));
  }
  return hex;
}

TEST(Wire, ReadsWhatItWrote) {
  const WireHeader header = DistinctFields();
  const auto decoded = DecodeHeader(Encode(header));
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_EQ(*decoded, header);
  EXPECT_EQ(*DecodeHeader(Encode(WireHeader{})), WireHeader{});
}

// The format itself: these bytes must never change under version 9.
TEST(Wire, BytesAreTheGoldenOnes) {
  EXPECT_EQ(Hex(Encode(DistinctFields())),
            "54554731"            // magic
            "0900"                // format_version
            "06"                  // kind
            "00"                  // codec
            "01"                  // want
            "00"                  // reserved
            "0201"                // virtual_worker_count
            "03000080"            // sender
            "1817161514131211"    // job
            "24232221"            // timeline
            "34333231"            // view
            "44434241"            // block
            "54535251"            // first_segment
            "64636261"            // segment_count
            "74737271"            // virtual_worker
            "8887868584838281"    // clock
            "9897969594939291"    // version
            "a8a7a6a5a4a3a2a1"    // token_count
            "b8b7b6b5b4b3b2b1"    // ack_id
            "0403020100000000"    // payload_bytes
            "c8c7c6c5c4c3c2c1"    // payload_xxh3
            "69fd51775e567967");  // header_xxh3
}

TEST(Wire, RefusesEveryOtherLength) {
  const Bytes bytes = Encode(DistinctFields());
  for (size_t length = 0; length < kHeaderBytes; ++length) {
    // A heap copy of exactly that length, so that a sanitizer detects a read beyond it.
    const std::vector<std::byte> cut(bytes.begin(), bytes.begin() + length);
    const auto decoded = DecodeHeader(cut);
    EXPECT_EQ(decoded.status().code(), absl::StatusCode::kInvalidArgument) << length;
    EXPECT_THAT(std::string(decoded.status().message()),
                HasSubstr(absl::StrCat("header has ", length, " bytes, expected 104")));
  }
  std::vector<std::byte> longer(bytes.begin(), bytes.end());
  longer.push_back(std::byte{0});
  EXPECT_FALSE(DecodeHeader(longer).ok());
}

TEST(Wire, RefusesEveryFlippedBit) {
  for (const WireHeader& header : {WireHeader{}, DistinctFields()}) {
    Bytes bytes = Encode(header);
    for (size_t bit = 0; bit < 8 * kHeaderBytes; ++bit) {
      bytes[bit / 8] ^= std::byte{1} << (bit % 8);
      EXPECT_FALSE(DecodeHeader(bytes).ok()) << "bit " << bit;
      bytes[bit / 8] ^= std::byte{1} << (bit % 8);
    }
    EXPECT_TRUE(DecodeHeader(bytes).ok());
  }
}

TEST(Wire, AnotherVersionIsNamedBesideOurs) {
  Bytes bytes = Encode(DistinctFields());
  bytes[4] = std::byte{10};
  Reseal(bytes);
  // A later version may have another length; magic and version keep their place.
  std::vector<std::byte> future(bytes.begin(), bytes.end());
  future.resize(128);
  for (const std::span<const std::byte> sent :
       {std::span<const std::byte>(bytes), std::span<const std::byte>(future)}) {
    const auto decoded = DecodeHeader(sent);
    EXPECT_EQ(decoded.status().code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(decoded.status().message()), HasSubstr("version 10"));
    EXPECT_THAT(std::string(decoded.status().message()), HasSubstr("version 9"));
  }
}

TEST(Wire, RefusesWrongMagic) {
  Bytes bytes = Encode(DistinctFields());
  bytes[0] = std::byte{'G'};
  Reseal(bytes);
  EXPECT_THAT(std::string(DecodeHeader(bytes).status().message()), HasSubstr("TUG1"));
}

TEST(Wire, RefusesValuesOutOfRangeByName) {
  struct Case {
    size_t offset;
    uint8_t value;
    const char* field;
  };
  for (const Case& c : {Case{6, 0, "kind"}, Case{6, 22, "kind"}, Case{6, 255, "kind"},
                        Case{7, 6, "codec"}, Case{7, 255, "codec"}, Case{8, 2, "want"},
                        Case{9, 1, "reserved"}, Case{87, 1, "payload_bytes"}}) {
    Bytes bytes = Encode(DistinctFields());
    bytes[c.offset] = static_cast<std::byte>(c.value);
    Reseal(bytes);
    const auto decoded = DecodeHeader(bytes);
    EXPECT_EQ(decoded.status().code(), absl::StatusCode::kInvalidArgument) << c.field;
    EXPECT_THAT(std::string(decoded.status().message()), HasSubstr(c.field));
  }
}

TEST(Wire, PayloadBoundIsInclusive) {
  WireHeader header;
  header.payload_bytes = kMaxPayloadBytes;
  EXPECT_TRUE(DecodeHeader(Encode(header)).ok());
  header.payload_bytes = kMaxPayloadBytes + 1;
  EXPECT_FALSE(DecodeHeader(Encode(header)).ok());
}

TEST(Wire, PayloadChecksumSeesAnyChangeAndIsNeverZero) {
  std::vector<std::byte> payload(1000);
  const uint64_t sum = PayloadChecksum(payload);
  EXPECT_NE(sum, 0u);
  EXPECT_NE(PayloadChecksum({}), 0u);
  payload[999] = std::byte{1};
  EXPECT_NE(PayloadChecksum(payload), sum);
}

TEST(Wire, DocumentedTableIsTheOneInTheCode) {
  std::ifstream file("docs/wire_format.md");
  ASSERT_TRUE(file) << "docs/wire_format.md is missing";
  std::stringstream text;
  text << file.rdbuf();
  for (const WireField& field : kWireFields) {
    const std::string row =
        absl::StrCat("| ", field.offset, " | ", field.size, " | `", field.name, "` |");
    EXPECT_THAT(text.str(), HasSubstr(row));
  }
}

}  // namespace
}  // namespace tug
