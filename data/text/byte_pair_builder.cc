// SPDX-License-Identifier: Apache-2.0
#include "data/text/byte_pair_builder.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "data/text/gpt2_bytes.h"
#include "data/text/gpt2_files.h"
#include "data/text/utf8.h"
#include "proto/tokenizer_files.pb.h"

namespace tug {
namespace {

// Far above any vocabulary; every number up to the largest is a row of the model's embedding.
constexpr uint64_t kMaxNumber = 1'000'000;

}  // namespace

absl::Status BadTokenizerFile(const std::string& path, const std::string& what) {
  return absl::InvalidArgumentError(
      absl::StrCat(path, ": ", what,
                   "; set data.tokenizer_path to a folder with the files of a GPT-2 tokenizer: "
                   "tokenizer.json, or vocab.json and merges.txt"));
}

std::string QuotedToken(std::string_view text) {
  const nlohmann::json json = std::string(text.substr(0, WholeCodePoints(text.substr(0, 80))));
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

absl::Status BytePairBuilder::AddToken(const std::string& path, const std::string& name,
                                       uint64_t number) {
  const auto token = static_cast<uint32_t>(number);
  if (number > kMaxNumber || !name_of_token_.emplace(token, name).second) {
    return BadTokenizerFile(
        path, absl::StrCat("the number of ", QuotedToken(name), " is ", number,
                           number > kMaxNumber ? absl::StrCat(": numbers are 0 to ", kMaxNumber)
                                               : absl::StrCat(", the same as that of ",
                                                              QuotedToken(name_of_token_[token]),
                                                              ": numbers must be unique")));
  }
  std::optional<std::string> bytes = Gpt2BytesOf(name);
  if (bytes.has_value() && !bytes->empty()) {
    token_of_bytes_.emplace(*std::move(bytes), token);
  } else {
    token_of_name_.emplace(name, token);
  }
  size_ = std::max(size_, token + 1);
  return absl::OkStatus();
}

absl::Status BytePairBuilder::AddMerge(const std::string& path, const std::string& where,
                                       std::string_view left, std::string_view right) {
  const auto bad = [&](const char* what) {
    return BadTokenizerFile(
        path, absl::StrCat(where, " ", QuotedToken(std::string(left) + " " + std::string(right)),
                           " ", what));
  };
  const auto left_bytes = Gpt2BytesOf(left);
  const auto right_bytes = Gpt2BytesOf(right);
  if (!left_bytes.has_value() || !right_bytes.has_value()) {
    return bad("contains a character that stands for no byte");
  }
  const auto a = token_of_bytes_.find(*left_bytes);
  const auto b = token_of_bytes_.find(*right_bytes);
  if (a == token_of_bytes_.end() || b == token_of_bytes_.end() ||
      !token_of_bytes_.contains(*left_bytes + *right_bytes)) {
    return bad("uses or makes a token that is not in the vocabulary");
  }
  merges_.emplace_back(a->second, b->second);
  return absl::OkStatus();
}

std::optional<uint32_t> BytePairBuilder::Find(const std::string& text) const {
  const std::optional<std::string> bytes = Gpt2BytesOf(text);
  const auto& tokens = bytes.has_value() ? token_of_bytes_ : token_of_name_;
  const auto found = tokens.find(bytes.value_or(text));
  if (found == tokens.end()) return std::nullopt;
  return found->second;
}

absl::Status BytePairBuilder::AddAdded(const std::string& path, AddedToken token) {
  const auto bad = [&](const std::string& what) {
    return BadTokenizerFile(path,
                            absl::StrCat("the added token ", QuotedToken(token.text), " ", what));
  };
  if (token.text.empty()) return bad("is empty");
  const auto known = std::find_if(added_.begin(), added_.end(),
                                  [&](const auto& named) { return named.text == token.text; });
  std::optional<uint32_t> number = Find(token.text);
  if (known != added_.end()) number = static_cast<uint32_t>(*known->number);
  if (!number.has_value() && !token.number.has_value()) {
    return bad("has no number: give it one in added_tokens.json, or remove it");
  }
  const uint64_t wanted = token.number.value_or(number.value_or(0));
  if (wanted > kMaxNumber || (number.has_value() && *number != wanted)) {
    return bad(absl::StrCat("has the number ", wanted,
                            number.has_value() ? absl::StrCat(" here and ", *number, " elsewhere")
                                               : absl::StrCat(", above ", kMaxNumber)));
  }
  const auto own = static_cast<uint32_t>(wanted);
  const auto [entry, is_new] = name_of_token_.try_emplace(own, token.text);
  if (!is_new && entry->second != token.text && !number.has_value()) {
    return bad(absl::StrCat("has the number ", own, " of ", QuotedToken(entry->second)));
  }
  size_ = std::max(size_, own + 1);
  token.number = own;
  if (known == added_.end()) {
    added_.push_back(std::move(token));
  } else {
    known->special = known->special || token.special;
    known->normalized = known->normalized && token.normalized;
  }
  return absl::OkStatus();
}

absl::StatusOr<BytePairTables> BytePairBuilder::Finish(const std::string& path) {
  if (token_of_bytes_.empty()) {
    return BadTokenizerFile(path, "has no token in the byte alphabet of GPT-2");
  }
  BytePairTables tables;
  for (uint32_t token = 0; token < size_; ++token) tables.add_tokens();
  for (const auto& [bytes, token] : token_of_bytes_) {
    tables.set_tokens(static_cast<int>(token), bytes);
  }
  // Keeps the last of equal merges, in file order.
  absl::flat_hash_set<std::pair<uint32_t, uint32_t>> seen;
  std::vector<std::pair<uint32_t, uint32_t>> last;
  for (size_t i = merges_.size(); i-- > 0;) {
    if (seen.insert(merges_[i]).second) last.push_back(merges_[i]);
  }
  for (size_t i = last.size(); i-- > 0;) {
    tables.add_merges(last[i].first);
    tables.add_merges(last[i].second);
  }
  absl::flat_hash_set<std::string_view> added;
  for (const AddedToken& token : added_) {
    added.insert(token.text);
    const bool implied =
        token.text == kGpt2EndOfText && !token.normalized && token_of_bytes_.contains(token.text);
    if (implied) continue;
    BytePairTables::Named& named = *tables.add_added();
    named.set_token(static_cast<uint32_t>(*token.number));
    named.set_text(token.text);
    named.set_special(token.special);
    named.set_normalized(token.normalized);
  }
  std::vector<std::pair<uint32_t, std::string>> names;
  for (const auto& [name, token] : token_of_name_) {
    if (!added.contains(name)) names.emplace_back(token, name);
  }
  std::sort(names.begin(), names.end());
  for (const auto& [token, name] : names) {
    BytePairTables::Named& named = *tables.add_not_in_text();
    named.set_token(token);
    named.set_text(name);
  }
  return tables;
}

}  // namespace tug
