// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_DATA_TEXT_SENTENCEPIECE_MODEL_H_
#define TUG_DATA_TEXT_SENTENCEPIECE_MODEL_H_

// A parsed SentencePiece model, and the units in which text is encoded. Format and semantics are
// google/sentencepiece's (sentencepiece_model.proto). The library itself bundles an old protobuf
// that clashes with this program's, so it is used only to generate the golden tokens of tests.

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "data/text/byte_pairs.h"
#include "data/text/prefix_trie.h"
#include "proto/tokenizer_files.pb.h"

namespace tug {

// Maximum length of a piece. Pieces of a word are far shorter, and the time to find the best
// division of a text is proportional to it.
inline constexpr size_t kMaxPieceBytes = 1024;

// Represents a space in pieces: U+2581.
inline constexpr std::string_view kSpaceMark = "\xE2\x96\x81";

// Units of text that are encoded independently.
//   kWords  a unit begins at a space after any other character, and at the first character of a
//           line. Most units repeat, so their tokens are cached.
//   kLines  a unit begins at the first character of a line. The library sums scores in FP32 from
//           the beginning of a line, so only whole lines round identically.
// A newline belongs to the line before it. Units end after at most kMaxUnitBytes.
enum class SentencePieceUnit { kWords, kLines };

// Immutable, hence thread-safe.
class SentencePieces {
 public:
  // Errors: INVALID_ARGUMENT, one line, for a damaged model (scores that are not finite, pieces of
  // more than kMaxPieceBytes) or one that does not reproduce its input: with normalisation rules,
  // or of type WORD or CHAR.
  static absl::StatusOr<SentencePieces> Create(std::string_view model_bytes);

  // Refuses a model whose tokens would differ from the library's: one that adds or removes spaces,
  // or has pieces that only the library's search finds. Errors: INVALID_ARGUMENT, one line.
  absl::Status CheckEncodesAsLibrary() const;

  uint32_t size() const { return static_cast<uint32_t>(model_.pieces_size()); }
  SentencePieceModel::Trainer::ModelType type() const { return model_.trainer_spec().model_type(); }
  const SentencePieceModel::Piece& piece(int32_t token) const { return model_.pieces(token); }

  // kLines for UNIGRAM models, and for others with a piece that spans a word boundary.
  SentencePieceUnit unit() const { return unit_; }

  // Token of a piece that occurs in text; -1 = none.
  int32_t Find(std::string_view piece) const;
  // Token of a byte; -1 = the model has no byte pieces.
  int32_t TokenOfByte(uint8_t byte) const { return token_of_byte_[byte]; }
  // UNIGRAM: all pieces that occur in text.
  const PrefixTrie& trie() const { return trie_; }
  // Lowest score of the normal pieces.
  float min_score() const { return min_score_; }

  // BPE: symbols below size() are tokens; those from size() on are characters that occur in pieces
  // but are not pieces. -1 = a character of no piece.
  int32_t SymbolOfCharacter(std::string_view character) const;
  const PairRanks& ranks() const { return ranks_; }
  // BPE: length of the longest user-defined piece at the front of `text`, which is always one
  // token; 0 if none.
  size_t UserDefinedBytes(std::string_view text) const;

 private:
  SentencePieces() = default;
  absl::Status Take();
  absl::Status TakePiece(int32_t token);
  void TakePairs();

  SentencePieceModel model_;
  SentencePieceUnit unit_ = SentencePieceUnit::kWords;
  absl::flat_hash_map<std::string_view, int32_t> tokens_;      // views of model_
  absl::flat_hash_map<std::string_view, int32_t> characters_;  // symbols beyond size()
  PrefixTrie trie_;
  PrefixTrie user_defined_;
  PairRanks ranks_;
  int32_t token_of_byte_[256];
  float min_score_ = std::numeric_limits<float>::max();
};

// Length of the first unit of non-empty `text`, at least 1.
size_t SentencePieceUnitBytes(std::string_view text, SentencePieceUnit unit);

// Implements Tokenizer::Cut.
size_t SentencePieceCut(std::string_view text, SentencePieceUnit unit);

}  // namespace tug

#endif  // TUG_DATA_TEXT_SENTENCEPIECE_MODEL_H_
