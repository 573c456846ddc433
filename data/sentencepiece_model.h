#ifndef TUG_DATA_SENTENCEPIECE_MODEL_H_
#define TUG_DATA_SENTENCEPIECE_MODEL_H_

// A SentencePiece model ready for use, and the units of text it works on. The format and what it
// means are google/sentencepiece's (sentencepiece_model.proto); the library itself carries a copy
// of an old protobuf that clashes with ours in one process, so it is only what the tests' golden
// tokens are from.

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
#include "data/byte_pairs.h"
#include "data/prefix_trie.h"
#include "proto/tokenizer_files.pb.h"

namespace tug {

// Longest piece that is taken: pieces of a word are far shorter, and finding the best division of a
// text takes time in proportion.
inline constexpr size_t kMaxPieceBytes = 1024;

// Stands for a space in pieces: U+2581.
inline constexpr std::string_view kSpaceMark = "\xE2\x96\x81";

// The units that text is encoded in, one by one.
//   kWords  a unit begins with a space that follows anything else, and with the first character of
//           a line. Most units repeat, so their tokens are remembered.
//   kLines  a unit begins with the first character of a line. The library adds up scores from the
//           beginning of a line in FP32, so only whole lines round equally.
// An end of a line belongs to the line before it. Units end after kMaxUnitBytes at the latest.
enum class SentencePieceUnit { kWords, kLines };

// Immutable, so thread-safe.
class SentencePieces {
 public:
  // Errors: INVALID_ARGUMENT, one line, for models that are damaged (scores that are not finite,
  // pieces of more than kMaxPieceBytes), or that do not give text back as it was: with rules of
  // normalisation, or of type WORD or CHAR.
  static absl::StatusOr<SentencePieces> Create(std::string_view model_bytes);

  // Refuses a model whose tokens would differ from those of the library: one that adds or removes
  // spaces, or has pieces that only the library's search finds. INVALID_ARGUMENT, one line.
  absl::Status CheckEncodesAsLibrary() const;

  uint32_t size() const { return static_cast<uint32_t>(model_.pieces_size()); }
  SentencePieceModel::Trainer::ModelType type() const { return model_.trainer_spec().model_type(); }
  const SentencePieceModel::Piece& piece(int32_t token) const { return model_.pieces(token); }

  // kLines for UNIGRAM models, and for others with a piece that reaches into the next word.
  SentencePieceUnit unit() const { return unit_; }

  // A piece that text can be cut into; -1 = none.
  int32_t Find(std::string_view piece) const;
  // The token of a byte; -1 = the model has no bytes.
  int32_t TokenOfByte(uint8_t byte) const { return token_of_byte_[byte]; }
  // UNIGRAM: all pieces that text can be cut into.
  const PrefixTrie& trie() const { return trie_; }
  // Of the normal pieces.
  float min_score() const { return min_score_; }

  // BPE: symbols are tokens, and beyond size() the characters that are part of a piece but none
  // themselves. -1 = a character of no piece.
  int32_t SymbolOfCharacter(std::string_view character) const;
  const PairRanks& ranks() const { return ranks_; }
  // BPE: whether a piece that is always one token begins here; its length or 0.
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

// Length of the unit that non-empty `text` begins with, at least 1.
size_t SentencePieceUnitBytes(std::string_view text, SentencePieceUnit unit);

// As Tokenizer::Cut.
size_t SentencePieceCut(std::string_view text, SentencePieceUnit unit);

}  // namespace tug

#endif  // TUG_DATA_SENTENCEPIECE_MODEL_H_
