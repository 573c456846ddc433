// SPDX-License-Identifier: Apache-2.0
#include "data/source/text_reader.h"

#include <zlib.h>
#include <zstd.h>

#include <fstream>
#include <string>

#include "base/files/test_folder.h"
#include "data/source/text_source.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/job.pb.h"

namespace tug {
namespace {

using namespace std::string_literals;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::string Gzip(const std::string& text) {
  z_stream stream = {};
  EXPECT_EQ(deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string out(deflateBound(&stream, text.size()) + 32, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

std::string Zstd(const std::string& text) {
  std::string out(ZSTD_compressBound(text.size()), '\0');
  ZSTD_CCtx* const context = ZSTD_createCCtx();
  ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1);  // as the zstd command does
  out.resize(ZSTD_compress2(context, out.data(), out.size(), text.data(), text.size()));
  ZSTD_freeCCtx(context);
  return out;
}

// Text that does not compress to nothing, longer than every buffer of the readers.
std::string LongText() {
  std::string text;
  uint64_t state = 1;
  while (text.size() < 5'000'000) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    text += static_cast<char>('a' + (state >> 60));
  }
  return text;
}

class TextReaderTest : public ::testing::Test {
 protected:
  std::string Write(const std::string& name, const std::string& bytes) const {
    const std::string path = folder_.path() + "/" + name;
    std::ofstream(path, std::ios::binary) << bytes;
    return path;
  }

  // The text of a file, read in small and large parts; the error's text if there is one.
  std::string Read(const std::string& path, TextFormat format = TextFormat::kAuto) const {
    auto reader = OpenText(path, {.format = format, .document_end = "|"});
    if (!reader.ok()) return std::string(reader.status().message());
    std::string text, part(7, '\0');
    while (true) {
      const absl::StatusOr<size_t> got = (*reader)->Read(part);
      if (!got.ok()) return std::string(got.status().message());
      text.append(part, 0, *got);
      if (*got < part.size()) return text;
      if (part.size() < 1 << 20) part.resize(3 * part.size());
    }
  }
  std::string ReadAs(const std::string& name, const std::string& bytes,
                     TextFormat format = TextFormat::kAuto) const {
    return Read(Write(name, bytes), format);
  }

  TestFolder folder_;
};

TEST_F(TextReaderTest, ReadsPlainTextWithoutByteOrderMark) {
  EXPECT_EQ(ReadAs("a.txt", "caf\xC3\xA9\r\n"), "caf\xC3\xA9\r\n");
  EXPECT_EQ(ReadAs("b.txt", "\xEF\xBB\xBFtext"), "text");
  EXPECT_EQ(ReadAs("empty.txt", ""), "");
  EXPECT_EQ((*OpenText(Write("c.txt", "\xEF\xBB\xBFtext"), {}))->start_bytes(), 3);
}

TEST_F(TextReaderTest, DecompressesGzipAndZstdUnderAnyName) {
  const std::string text = LongText();
  EXPECT_EQ(ReadAs("a.txt.gz", Gzip(text)), text);
  EXPECT_EQ(ReadAs("a.txt.zst", Zstd(text)), text);
  EXPECT_EQ(ReadAs("a", Zstd("short")), "short");
  EXPECT_EQ(ReadAs("members.gz", Gzip("one ") + Gzip("two")), "one two");
  EXPECT_EQ(ReadAs("frames.zst", Zstd("one ") + Zstd("two")), "one two");
}

TEST_F(TextReaderTest, NamesDamagedCompressedFile) {
  const std::string text = LongText();
  for (const auto& [name, bytes] : {std::pair{"a.gz", Gzip(text)}, {"a.zst", Zstd(text)}}) {
    EXPECT_THAT(ReadAs(name, bytes.substr(0, bytes.size() / 2)),
                AllOf(HasSubstr(std::string(name) + " is damaged"), HasSubstr("again")));
    std::string flipped = bytes;
    flipped[bytes.size() / 2] ^= 0x55;
    EXPECT_THAT(ReadAs(name, flipped).substr(0, 200),
                AllOf(HasSubstr("is damaged"), Not(HasSubstr("<fd:"))));
  }
}

TEST_F(TextReaderTest, ReadsDocumentsOfJsonLines) {
  const std::string lines =
      "{\"text\": \"one\\ntwo\", \"id\": 1}\r\n\n{\"id\":2,\"text\":\"\"}\n"
      "{\"text\":\"caf\\u00e9\"}";
  EXPECT_EQ(ReadAs("a.jsonl", lines), "one\ntwo|caf\xC3\xA9|");
  EXPECT_EQ(ReadAs("a.ndjson", lines + "\n"), "one\ntwo|caf\xC3\xA9|");
  EXPECT_EQ(ReadAs("a.jsonl.gz", Gzip(lines)), "one\ntwo|caf\xC3\xA9|");
  EXPECT_EQ(ReadAs("a.JSONL.zst", Zstd(lines)), "one\ntwo|caf\xC3\xA9|");
  const std::string text = LongText();
  EXPECT_EQ(ReadAs("long.jsonl", "{\"text\":\"" + text + "\"}\n{\"text\":\"end\"}"),
            text + "|end|");
}

TEST_F(TextReaderTest, NamesLineWithoutDocument) {
  EXPECT_THAT(ReadAs("a.jsonl", "{\"text\":\"x\"}\n{\"content\":\"y\",\"id\":1}\n"),
              AllOf(HasSubstr("a.jsonl: line 2 has no field \"text\" (its fields: content, id)"),
                    HasSubstr("jq")));
  EXPECT_THAT(ReadAs("a.jsonl", "{\"text\":3}"), HasSubstr("line 1 has a field \"text\" that is"));
  EXPECT_THAT(ReadAs("a.jsonl", "[1]"), HasSubstr("line 1 is not a JSON object"));
  EXPECT_THAT(ReadAs("a.jsonl", "{\"text\":\"x"), HasSubstr("line 1 is not valid JSON"));
}

TEST_F(TextReaderTest, RefusesBinaryFormatsByName) {
  const struct {
    std::string bytes;
    const char* name;
    const char* remedy;
  } kCases[] = {{"PAR1\x15\x04rest", "a Parquet file", "to_json"},
                {"\x89PNG\r\n\x1A\n", "a PNG image", "move it out"},
                {"\xFF\xD8\xFF\xE0", "a JPEG image", "move it out"},
                {"%PDF-1.7\n", "a PDF document", "pdftotext"},
                {"PK\x03\x04zip", "a zip archive", "unpack it"},
                {"\xFD"s + "7zXZ\0"s, "an xz file", "xz -dk"},
                {"BZh91AY", "a bzip2 file", "bunzip2"},
                {"SQLite format 3\0"s, "an SQLite database", "export"},
                {"ARROW1\0\0"s, "an Arrow file", "to_json"},
                {std::string(257, 'x') + "ustar\0"s, "a tar archive", "unpack it"}};
  for (const auto& c : kCases) {
    EXPECT_THAT(ReadAs("a.txt", c.bytes), AllOf(HasSubstr("a.txt is "s + c.name),
                                                HasSubstr(", not text: "), HasSubstr(c.remedy)));
    EXPECT_THAT(ReadAs("a.gz", Gzip(c.bytes)), HasSubstr(c.name));
    EXPECT_EQ(ReadAs("a.txt", c.bytes, TextFormat::kBytes), c.bytes);
  }
  EXPECT_THAT(ReadAs("a.txt", "t\0e\0x\0t\0!\0"s), HasSubstr("iconv"));
}

TEST_F(TextReaderTest, RefusesNulByteWithItsOffset) {
  const std::string text = LongText();
  EXPECT_THAT(ReadAs("a.txt", text + "\0x"s),
              AllOf(HasSubstr("has a NUL byte at offset 5000000"), HasSubstr("move it out")));
  EXPECT_THAT(ReadAs("a.gz", Gzip(text + "\0x"s)), HasSubstr("offset 5000000"));
  EXPECT_EQ(ReadAs("a.txt", "x\0y"s, TextFormat::kBytes), "x\0y"s);
}

TEST_F(TextReaderTest, RefusesTablesAndJsonReadAsText) {
  EXPECT_THAT(ReadAs("a.csv", "id,text\n1,x\n"), AllOf(HasSubstr("CSV"), HasSubstr("FILE.txt")));
  EXPECT_THAT(ReadAs("a.csv.gz", Gzip("id,text\n1,x\n")), HasSubstr("CSV"));
  EXPECT_THAT(ReadAs("a.json", "[{\"text\":\"x\"}]"),
              AllOf(HasSubstr("jq"), HasSubstr("FILE.txt")));
  EXPECT_THAT(ReadAs("a.txt", "{\"text\":\"x\"}\n"), HasSubstr("contains JSON lines"));
  EXPECT_THAT(ReadAs("a.txt", "{\"text\":\"" + LongText()), HasSubstr("contains JSON lines"));
  EXPECT_EQ(ReadAs("a.txt", "{braces} in prose"), "{braces} in prose");
}

TEST_F(TextReaderTest, RefusesFolderWithFileThatIsNotText) {
  Write("a.txt", "text");
  Write("b.png", "\x89PNG\r\n\x1A\n");
  EXPECT_THAT(TextSource::Open(folder_.path()).status().message(),
              AllOf(HasSubstr("b.png is a PNG image"), HasSubstr("move it out of data.path")));
}

TEST_F(TextReaderTest, MeasuresTextThatIsStoredCompressed) {
  const std::string text = LongText();
  EXPECT_EQ(TextSource::Open(Write("a.txt.gz", Gzip(text)))->MeasureText().value(), text.size());
  EXPECT_THAT(TextSource::Open(Write("none.jsonl", "{\"text\": \"\"}\n"))->MeasureText().status(),
              ::testing::Property(&absl::Status::message, HasSubstr("none.jsonl has no text")));
  EXPECT_FALSE(TextSource::Open(Write("nul.txt", LongText() + '\0'))->MeasureText().ok());
}

TEST_F(TextReaderTest, NamesTheScriptThatWritesAMissingText) {
  const std::string path = folder_.path() + "/bible-kjv.txt";
  EXPECT_THAT(TextSource::Open(path).status().message(),
              HasSubstr("check the path, or write it with: deploy/bible " + path));
}

TEST(TextRulesTest, EndDocumentsAsTheTokenizerDoes) {
  DataConfig config;
  EXPECT_EQ(TextRulesOf(config).document_end, "\n\n");
  config.set_tokenizer(DataConfig::GPT2_BPE);
  EXPECT_EQ(TextRulesOf(config).document_end, "<|endoftext|>");
}

}  // namespace
}  // namespace tug
