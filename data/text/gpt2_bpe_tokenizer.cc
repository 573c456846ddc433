// SPDX-License-Identifier: Apache-2.0
// GPT2_BPE: matches added tokens first, then merges byte pairs within the words of
// data/text/gpt2_words.h by the tables of data/text/gpt2_files.h. Encodes all bytes that are in the
// vocabulary. Paper: Radford et al. 2019, section 2.2.

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "data/text/added_tokens.h"
#include "data/text/byte_pairs.h"
#include "data/text/gpt2_files.h"
#include "data/text/gpt2_words.h"
#include "data/text/tokenizer.h"

namespace tug {
namespace {

class Gpt2BpeTokenizer : public Tokenizer {
 public:
  // Errors: no tokens, tokens out of range.
  static absl::StatusOr<std::unique_ptr<Tokenizer>> Create(BytePairTables tables) {
    auto made = std::unique_ptr<Gpt2BpeTokenizer>(new Gpt2BpeTokenizer());
    if (!made->Take(std::move(tables))) {
      return absl::InvalidArgumentError(
          "data.resolved_tokenizer holds no GPT-2 tables; it is filled in by the coordinator from "
          "data.tokenizer_path");
    }
    return made;
  }

  uint32_t symbols() const override { return static_cast<uint32_t>(tables_.tokens_size()); }

  using Tokenizer::Encode;
  absl::Status Encode(std::string_view text, uint64_t offset_bytes,
                      std::vector<int32_t>& tokens) const override {
    Words words(*this);
    const char* without = nullptr;  // first byte without a token
    added_.Split(
        text,
        [&](std::string_view part) {
          while (!part.empty() && without == nullptr) {
            const std::string_view word = part.substr(0, Gpt2WordBytes(part));
            without = words.Append(word, tokens);
            part.remove_prefix(word.size());
          }
        },
        [&](int32_t token, std::string_view /*text*/) { tokens.push_back(token); });
    if (without == nullptr) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrFormat(
        "byte 0x%02X at offset %u has no token in the vocabulary: use a tokenizer that has one, or "
        "another text",
        static_cast<uint8_t>(*without), offset_bytes + static_cast<size_t>(without - text.data())));
  }

  size_t Cut(std::string_view text) const override { return Gpt2Cut(text, added_); }

  absl::StatusOr<std::string> Decode(std::span<const int32_t> tokens) const override {
    std::string text;
    for (const int32_t token : tokens) {
      if (token < 0 || static_cast<uint32_t>(token) >= symbols()) {
        return absl::InvalidArgumentError(
            absl::StrCat("token ", token, " is not in 0..", symbols() - 1));
      }
      text += text_of_[static_cast<size_t>(token)];
    }
    return text;
  }

 private:
  // Caches the tokens of words in this text: most words repeat.
  class Words {
   public:
    explicit Words(const Gpt2BpeTokenizer& tokenizer)
        : tokenizer_(tokenizer), merger_(tokenizer.ranks_) {}

    // Returns the first byte of `word` that has no token, or null.
    const char* Append(std::string_view word, std::vector<int32_t>& tokens) {
      auto [entry, is_new] = known_.try_emplace(word);
      if (is_new) {
        symbols_.clear();
        for (const char& c : word) {
          symbols_.push_back(tokenizer_.token_of_byte_[static_cast<uint8_t>(c)]);
          if (symbols_.back() < 0) return &c;
        }
        merger_.Merge(symbols_);
        entry->second = {kept_.size(), symbols_.size()};
        kept_.insert(kept_.end(), symbols_.begin(), symbols_.end());
      }
      const auto begin = kept_.begin() + static_cast<ptrdiff_t>(entry->second.first);
      tokens.insert(tokens.end(), begin, begin + static_cast<ptrdiff_t>(entry->second.second));
      return nullptr;
    }

   private:
    const Gpt2BpeTokenizer& tokenizer_;
    PairMerger merger_;
    std::vector<int32_t> symbols_;
    std::vector<int32_t> kept_;
    // Offset in kept_ and number of tokens.
    absl::flat_hash_map<std::string_view, std::pair<size_t, size_t>> known_;
  };

  Gpt2BpeTokenizer() = default;

  bool Take(BytePairTables tables) {
    tables_ = std::move(tables);
    if (tables_.tokens().empty()) return false;
    text_of_.assign(tables_.tokens().begin(), tables_.tokens().end());
    absl::flat_hash_map<std::string_view, int32_t> token_of;
    for (int i = 0; i < tables_.tokens_size(); ++i) {
      if (!tables_.tokens(i).empty()) token_of.emplace(tables_.tokens(i), i);
    }
    for (size_t b = 0; b < 256; ++b) {
      const char byte = static_cast<char>(b);
      const auto found = token_of.find(std::string_view(&byte, 1));
      token_of_byte_[b] = found == token_of.end() ? -1 : found->second;
    }
    for (int i = 0; i + 1 < tables_.merges_size(); i += 2) {
      if (std::max(tables_.merges(i), tables_.merges(i + 1)) >= symbols()) return false;
      const auto left = static_cast<int32_t>(tables_.merges(i));
      const auto right = static_cast<int32_t>(tables_.merges(i + 1));
      const auto merged = token_of.find(absl::StrCat(tables_.tokens(left), tables_.tokens(right)));
      if (merged == token_of.end()) return false;
      ranks_.Add(left, right, {static_cast<uint32_t>(i / 2), merged->second});
    }
    return TakeNamed(token_of);
  }

  bool TakeNamed(const absl::flat_hash_map<std::string_view, int32_t>& token_of) {
    for (const BytePairTables::Named& name : tables_.not_in_text()) {
      if (name.token() >= symbols()) return false;
      text_of_[name.token()] = name.text();
    }
    for (const BytePairTables::Named& name : tables_.added()) {
      if (name.token() >= symbols() || name.text().empty()) return false;
      text_of_[name.token()] = name.text();
      added_.Add(name.text(), static_cast<int32_t>(name.token()), name.normalized());
    }
    const auto end = token_of.find(kGpt2EndOfText);
    if (end != token_of.end()) added_.Add(kGpt2EndOfText, end->second, /*normalized=*/false);
    return true;
  }

  BytePairTables tables_;
  std::vector<std::string_view> text_of_;  // views of tables_
  int32_t token_of_byte_[256];             // -1 = none
  PairRanks ranks_;
  AddedTokens added_;
};

}  // namespace

absl::Status ResolveGpt2Bpe(const EncodedText& /*text*/, DataConfig& config) {
  if (config.tokenizer_path().empty()) {
    return absl::InvalidArgumentError(
        "data.tokenizer GPT2_BPE needs data.tokenizer_path: set it to a folder with "
        "tokenizer.json, "
        "or with vocab.json and merges.txt");
  }
  ASSIGN_OR_RETURN(const BytePairTables tables, ReadGpt2Files(config.tokenizer_path()));
  config.set_resolved_tokenizer(tables.SerializeAsString());
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Tokenizer>> MakeGpt2BpeTokenizer(const DataConfig& config) {
  BytePairTables tables;
  if (!tables.ParseFromString(config.resolved_tokenizer())) tables.Clear();
  return Gpt2BpeTokenizer::Create(std::move(tables));
}

}  // namespace tug
