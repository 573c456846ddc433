#include "data/gpt2_files.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "base/text_file.h"
#include "data/byte_pairs.h"
#include "data/utf8.h"
#include "nlohmann/json.hpp"

namespace tug {
namespace {

constexpr uint64_t kFileLimitBytes = uint64_t{256} << 20;
constexpr size_t kBytes = 256;

// The character that stands for each byte: itself where it is printable Latin-1, else the next one
// from U+0100 on.
std::array<char32_t, kBytes> CharacterOfByte() {
  std::array<char32_t, kBytes> characters;
  char32_t next = 0x100;
  for (char32_t b = 0; b < kBytes; ++b) {
    const bool printable = (b >= '!' && b <= '~') || (b >= 0xA1 && b <= 0xAC) || b >= 0xAE;
    characters[b] = printable ? b : next++;
  }
  return characters;
}

std::string Printable(std::string_view bytes) {
  static const std::array<char32_t, kBytes> kCharacters = CharacterOfByte();
  std::string text;
  for (const char c : bytes) AppendUtf8(kCharacters[static_cast<uint8_t>(c)], text);
  return text;
}

// Empty if a character stands for no byte.
std::optional<std::string> BytesOf(std::string_view printable) {
  static const auto kByteOf = [] {
    std::array<int, 0x200> bytes;
    bytes.fill(-1);
    const auto characters = CharacterOfByte();
    for (size_t b = 0; b < kBytes; ++b) bytes[characters[b]] = static_cast<int>(b);
    return bytes;
  }();
  std::string bytes;
  while (!printable.empty()) {
    const CodePoint point = DecodeUtf8(printable);
    if (point.state != CodePoint::State::kValid || point.value >= kByteOf.size() ||
        kByteOf[point.value] < 0) {
      return std::nullopt;
    }
    bytes.push_back(static_cast<char>(kByteOf[point.value]));
    printable.remove_prefix(point.size_bytes);
  }
  return bytes;
}

absl::Status Bad(const std::string& path, const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat(
      path, ": ", what, "; data.tokenizer_path names the folder of a GPT-2 tokenizer's files"));
}

// In quotes, on one line, shortened.
std::string Quoted(std::string_view text) {
  const nlohmann::json json = std::string(text.substr(0, WholeCodePoints(text.substr(0, 80))));
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  absl::StatusOr<std::string> text = ReadTextFile(path, kFileLimitBytes);
  if (!absl::IsNotFound(text.status())) return text;
  return Bad(path, "is missing");
}

using TokenOfBytes = absl::flat_hash_map<std::string, int32_t>;

// Fills in tables.tokens.
absl::StatusOr<TokenOfBytes> ReadVocab(const std::string& path, BytePairTables& tables) {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  const auto json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || json.empty()) {
    return Bad(path, "is not a JSON object from tokens to numbers");
  }
  std::vector<const std::string*> names(json.size());
  for (auto entry = json.begin(); entry != json.end(); ++entry) {
    const auto& number = entry.value();
    if (!number.is_number_unsigned() || number.get<uint64_t>() >= names.size() ||
        names[number.get<uint64_t>()] != nullptr) {
      return Bad(path, absl::StrCat("the number of ", Quoted(entry.key()), " is ",
                                    number.is_number() ? number.dump() : "none",
                                    ": numbers are 0 to ", names.size() - 1, ", each once"));
    }
    names[number.get<uint64_t>()] = &entry.key();
  }
  TokenOfBytes token_of;
  for (size_t token = 0; token < names.size(); ++token) {
    std::optional<std::string> bytes = BytesOf(*names[token]);
    if (!bytes.has_value() || bytes->empty()) {
      return Bad(path,
                 absl::StrCat(Quoted(*names[token]), " holds a character that stands for no byte"));
    }
    tables.add_tokens(*bytes);
    token_of.emplace(*std::move(bytes), static_cast<int32_t>(token));
  }
  for (size_t b = 0; b < kBytes; ++b) {
    if (token_of.contains(std::string(1, static_cast<char>(b)))) continue;
    return Bad(path, absl::StrFormat("no token for the byte 0x%02X", b));
  }
  return token_of;
}

absl::Status ReadMerges(const std::string& path, const TokenOfBytes& token_of,
                        BytePairTables& tables) {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  PairRanks seen;
  size_t number = 0;
  for (std::string_view rest = text; !rest.empty();) {
    std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    ++number;
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty() || (number == 1 && line.starts_with("#version"))) continue;
    const auto bad = [&](const char* what) {
      return Bad(path, absl::StrCat("line ", number, " ", Quoted(line), " ", what));
    };
    const size_t space = line.find(' ');
    if (space == std::string_view::npos) return bad("is not two tokens");
    const auto left = BytesOf(line.substr(0, space));
    const auto right = BytesOf(line.substr(space + 1));
    if (!left.has_value() || !right.has_value()) return bad("holds what stands for no byte");
    const auto a = token_of.find(*left);
    const auto b = token_of.find(*right);
    const auto merged = token_of.find(*left + *right);
    if (a == token_of.end() || b == token_of.end() || merged == token_of.end()) {
      return bad("merges or makes a token that vocab.json does not have");
    }
    const auto rank = static_cast<uint32_t>(tables.merges_size() / 2);
    if (!seen.Add(a->second, b->second, {rank, merged->second})) return bad("is there twice");
    tables.add_merges(static_cast<uint32_t>(a->second));
    tables.add_merges(static_cast<uint32_t>(b->second));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<BytePairTables> ReadGpt2Files(const std::string& folder) {
  BytePairTables tables;
  ASSIGN_OR_RETURN(const TokenOfBytes token_of,
                   ReadVocab(absl::StrCat(folder, "/", kGpt2VocabFile), tables));
  RETURN_IF_ERROR(ReadMerges(absl::StrCat(folder, "/", kGpt2MergesFile), token_of, tables));
  return tables;
}

std::string Gpt2VocabJson(const BytePairTables& tables) {
  std::string text = "{";
  for (int token = 0; token < tables.tokens_size(); ++token) {
    absl::StrAppend(&text, token == 0 ? "" : ", ",
                    nlohmann::json(Printable(tables.tokens(token))).dump(), ": ", token);
  }
  return text + "}\n";
}

std::string Gpt2MergesText(const BytePairTables& tables) {
  std::string text = "#version: 0.2\n";
  for (int i = 0; i + 1 < tables.merges_size(); i += 2) {
    absl::StrAppend(&text, Printable(tables.tokens(static_cast<int>(tables.merges(i)))), " ",
                    Printable(tables.tokens(static_cast<int>(tables.merges(i + 1)))), "\n");
  }
  return text;
}

BytePairTables ByteTables() {
  BytePairTables tables;
  for (size_t b = 0; b < kBytes; ++b) tables.add_tokens(std::string(1, static_cast<char>(b)));
  return tables;
}

}  // namespace tug
