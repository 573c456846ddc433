// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/safetensors.h"

#include <xxhash.h>

#include <cstring>
#include <fstream>
#include <numeric>
#include <random>

#include "absl/strings/str_cat.h"
#include "base/files/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tug {
namespace {

using ::testing::HasSubstr;

std::string Path(const std::string& name) { return testing::TempDir() + "/" + name; }

void WriteBytes(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

std::string ReadBytes(const std::string& path) { return *ReadWholeFile(path, 1 << 30); }

// A file with this header and `data_bytes` zeros.
std::string FileOf(const std::string& header, size_t data_bytes) {
  const uint64_t size = header.size();
  std::string bytes(reinterpret_cast<const char*>(&size), sizeof(size));
  return bytes + header + std::string(data_bytes, '\0');
}

absl::Status OpenBytes(const std::string& bytes) {
  const std::string path = Path("crafted.safetensors");
  WriteBytes(path, bytes);
  auto reader = SafetensorsReader::Open(path);
  if (!reader.ok()) {
    EXPECT_THAT(std::string(reader.status().message()), HasSubstr(path));
    EXPECT_THAT(std::string(reader.status().message()), HasSubstr("; "));
    EXPECT_EQ(reader.status().message().find('\n'), absl::string_view::npos);
    return reader.status();
  }
  // Read every byte of the tensors: all must be inside the file.
  uint64_t sum = 0;
  for (const TensorView& tensor : reader->tensors()) {
    for (const std::byte b : tensor.bytes) sum += static_cast<uint64_t>(b);
  }
  EXPECT_LE(sum, 255 * bytes.size());
  return absl::OkStatus();
}

std::string SmallFile(const std::string& path) {
  auto writer = SafetensorsWriter::Create(path, {{"a/0-6/w", {2, 3}}, {"empty", {0}}, {"s", {}}});
  EXPECT_TRUE(writer.ok()) << writer.status();
  const float values[] = {1, 2, 3, 4, 5, 6, -7};
  EXPECT_TRUE(writer->Append(std::span(values).first(4)).ok());
  EXPECT_TRUE(writer->Append(std::span(values).subspan(4)).ok());
  EXPECT_TRUE(writer->Finish().ok());
  const std::string bytes = ReadBytes(path);
  EXPECT_EQ(writer->size_bytes(), bytes.size());
  EXPECT_EQ(writer->xxh3(), XXH3_64bits(bytes.data(), bytes.size()));
  return bytes;
}

TEST(Safetensors, WritesTheBytesOfTheFormat) {
  const std::string bytes = SmallFile(Path("format.safetensors"));
  std::string header = R"({"a/0-6/w":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},)"
                       R"("empty":{"dtype":"F32","shape":[0],"data_offsets":[24,24]},)"
                       R"("s":{"dtype":"F32","shape":[],"data_offsets":[24,28]}})";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  const float values[] = {1, 2, 3, 4, 5, 6, -7};
  std::string expected = FileOf(header, sizeof(values));
  std::memcpy(expected.data() + expected.size() - sizeof(values), values, sizeof(values));
  EXPECT_EQ(bytes, expected);
}

TEST(Safetensors, ReadsWhatItWrote) {
  const std::string path = Path("round_trip.safetensors");
  std::vector<float> large(700'001);
  std::iota(large.begin(), large.end(), 0.5f);
  auto writer = SafetensorsWriter::Create(path, {{"large", {large.size()}}, {"one", {1, 1}}});
  ASSERT_TRUE(writer.ok());
  ASSERT_TRUE(writer->Append(large).ok());
  ASSERT_TRUE(writer->Append(std::span(large).subspan(5, 1)).ok());
  ASSERT_TRUE(writer->Finish().ok());
  auto opened = SafetensorsReader::Open(path);
  ASSERT_TRUE(opened.ok()) << opened.status();
  const SafetensorsReader reader = *std::move(opened);
  ASSERT_EQ(reader.tensors().size(), 2u);
  EXPECT_EQ(reader.tensors()[0].name, "large");
  EXPECT_THAT(reader.tensors()[0].shape, testing::ElementsAre(large.size()));
  EXPECT_EQ(std::memcmp(reader.tensors()[0].bytes.data(), large.data(), 4 * large.size()), 0);
  EXPECT_THAT(reader.tensors()[1].shape, testing::ElementsAre(1, 1));
  const std::byte* data = reader.tensors()[0].bytes.data();
  EXPECT_EQ((data - reader.file_bytes().data()) % 8, 0);
}

TEST(Safetensors, TruncatedAtAnyLengthIsAnError) {
  const std::string bytes = SmallFile(Path("truncated.safetensors"));
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_TRUE(absl::IsDataLoss(OpenBytes(bytes.substr(0, size)))) << size;
  }
  EXPECT_TRUE(absl::IsDataLoss(OpenBytes(bytes + "x")));
}

TEST(Safetensors, FlippedHeaderBitsNeverLeadOutsideTheFile) {
  const std::string bytes = SmallFile(Path("flipped.safetensors"));
  const size_t header_end = bytes.size() - 28;
  int refused = 0;
  for (size_t at = 0; at < header_end; ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string flipped = bytes;
      flipped[at] = static_cast<char>(flipped[at] ^ (1 << bit));
      refused += !OpenBytes(flipped).ok();
    }
  }
  EXPECT_GT(refused, 0);
}

TEST(Safetensors, RandomHeadersNeverCrash) {
  const uint64_t seed = 20240521;
  SCOPED_TRACE(absl::StrCat("seed ", seed));
  std::mt19937_64 random(seed);
  const std::string alphabet = "{}[]\",:0123456789-.eE\\ F32dtypeshapedata_offsets\xff";
  for (int trial = 0; trial < 300; ++trial) {
    std::string header = "{";
    for (size_t i = random() % 60; i > 0; --i) header += alphabet[random() % alphabet.size()];
    (void)OpenBytes(FileOf(header, random() % 32));
  }
}

TEST(Safetensors, RefusesHeadersThatContradictThemselves) {
  const auto tensor = [](const std::string& name, const std::string& shape,
                         const std::string& offsets) {
    return absl::StrCat("\"", name, R"(":{"dtype":"F32","shape":)", shape, R"(,"data_offsets":)",
                        offsets, "}");
  };
  const std::string a = tensor("a", "[2]", "[0,8]");
  EXPECT_TRUE(OpenBytes(FileOf(absl::StrCat("{", a, "}"), 8)).ok());
  EXPECT_TRUE(OpenBytes(FileOf(absl::StrCat(R"({"__metadata__":{"k":"v"},)", a, "}"), 8)).ok());
  EXPECT_TRUE(
      OpenBytes(FileOf(absl::StrCat("{", tensor("b", "[1]", "[8,12]"), ",", a, "}"), 12)).ok());
  const std::string wrong[] = {
      "",
      "[]",
      absl::StrCat("{", a),
      absl::StrCat("{", a, ",", tensor("b", "[1]", "[4,8]"), "}"),              // overlap
      absl::StrCat("{", a, ",", tensor("a", "[2]", "[0,8]"), "}"),              // duplicate
      absl::StrCat("{", tensor("a", "[1]", "[4,8]"), "}"),                      // hole at the front
      absl::StrCat("{", tensor("a", "[1]", "[0,4]"), "}"),                      // unused bytes
      absl::StrCat("{", tensor("a", "[3]", "[0,8]"), "}"),                      // shape
      absl::StrCat("{", tensor("a", "[2]", "[8,0]"), "}"),                      // reversed
      absl::StrCat("{", tensor("a", "[2]", "[0,8,8]"), "}"),                    // three offsets
      absl::StrCat("{", tensor("a", "[-2]", "[0,8]"), "}"),                     // negative
      absl::StrCat("{", tensor("a", "[2.0]", "[0,8]"), "}"),                    // not an integer
      absl::StrCat("{", tensor("a", "[4611686018427387904,2]", "[0,8]"), "}"),  // overflows
      absl::StrCat("{", tensor("a", "[2]", "[0,99999999999999999999]"), "}"),   // overflows
      absl::StrCat("{", tensor("a", "[2]", "[0,1e400]"), "}"),                  // overflows
      absl::StrCat("{", tensor("a", "[[[[[[[[2]]]]]]]]", "[0,8]"), "}"),        // nested too deeply
      R"({"a":{"dtype":"F16","shape":[4],"data_offsets":[0,8]}})",              // type
      R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8],"x":1}})",
      R"({"a":{"dtype":"F32","dtype":"F32","shape":[2],"data_offsets":[0,8]}})",
      R"({"a\n":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}})",  // one-line message
      std::string(200'000, '['),
  };
  for (const std::string& header : wrong) {
    EXPECT_TRUE(absl::IsDataLoss(OpenBytes(FileOf(header, 8)))) << header.substr(0, 200);
  }
  std::string endless(16, '\xff');
  EXPECT_TRUE(absl::IsDataLoss(OpenBytes(endless)));
}

TEST(Safetensors, RefusesNamesItCannotWrite) {
  for (const std::string name : {"", "__metadata__", "a\"b", "a\\b", "a\nb", "\xc3\xa4"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(
        SafetensorsWriter::Create(Path("names.safetensors"), {{name, {1}}}).status()))
        << name;
  }
  EXPECT_TRUE(absl::IsInvalidArgument(
      SafetensorsWriter::Create(Path("names.safetensors"), {{"a", {1}}, {"a", {1}}}).status()));
}

TEST(Safetensors, NamesAMissingFile) {
  const auto reader = SafetensorsReader::Open(Path("nowhere.safetensors"));
  EXPECT_TRUE(absl::IsNotFound(reader.status()));
  EXPECT_THAT(std::string(reader.status().message()), HasSubstr("nowhere.safetensors"));
}

}  // namespace
}  // namespace tug
