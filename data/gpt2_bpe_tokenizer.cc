// GPT2_BPE: byte pairs merged within the words of data/gpt2_words.h, by the tables of
// data/gpt2_files.h; "<|endoftext|>" is one token where the vocabulary has it. Any bytes have
// tokens. Radford et al. 2019, section 2.2.

#include <optional>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "data/byte_pairs.h"
#include "data/gpt2_files.h"
#include "data/gpt2_words.h"
#include "data/tokenizer.h"

namespace tug {
namespace {

class Gpt2BpeTokenizer : public Tokenizer {
 public:
  // Errors: a byte without a token, tokens out of range.
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
  absl::Status Encode(std::string_view text, uint64_t /*offset_bytes*/,
                      std::vector<int32_t>& tokens) const override {
    Words words(*this);
    while (!text.empty()) {
      const size_t found =
          end_of_text_.has_value() ? text.find(kGpt2EndOfText) : std::string_view::npos;
      std::string_view before = text.substr(0, found);
      text.remove_prefix(before.size());
      while (!before.empty()) {
        const size_t size = Gpt2WordBytes(before);
        words.Append(before.substr(0, size), tokens);
        before.remove_prefix(size);
      }
      if (text.empty()) break;
      tokens.push_back(*end_of_text_);
      text.remove_prefix(kGpt2EndOfText.size());
    }
    return absl::OkStatus();
  }

  size_t Cut(std::string_view text) const override {
    return Gpt2Cut(text, end_of_text_.has_value() ? kGpt2EndOfText : "");
  }

  absl::StatusOr<std::string> Decode(std::span<const int32_t> tokens) const override {
    std::string text;
    for (const int32_t token : tokens) {
      if (token < 0 || static_cast<uint32_t>(token) >= symbols()) {
        return absl::InvalidArgumentError(
            absl::StrCat("token ", token, " is not in 0..", symbols() - 1));
      }
      text += tables_.tokens(token);
    }
    return text;
  }

 private:
  // The tokens of words already seen in this text: most words come again.
  class Words {
   public:
    explicit Words(const Gpt2BpeTokenizer& tokenizer)
        : tokenizer_(tokenizer), merger_(tokenizer.ranks_) {}

    void Append(std::string_view word, std::vector<int32_t>& tokens) {
      auto [entry, is_new] = known_.try_emplace(word);
      if (is_new) {
        symbols_.clear();
        for (const char c : word) {
          symbols_.push_back(tokenizer_.token_of_byte_[static_cast<uint8_t>(c)]);
        }
        merger_.Merge(symbols_);
        entry->second = {kept_.size(), symbols_.size()};
        kept_.insert(kept_.end(), symbols_.begin(), symbols_.end());
      }
      const auto begin = kept_.begin() + static_cast<ptrdiff_t>(entry->second.first);
      tokens.insert(tokens.end(), begin, begin + static_cast<ptrdiff_t>(entry->second.second));
    }

   private:
    const Gpt2BpeTokenizer& tokenizer_;
    PairMerger merger_;
    std::vector<int32_t> symbols_;
    std::vector<int32_t> kept_;
    // Where in kept_, and how many.
    absl::flat_hash_map<std::string_view, std::pair<size_t, size_t>> known_;
  };

  Gpt2BpeTokenizer() = default;

  bool Take(BytePairTables tables) {
    tables_ = std::move(tables);
    absl::flat_hash_map<std::string_view, int32_t> token_of;
    for (int i = 0; i < tables_.tokens_size(); ++i) token_of.emplace(tables_.tokens(i), i);
    for (size_t b = 0; b < 256; ++b) {
      const char byte = static_cast<char>(b);
      const auto found = token_of.find(std::string_view(&byte, 1));
      if (found == token_of.end()) return false;
      token_of_byte_[b] = found->second;
    }
    for (int i = 0; i + 1 < tables_.merges_size(); i += 2) {
      if (std::max(tables_.merges(i), tables_.merges(i + 1)) >= symbols()) return false;
      const auto left = static_cast<int32_t>(tables_.merges(i));
      const auto right = static_cast<int32_t>(tables_.merges(i + 1));
      const auto merged = token_of.find(absl::StrCat(tables_.tokens(left), tables_.tokens(right)));
      if (merged == token_of.end()) return false;
      ranks_.Add(left, right, {static_cast<uint32_t>(i / 2), merged->second});
    }
    const auto end = token_of.find(kGpt2EndOfText);
    if (end != token_of.end()) end_of_text_ = end->second;
    return true;
  }

  BytePairTables tables_;
  int32_t token_of_byte_[256];
  PairRanks ranks_;
  std::optional<int32_t> end_of_text_;
};

}  // namespace

absl::Status ResolveGpt2Bpe(const EncodedText& /*text*/, DataConfig& config) {
  if (config.tokenizer_path().empty()) {
    return absl::InvalidArgumentError(
        "data.tokenizer GPT2_BPE needs data.tokenizer_path: set it to a folder with vocab.json and "
        "merges.txt");
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
