// SPDX-License-Identifier: Apache-2.0
#include "data/text/sentencepiece_files.h"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/files/text_file.h"
#include "base/status_macros.h"
#include "data/text/byte_pair_builder.h"
#include "data/text/gpt2_files.h"
#include "data/text/sentencepiece_model.h"
#include "nlohmann/json.hpp"

namespace tug {
namespace {

constexpr uint64_t kListLimitBytes = uint64_t{256} << 20;

struct ListedToken {
  std::string text;
  std::optional<uint64_t> number;  // none: missing or not an unsigned integer
};
using ListedTokens = std::vector<ListedToken>;

std::optional<uint64_t> WholeNumber(const nlohmann::json& value) {
  if (!value.is_number_unsigned()) return std::nullopt;
  return value.get<uint64_t>();
}

std::string ContentOf(const nlohmann::json& token) {
  if (!token.is_object() || !token.contains("content")) return "";
  const nlohmann::json& content = token["content"];
  return content.is_string() ? content.get<std::string>() : "";
}

void ListAddedTokens(const nlohmann::json& json, ListedTokens& tokens) {
  for (auto entry = json.begin(); entry != json.end(); ++entry) {
    tokens.push_back({entry.key(), WholeNumber(entry.value())});
  }
}

void ListSettings(const nlohmann::json& json, ListedTokens& tokens) {
  if (!json.contains("added_tokens_decoder")) return;
  const nlohmann::json& decoder = json["added_tokens_decoder"];
  if (!decoder.is_object()) return;
  for (auto entry = decoder.begin(); entry != decoder.end(); ++entry) {
    uint64_t number = 0;
    const bool whole = absl::SimpleAtoi(entry.key(), &number);
    tokens.push_back({ContentOf(entry.value()), whole ? std::optional(number) : std::nullopt});
  }
}

void ListTokenizer(const nlohmann::json& json, ListedTokens& tokens) {
  if (!json.contains("added_tokens") || !json["added_tokens"].is_array()) return;
  for (const nlohmann::json& token : json["added_tokens"]) {
    const bool numbered = token.is_object() && token.contains("id");
    tokens.push_back({ContentOf(token), numbered ? WholeNumber(token["id"]) : std::nullopt});
  }
}

struct ListingFile {
  const char* name;
  void (*list)(const nlohmann::json& json, ListedTokens& tokens);
};

constexpr ListingFile kListingFiles[] = {{kGpt2AddedTokensFile, ListAddedTokens},
                                         {kGpt2SettingsFile, ListSettings},
                                         {kTokenizerFile, ListTokenizer}};

std::string PathBeside(const std::string& model_path, const char* name) {
  return (std::filesystem::path(model_path).parent_path() / name).string();
}

bool LiesThere(const std::string& path) {
  std::error_code error;
  return std::filesystem::exists(path, error);
}

absl::StatusOr<nlohmann::json> ReadListing(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, ReadTextFile(path, kListLimitBytes));
  nlohmann::json json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (json.is_object()) return json;
  return absl::InvalidArgumentError(absl::StrCat(
      path,
      " is not a JSON object: correct it, or remove it from the folder of data.tokenizer_path"));
}

// Pieces have marks instead of spaces.
bool IsPiece(const SentencePieces& pieces, const ListedToken& token) {
  if (!token.number.has_value() || *token.number >= pieces.size()) return false;
  const std::string& piece = pieces.piece(static_cast<int32_t>(*token.number)).piece();
  return piece == token.text ||
         piece == absl::StrReplaceAll(token.text, {{" ", std::string(kSpaceMark)}});
}

absl::Status NoPiece(const std::string& path, const std::string& model_path,
                     const ListedToken& token) {
  const std::string number =
      token.number.has_value() ? absl::StrCat("number ", *token.number) : "without a number";
  return absl::InvalidArgumentError(
      absl::StrCat(path, ": the added token ", QuotedToken(token.text), ", ", number,
                   ", is not a piece of ", model_path,
                   ", and text is encoded with pieces only; set data.tokenizer_path to a model "
                   "with that piece (--user_defined_symbols), or, to ignore the token, to a copy "
                   "of the model in another folder"));
}

}  // namespace

std::vector<std::string> SentencePieceFilesOf(const std::string& model_path) {
  std::vector<std::string> paths = {model_path};
  for (const ListingFile& file : kListingFiles) {
    std::string path = PathBeside(model_path, file.name);
    if (LiesThere(path)) paths.push_back(std::move(path));
  }
  return paths;
}

absl::Status CheckAddsNoTokens(const std::string& model_path, const SentencePieces& pieces) {
  for (const ListingFile& file : kListingFiles) {
    const std::string path = PathBeside(model_path, file.name);
    if (!LiesThere(path)) continue;
    ASSIGN_OR_RETURN(const nlohmann::json json, ReadListing(path));
    ListedTokens tokens;
    file.list(json, tokens);
    for (const ListedToken& token : tokens) {
      if (!IsPiece(pieces, token)) return NoPiece(path, model_path, token);
    }
  }
  return absl::OkStatus();
}

}  // namespace tug
