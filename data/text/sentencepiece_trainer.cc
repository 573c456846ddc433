// SPDX-License-Identifier: Apache-2.0
#include "data/text/sentencepiece_trainer.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "data/text/pair_learner.h"
#include "data/text/sentencepiece_model.h"
#include "data/text/utf8.h"

namespace tug {
namespace {

using Model = SentencePieceModel;

constexpr uint64_t kSampleBytes = uint64_t{32} << 20;
constexpr size_t kSamplePieceBytes = size_t{1} << 18;
constexpr size_t kMaxWordBytes = 256;  // longer words are counted in parts
constexpr int32_t kMaxPieceCharacters = 16;
constexpr double kCoverage = 0.9995;

// Words of a text with their counts.
class WordCounts {
 public:
  // Counts the words of `text`, which ends at a unit boundary.
  void Add(std::string_view text) {
    while (!text.empty()) {
      size_t size = WordBytes(text);
      if (size > kMaxWordBytes) {
        size = std::max<size_t>(WholeCodePoints(text.substr(0, kMaxWordBytes)), 1);
      }
      ++counts_[std::string(text.substr(0, size))];
      text.remove_prefix(size);
    }
  }

  // Words in byte order, so the order depends on the words only.
  std::vector<std::pair<std::string_view, int64_t>> Sorted() const {
    std::vector<std::pair<std::string_view, int64_t>> all(counts_.begin(), counts_.end());
    std::sort(all.begin(), all.end());
    return all;
  }

 private:
  // Length of the first word: all spaces but the last; newlines; or an optional space and what
  // follows.
  static size_t WordBytes(std::string_view text) {
    const size_t spaces = std::min(text.find_first_not_of(' '), text.size());
    if (spaces > 1) return spaces == text.size() ? spaces : spaces - 1;
    const size_t lines = std::min(text.find_first_not_of('\n'), text.size());
    if (lines > 0) return lines;
    const size_t end = text.find_first_of(" \n", spaces);
    return std::max<size_t>(std::min(end, text.size()), 1);
  }

  absl::flat_hash_map<std::string, int64_t> counts_;
};

absl::StatusOr<WordCounts> CountWords(const EncodedText& text) {
  WordCounts counts;
  const uint64_t stride =
      (text.size_bytes + kSampleBytes - 1) / kSampleBytes;  // 1 = read everything
  uint64_t piece_number = 0;
  RETURN_IF_ERROR(text.for_each_piece(
      [](std::string_view piece) { return SentencePieceCut(piece, SentencePieceUnit::kWords); },
      [&](std::string_view piece, uint64_t /*offset_bytes*/) {
        if (piece_number++ % stride == 0) counts.Add(piece);
        return absl::OkStatus();
      },
      kSamplePieceBytes));
  return counts;
}

// Characters of the words; symbols 0, 1, ... in order of decreasing frequency.
struct Characters {
  std::vector<std::string_view> characters;
  absl::flat_hash_map<std::string_view, int32_t> symbol_of;
};

// Calls take(character) for each code point, with a mark for a space, and take("") for anything
// that only bytes can encode: invalid UTF-8, the mark itself, and NUL, which the library allows in
// no piece.
template <typename Take>
void ForEachCharacter(std::string_view word, Take take) {
  while (!word.empty()) {
    const CodePoint point = DecodeUtf8(word);
    const bool valid = point.state == CodePoint::State::kValid;
    const std::string_view character = word.substr(0, valid ? point.size_bytes : 1);
    if (character == " ") {
      take(kSpaceMark);
    } else {
      take(valid && point.value != 0 && character != kSpaceMark ? character : std::string_view());
    }
    word.remove_prefix(character.size());
  }
}

Characters ChooseCharacters(const std::vector<std::pair<std::string_view, int64_t>>& words,
                            size_t room) {
  absl::flat_hash_map<std::string_view, int64_t> counts;
  int64_t total = 0;
  for (const auto& [word, count] : words) {
    const int64_t times = count;
    ForEachCharacter(word, [&](std::string_view character) {
      if (character.empty()) return;
      counts[character] += times;
      total += times;
    });
  }
  std::vector<std::pair<int64_t, std::string_view>> order;
  for (const auto& [character, count] : counts) order.emplace_back(-count, character);
  std::sort(order.begin(), order.end());
  Characters chosen;
  int64_t covered = 0;
  for (const auto& [minus_count, character] : order) {
    if (chosen.characters.size() >= room) break;
    if (static_cast<double>(covered) >= kCoverage * static_cast<double>(total)) break;
    chosen.symbol_of.emplace(character, static_cast<int32_t>(chosen.characters.size()));
    chosen.characters.push_back(character);
    covered -= minus_count;
  }
  return chosen;
}

// Converts words to symbols; splits a word at any other character.
std::vector<PairLearner::Word> ToSymbols(
    const std::vector<std::pair<std::string_view, int64_t>>& words, const Characters& characters) {
  std::vector<PairLearner::Word> result;
  for (const auto& [word, count] : words) {
    PairLearner::Word current{{}, count};
    const auto finish = [&] {
      if (current.symbols.size() > 1) result.push_back(current);
      current.symbols.clear();
    };
    ForEachCharacter(word, [&](std::string_view character) {
      const auto found = characters.symbol_of.find(character);
      if (found == characters.symbol_of.end()) return finish();
      current.symbols.push_back(found->second);
    });
    finish();
  }
  return result;
}

void AddPiece(Model& model, std::string_view text, float score, Model::Piece::Type type) {
  Model::Piece& piece = *model.add_pieces();
  piece.set_piece(std::string(text));
  piece.set_score(score);
  piece.set_type(type);
}

Model FixedPieces() {
  Model model;
  AddPiece(model, "<unk>", 0, Model::Piece::UNKNOWN);
  AddPiece(model, "<s>", 0, Model::Piece::CONTROL);
  AddPiece(model, "</s>", 0, Model::Piece::CONTROL);
  for (int byte = 0; byte < 256; ++byte) {
    AddPiece(model, absl::StrFormat("<0x%02X>", byte), 0, Model::Piece::BYTE);
  }
  Model::Trainer& trainer = *model.mutable_trainer_spec();
  trainer.set_model_type(Model::Trainer::BPE);
  trainer.set_character_coverage(static_cast<float>(kCoverage));
  trainer.set_max_sentencepiece_length(kMaxPieceCharacters);
  trainer.set_byte_fallback(true);
  trainer.set_unk_id(0);
  trainer.set_bos_id(1);
  trainer.set_eos_id(2);
  trainer.set_pad_id(-1);
  Model::Normalizer& normalizer = *model.mutable_normalizer_spec();
  normalizer.set_name("identity");
  normalizer.set_add_dummy_prefix(false);
  normalizer.set_remove_extra_whitespaces(false);
  normalizer.set_escape_whitespaces(true);
  return model;
}

}  // namespace

absl::StatusOr<SentencePieceModel> TrainSentencePieces(const EncodedText& text, uint32_t pieces) {
  if (pieces <= kSentencePieceFixed) {
    return absl::InvalidArgumentError(
        absl::StrCat("data.pieces = ", pieces, " is too few: ", kSentencePieceFixed,
                     " stand for bytes and the ends of text; set data.pieces to ",
                     2 * kSentencePieceFixed, " or more"));
  }
  ASSIGN_OR_RETURN(const WordCounts counts, CountWords(text));
  const auto words = counts.Sorted();
  const size_t room = pieces - kSentencePieceFixed;
  const Characters characters = ChooseCharacters(words, room);

  std::vector<std::string> symbols(characters.characters.begin(), characters.characters.end());
  PairLearner learner(ToSymbols(words, characters), std::vector<int32_t>(symbols.size(), 1),
                      kMaxPieceCharacters);
  Model model = FixedPieces();
  float score = 0;  // decreases by 1 per merge, which gives the merge order
  // A learned piece like "<s>" would be mistaken for the fixed one.
  absl::flat_hash_set<std::string_view> fixed;
  for (const Model::Piece& piece : model.pieces()) fixed.insert(piece.piece());
  absl::flat_hash_set<std::string> made;
  PairLearner::Pair pair;
  while (made.size() + characters.characters.size() < room && learner.Next(pair)) {
    symbols.push_back(symbols[static_cast<size_t>(pair.left)] +
                      symbols[static_cast<size_t>(pair.right)]);
    // The same text was merged from other parts before: no second piece is needed.
    if (fixed.contains(symbols.back()) || !made.insert(symbols.back()).second) continue;
    AddPiece(model, symbols.back(), score, Model::Piece::NORMAL);
    score -= 1;
  }
  for (const std::string_view character : characters.characters) {
    AddPiece(model, character, score, Model::Piece::NORMAL);
    score -= 1;
  }
  model.mutable_trainer_spec()->set_vocab_size(model.pieces_size());
  return model;
}

}  // namespace tug
