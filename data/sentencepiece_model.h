#ifndef TUG_DATA_SENTENCEPIECE_MODEL_H_
#define TUG_DATA_SENTENCEPIECE_MODEL_H_

// A SentencePiece model ready for use, and the units of text it works on. The format and what it
// means are google/sentencepiece's (sentencepiece_model.proto); the library itself carries a copy
// of an old protobuf that clashes with ours in one process, so it is only what the tests' golden
// tokens are from.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "data/byte_pairs.h"
#include "proto/tokenizer_files.pb.h"

namespace tug {

// Longest piece that is taken: pieces of a word are far shorter, and finding the best division of a
// text takes time in proportion.
inline constexpr size_t kMaxPieceBytes = 1024;

// Stands for a space in pieces: U+2581.
inline constexpr std::string_view kSpaceMark = "\xE2\x96\x81";

// Immutable, so thread-safe.
class SentencePieces {
 public:
  // Errors: INVALID_ARGUMENT, one line, for models that are damaged (scores that are not finite,
  // pieces of more than kMaxPieceBytes), or that do not give text back as it was: with rules of
  // normalisation, or of type WORD or CHAR.
  static absl::StatusOr<SentencePieces> Create(std::string_view model_bytes);

  uint32_t size() const { return static_cast<uint32_t>(model_.pieces_size()); }
  SentencePieceModel::Trainer::ModelType type() const { return model_.trainer_spec().model_type(); }
  const SentencePieceModel::Piece& piece(int32_t token) const { return model_.pieces(token); }

  // A piece that text can be cut into; -1 = none.
  int32_t Find(std::string_view piece) const;
  // The token of a byte; -1 = the model has no bytes.
  int32_t TokenOfByte(uint8_t byte) const { return token_of_byte_[byte]; }
  // Of the longest of these pieces.
  size_t max_piece_bytes() const { return max_piece_bytes_; }
  float min_score() const { return min_score_; }
  float max_score() const { return max_score_; }

  // BPE: symbols are tokens, and beyond size() the characters that are part of a piece but none
  // themselves. -1 = a character of no piece.
  int32_t SymbolOfCharacter(std::string_view character) const;
  const PairRanks& ranks() const { return ranks_; }
  // BPE: whether a piece that is always one token begins here; its length or 0.
  size_t UserDefinedBytes(std::string_view text) const;
  bool has_user_defined() const { return !user_defined_.empty(); }

 private:
  SentencePieces() = default;
  absl::Status Take();
  void TakePairs();

  SentencePieceModel model_;
  absl::flat_hash_map<std::string_view, int32_t> tokens_;        // views of model_
  absl::flat_hash_map<std::string_view, int32_t> user_defined_;  // those that are
  absl::flat_hash_map<std::string_view, int32_t> characters_;    // symbols beyond size()
  PairRanks ranks_;
  int32_t token_of_byte_[256];
  size_t max_piece_bytes_ = 0;
  size_t max_user_defined_bytes_ = 0;
  float min_score_ = 0;
  float max_score_ = 0;
};

// The units that text is tokenized in, one by one: a unit begins with a space that follows anything
// but a space, with what follows a line end and is none, and after kMaxUnitBytes. Models are
// trained on words, so their pieces do not reach over these places.

// Length of the unit that non-empty `text` begins with, at least 1.
size_t SentencePieceUnitBytes(std::string_view text);

// As Tokenizer::Cut.
size_t SentencePieceCut(std::string_view text);

}  // namespace tug

#endif  // TUG_DATA_SENTENCEPIECE_MODEL_H_
