// SPDX-License-Identifier: Apache-2.0
#include "data/text/gpt2_files.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/files/text_file.h"
#include "base/status_macros.h"
#include "data/text/byte_pair_builder.h"
#include "data/text/gpt2_bytes.h"

namespace tug {
namespace {

using Json = nlohmann::json;

constexpr uint64_t kFileLimitBytes = uint64_t{256} << 20;

constexpr char kSpecialTokensFile[] = "special_tokens_map.json";

// Transformers classes that read vocab.json and merges.txt as GPT-2's tokenizer does, and those
// that read any tokenizer.json.
constexpr const char* kClasses[] = {"GPT2Tokenizer", "GPT2TokenizerFast", "PreTrainedTokenizerFast",
                                    "TokenizersBackend"};

bool Exists(const std::string& path) {
  std::error_code error;
  return std::filesystem::exists(path, error);
}

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  absl::StatusOr<std::string> text = ReadTextFile(path, kFileLimitBytes);
  if (!absl::IsNotFound(text.status())) return text;
  return BadTokenizerFile(path, "is missing");
}

absl::StatusOr<Json> ReadJsonObject(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return BadTokenizerFile(path, "is not a JSON object");
  return json;
}

// Field of an object; null if missing.
const Json& Field(const Json& object, const char* name) {
  static const Json kNull;
  if (!object.is_object()) return kNull;
  const auto found = object.find(name);
  return found == object.end() ? kNull : *found;
}

absl::Status Unsupported(const std::string& path, const std::string& field, const Json& value) {
  return BadTokenizerFile(
      path, absl::StrCat(
                field, " is ",
                value.is_structured() && Field(value, "type").is_string()
                    ? QuotedToken(Field(value, "type").get<std::string>())
                    : QuotedToken(
                          value.dump(-1, ' ', true, Json::error_handler_t::replace).substr(0, 60)),
                ", which GPT-2's tokenizer does not have"));
}

absl::Status CheckSteps(const std::string& path, const Json& json) {
  const Json& model = Field(json, "model");
  if (Field(model, "type") != "BPE") return Unsupported(path, "model", model);
  for (const char* name : {"dropout", "continuing_subword_prefix", "end_of_word_suffix",
                           "unk_token", "byte_fallback", "ignore_merges"}) {
    const Json& value = Field(model, name);
    // unk_token is unused: text without a token is an error here.
    if (value.is_null() || value == "" || value == false || std::string_view(name) == "unk_token") {
      continue;
    }
    return Unsupported(path, absl::StrCat("model.", name), value);
  }
  if (!Field(json, "normalizer").is_null()) {
    return Unsupported(path, "normalizer", Field(json, "normalizer"));
  }
  const Json& words = Field(json, "pre_tokenizer");
  if (Field(words, "type") != "ByteLevel") return Unsupported(path, "pre_tokenizer", words);
  if (Field(words, "add_prefix_space") != false) {
    return Unsupported(path, "pre_tokenizer.add_prefix_space", Field(words, "add_prefix_space"));
  }
  if (Field(words, "use_regex") == false) {
    return Unsupported(path, "pre_tokenizer.use_regex", Field(words, "use_regex"));
  }
  return absl::OkStatus();
}

// Refuses a post-processor that adds tokens around a text.
absl::Status CheckFrame(const std::string& path, const Json& json) {
  const Json& frame = Field(json, "post_processor");
  if (frame.is_null() || Field(frame, "type") == "ByteLevel") return absl::OkStatus();
  const Json& single = Field(frame, "single");
  if (Field(frame, "type") == "TemplateProcessing" && single.is_array() && single.size() == 1 &&
      single[0].contains("Sequence")) {
    return absl::OkStatus();  // the text alone
  }
  return Unsupported(path, "post_processor", frame);
}

absl::Status AddVocab(const std::string& path, const Json& vocab, BytePairBuilder& builder) {
  if (!vocab.is_object()) return BadTokenizerFile(path, "model.vocab is not an object");
  for (auto entry = vocab.begin(); entry != vocab.end(); ++entry) {
    if (!entry.value().is_number_unsigned()) {
      return BadTokenizerFile(
          path, absl::StrCat("the number of ", QuotedToken(entry.key()), " is ",
                             entry.value().is_number() ? entry.value().dump() : "not a number"));
    }
    RETURN_IF_ERROR(builder.AddToken(path, entry.key(), entry.value().get<uint64_t>()));
  }
  return absl::OkStatus();
}

// A merge is a list of two tokens, or a text with a space between them.
absl::Status AddMerges(const std::string& path, const Json& merges, BytePairBuilder& builder) {
  if (!merges.is_array()) return BadTokenizerFile(path, "model.merges is not a list");
  for (size_t i = 0; i < merges.size(); ++i) {
    const std::string where = absl::StrCat("model.merges[", i, "]");
    const Json& merge = merges[i];
    if (merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string()) {
      RETURN_IF_ERROR(builder.AddMerge(path, where, merge[0].get_ref<const std::string&>(),
                                       merge[1].get_ref<const std::string&>()));
      continue;
    }
    const std::string text = merge.is_string() ? merge.get<std::string>() : "";
    const size_t space = text.find(' ');
    if (space == std::string::npos) return BadTokenizerFile(path, where + " is not two tokens");
    RETURN_IF_ERROR(builder.AddMerge(path, where, text.substr(0, space), text.substr(space + 1)));
  }
  return absl::OkStatus();
}

absl::Status AddMergesText(const std::string& path, BytePairBuilder& builder) {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  size_t number = 0;
  for (std::string_view rest = text; !rest.empty();) {
    std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    ++number;
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty() || line.starts_with("#version")) continue;
    const std::string where = absl::StrCat("line ", number);
    const size_t space = line.find(' ');
    if (space == std::string_view::npos) {
      return BadTokenizerFile(path,
                              absl::StrCat(where, " ", QuotedToken(line), " is not two tokens"));
    }
    RETURN_IF_ERROR(builder.AddMerge(path, where, line.substr(0, space), line.substr(space + 1)));
  }
  return absl::OkStatus();
}

// `token`: an object with "content", as in tokenizer.json.
absl::Status AddAddedObject(const std::string& path, const Json& token,
                            std::optional<uint64_t> number, BytePairBuilder& builder) {
  const Json& content = Field(token, "content");
  if (!content.is_string()) return BadTokenizerFile(path, "an added token has no \"content\"");
  for (const char* flag : {"lstrip", "rstrip", "single_word"}) {
    if (Field(token, flag) != true) continue;
    return BadTokenizerFile(
        path, absl::StrCat("the added token ", QuotedToken(content.get<std::string>()), " has ",
                           flag, ", which is not supported"));
  }
  const bool special = Field(token, "special") == true;
  const Json& normalized = Field(token, "normalized");
  return builder.AddAdded(
      path, {.text = content.get<std::string>(),
             .number = number,
             .special = special,
             .normalized = normalized.is_boolean() ? normalized.get<bool>() : !special});
}

absl::Status AddTokenizerJson(const std::string& path, BytePairBuilder& builder) {
  ASSIGN_OR_RETURN(const Json json, ReadJsonObject(path));
  RETURN_IF_ERROR(CheckSteps(path, json));
  RETURN_IF_ERROR(CheckFrame(path, json));
  const Json& model = Field(json, "model");
  RETURN_IF_ERROR(AddVocab(path, Field(model, "vocab"), builder));
  RETURN_IF_ERROR(AddMerges(path, Field(model, "merges"), builder));
  for (const Json& token : Field(json, "added_tokens")) {
    const Json& number = Field(token, "id");
    if (!number.is_number_unsigned()) return BadTokenizerFile(path, "an added token has no \"id\"");
    RETURN_IF_ERROR(AddAddedObject(path, token, number.get<uint64_t>(), builder));
  }
  return absl::OkStatus();
}

// added_tokens.json: an object from texts to numbers.
absl::Status AddAddedTokens(const std::string& path, BytePairBuilder& builder) {
  ASSIGN_OR_RETURN(const Json json, ReadJsonObject(path));
  for (auto entry = json.begin(); entry != json.end(); ++entry) {
    if (!entry.value().is_number_unsigned()) {
      return BadTokenizerFile(
          path, absl::StrCat("the number of ", QuotedToken(entry.key()), " is not a number"));
    }
    RETURN_IF_ERROR(
        builder.AddAdded(path, {.text = entry.key(), .number = entry.value().get<uint64_t>()}));
  }
  return absl::OkStatus();
}

// `token`: a text, an object with "content", or a list of these.
absl::Status AddSpecial(const std::string& path, const Json& token, BytePairBuilder& builder) {
  if (token.is_string()) {
    return builder.AddAdded(
        path, {.text = token.get<std::string>(), .special = true, .normalized = false});
  }
  if (token.is_array()) {
    for (const Json& one : token) RETURN_IF_ERROR(AddSpecial(path, one, builder));
    return absl::OkStatus();
  }
  return token.is_object() && token.contains("content")
             ? AddAddedObject(path, token, std::nullopt, builder)
             : absl::OkStatus();
}

absl::Status AddJsonSettings(const std::string& path, const Json& json, BytePairBuilder& builder) {
  for (const char* name : {"add_prefix_space", "add_bos_token", "add_eos_token"}) {
    if (Field(json, name) == true) return Unsupported(path, name, Field(json, name));
  }
  const Json& decoder = Field(json, "added_tokens_decoder");
  if (decoder.is_object()) {
    for (auto entry = decoder.begin(); entry != decoder.end(); ++entry) {
      uint64_t number = 0;
      if (!absl::SimpleAtoi(entry.key(), &number)) {
        return BadTokenizerFile(path, "added_tokens_decoder has a key that is not a number");
      }
      RETURN_IF_ERROR(AddAddedObject(path, entry.value(), number, builder));
    }
  }
  for (const char* name :
       {"bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token",
        "additional_special_tokens", "extra_special_tokens"}) {
    RETURN_IF_ERROR(AddSpecial(path, Field(json, name), builder));
  }
  return absl::OkStatus();
}

// Reads a settings file of transformers: tokenizer_config.json or special_tokens_map.json.
absl::Status AddSettings(const std::string& path, BytePairBuilder& builder) {
  ASSIGN_OR_RETURN(const Json json, ReadJsonObject(path));
  return AddJsonSettings(path, json, builder);
}

// Several tokenizers have a vocab.json and merges.txt; the class tells which one reads them.
absl::Status CheckClass(const std::string& path, const Json& json) {
  const Json& name = Field(json, "tokenizer_class");
  if (name.is_null()) return absl::OkStatus();
  for (const char* known : kClasses) {
    if (name == known) return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      path, ": tokenizer_class is ",
      QuotedToken(name.is_string() ? name.get<std::string>()
                                   : name.dump(-1, ' ', true, Json::error_handler_t::replace)),
      ", and without a tokenizer.json only GPT2Tokenizer's files are read; save the folder again "
      "with a current transformers (AutoTokenizer.from_pretrained, then save_pretrained), which "
      "writes tokenizer.json"));
}

// Like AddSettings, for a folder without tokenizer.json.
absl::Status AddSettingsOfGpt2(const std::string& path, BytePairBuilder& builder) {
  ASSIGN_OR_RETURN(const Json json, ReadJsonObject(path));
  RETURN_IF_ERROR(CheckClass(path, json));
  return AddJsonSettings(path, json, builder);
}

// Reader of a file in the tokenizer's folder. FilesOf lists them in reading order.
struct FolderFile {
  const char* name;
  absl::Status (*add)(const std::string& path, BytePairBuilder& builder);
};

absl::Status AddVocabFile(const std::string& path, BytePairBuilder& builder) {
  ASSIGN_OR_RETURN(const Json json, ReadJsonObject(path));
  return AddVocab(path, json, builder);
}

std::vector<FolderFile> FilesOf(const std::string& folder) {
  std::vector<FolderFile> files = {{kGpt2VocabFile, AddVocabFile},
                                   {kGpt2MergesFile, AddMergesText}};
  const bool in_one_file = Exists(absl::StrCat(folder, "/", kTokenizerFile));
  if (in_one_file) {
    files = {{kTokenizerFile, AddTokenizerJson}};
  } else if (Exists(absl::StrCat(folder, "/", kGpt2AddedTokensFile))) {
    files.push_back({kGpt2AddedTokensFile, AddAddedTokens});
  }
  for (const char* name : {kGpt2SettingsFile, kSpecialTokensFile}) {
    if (!Exists(absl::StrCat(folder, "/", name))) continue;
    files.push_back({name, in_one_file ? AddSettings : AddSettingsOfGpt2});
  }
  return files;
}

}  // namespace

std::vector<std::string> Gpt2FilesIn(const std::string& folder) {
  std::vector<std::string> paths;
  for (const FolderFile& file : FilesOf(folder)) {
    paths.push_back(absl::StrCat(folder, "/", file.name));
  }
  return paths;
}

absl::StatusOr<BytePairTables> ReadGpt2Files(const std::string& folder) {
  BytePairBuilder builder;
  const std::vector<FolderFile> files = FilesOf(folder);
  for (const FolderFile& file : files) {
    RETURN_IF_ERROR(file.add(absl::StrCat(folder, "/", file.name), builder));
  }
  return builder.Finish(absl::StrCat(folder, "/", files[0].name));
}

std::string Gpt2VocabJson(const BytePairTables& tables) {
  std::vector<std::pair<uint32_t, std::string>> names;
  for (int token = 0; token < tables.tokens_size(); ++token) {
    if (tables.tokens(token).empty()) continue;
    names.emplace_back(static_cast<uint32_t>(token), Gpt2Printable(tables.tokens(token)));
  }
  for (const BytePairTables::Named& named : tables.not_in_text()) {
    names.emplace_back(named.token(), named.text());
  }
  std::sort(names.begin(), names.end());
  std::string text = "{";
  for (const auto& [token, name] : names) {
    absl::StrAppend(&text, text.size() == 1 ? "" : ", ", Json(name).dump(), ": ", token);
  }
  return text + "}\n";
}

std::string Gpt2MergesText(const BytePairTables& tables) {
  std::string text = "#version: 0.2\n";
  for (int i = 0; i + 1 < tables.merges_size(); i += 2) {
    absl::StrAppend(&text, Gpt2Printable(tables.tokens(static_cast<int>(tables.merges(i)))), " ",
                    Gpt2Printable(tables.tokens(static_cast<int>(tables.merges(i + 1)))), "\n");
  }
  return text;
}

std::string Gpt2AddedTokensJson(const BytePairTables& tables) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  for (const BytePairTables::Named& named : tables.added()) json[named.text()] = named.token();
  return json.dump(2) + "\n";
}

std::string Gpt2SettingsJson(const BytePairTables& tables, uint32_t context) {
  nlohmann::ordered_json json;
  json["tokenizer_class"] = "GPT2Tokenizer";
  json["model_max_length"] = context;
  json["add_prefix_space"] = false;
  for (const char* field : {"bos_token", "eos_token", "unk_token"}) {
    if (Gpt2EndOfTextToken(tables).has_value()) {
      json[field] = kGpt2EndOfText;
    } else {
      json[field] = nullptr;
    }
  }
  for (const BytePairTables::Named& named : tables.added()) {
    json["added_tokens_decoder"][absl::StrCat(named.token())] = {
        {"content", named.text()}, {"lstrip", false},      {"normalized", named.normalized()},
        {"rstrip", false},         {"single_word", false}, {"special", named.special()}};
  }
  return json.dump(2) + "\n";
}

std::optional<int32_t> Gpt2EndOfTextToken(const BytePairTables& tables) {
  for (const BytePairTables::Named& named : tables.added()) {
    if (named.text() == kGpt2EndOfText) return static_cast<int32_t>(named.token());
  }
  for (int token = 0; token < tables.tokens_size(); ++token) {
    if (tables.tokens(token) == kGpt2EndOfText) return token;
  }
  return std::nullopt;
}

BytePairTables ByteTables() {
  BytePairTables tables;
  for (int b = 0; b < 256; ++b) tables.add_tokens(std::string(1, static_cast<char>(b)));
  return tables;
}

}  // namespace tug
