// SPDX-License-Identifier: Apache-2.0
#include "data/text/sentencepiece_model.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "data/text/tokenizer.h"
#include "data/text/utf8.h"

namespace tug {
namespace {

using Model = SentencePieceModel;

absl::Status Bad(const std::string& what) {
  return absl::InvalidArgumentError(
      absl::StrCat(what,
                   "; use a model trained with --normalization_rule_name=identity --byte_fallback, "
                   "or remove data.tokenizer_path to train one"));
}

// "<0x0A>" -> 10; -1 = any other form.
int ByteOf(std::string_view piece) {
  if (piece.size() != 6 || !piece.starts_with("<0x") || piece[5] != '>') return -1;
  int byte = -1;
  const auto read = std::from_chars(piece.data() + 3, piece.data() + 5, byte, 16);
  return read.ptr == piece.data() + 5 ? byte : -1;
}

// `piece 7 "lower"`, on one line, truncated.
std::string NameOf(int32_t token, std::string_view text) {
  const std::string_view front = text.substr(0, 40);
  return absl::StrCat(
      "piece ", token, " \"",
      absl::Utf8SafeCHexEscape(std::string(front.substr(0, WholeCodePoints(front)))),
      front.size() < text.size() ? "...\"" : "\"");
}

// Checks the score and length of a piece that occurs in text.
absl::Status CheckPiece(int32_t token, const Model::Piece& piece) {
  if (!std::isfinite(piece.score())) {
    return Bad(absl::StrCat("has the score ", piece.score(), " for its ",
                            NameOf(token, piece.piece()), ", which is not finite"));
  }
  if (piece.piece().size() > kMaxPieceBytes) {
    return Bad(absl::StrCat("has ", piece.piece().size(), " bytes in its ",
                            NameOf(token, piece.piece()), ", more than ", kMaxPieceBytes));
  }
  return absl::OkStatus();
}

bool BeginsLine(std::string_view text, size_t at) {
  return text[at - 1] == '\n' && text[at] != '\n';
}

bool BeginsUnit(std::string_view text, size_t at, SentencePieceUnit unit) {
  if (BeginsLine(text, at)) return true;
  return unit == SentencePieceUnit::kWords && text[at] == ' ' && text[at - 1] != ' ';
}

// Whether a word or line begins inside the piece, whose spaces are marks.
template <typename Begins>
bool ReachesOver(std::string_view piece, Begins begins) {
  for (size_t at = 1; at < piece.size(); ++at) {
    if (begins(piece, at)) return true;
  }
  return false;
}

bool ReachesOverWord(std::string_view piece) {
  return ReachesOver(piece, [](std::string_view text, size_t at) {
    return BeginsLine(text, at) ||
           (text.substr(at).starts_with(kSpaceMark) && !text.substr(0, at).ends_with(kSpaceMark));
  });
}

bool ReachesOverLine(std::string_view piece) { return ReachesOver(piece, BeginsLine); }

}  // namespace

absl::StatusOr<SentencePieces> SentencePieces::Create(std::string_view model_bytes) {
  SentencePieces made;
  if (model_bytes.empty() ||
      !made.model_.ParseFromArray(model_bytes.data(), static_cast<int>(model_bytes.size())) ||
      made.model_.pieces_size() == 0) {
    return Bad("is not a SentencePiece model");
  }
  RETURN_IF_ERROR(made.Take());
  return made;
}

absl::Status SentencePieces::Take() {
  const bool merges = type() == Model::Trainer::BPE;
  if (!merges && type() != Model::Trainer::UNIGRAM) return Bad("is of type WORD or CHAR");
  if (!model_.normalizer_spec().precompiled_charsmap().empty()) {
    return Bad(absl::StrCat("changes text by the rules ", model_.normalizer_spec().name()));
  }
  if (model_.trainer_spec().treat_whitespace_as_suffix() ||
      !model_.normalizer_spec().escape_whitespaces()) {
    return Bad("does not mark spaces at the start of its pieces");
  }
  unit_ = merges ? SentencePieceUnit::kWords : SentencePieceUnit::kLines;
  std::fill(std::begin(token_of_byte_), std::end(token_of_byte_), -1);
  for (int32_t token = 0; token < model_.pieces_size(); ++token) {
    RETURN_IF_ERROR(TakePiece(token));
  }
  if (tokens_.empty() && token_of_byte_[0] < 0) return Bad("has no pieces");
  if (merges) TakePairs();
  return absl::OkStatus();
}

absl::Status SentencePieces::TakePiece(int32_t token) {
  const Model::Piece& piece = model_.pieces(token);
  const std::string_view text = piece.piece();
  if (text.empty()) return Bad(absl::StrCat("has an empty piece ", token));
  if (piece.type() == Model::Piece::BYTE) {
    const int byte = ByteOf(text);
    if (byte < 0) return Bad(absl::StrCat("has no byte value in its ", NameOf(token, text)));
    token_of_byte_[byte] = token;
  }
  const bool defined = piece.type() == Model::Piece::USER_DEFINED;
  if (!defined && piece.type() != Model::Piece::NORMAL) return absl::OkStatus();
  RETURN_IF_ERROR(CheckPiece(token, piece));
  if (!tokens_.emplace(text, token).second) {
    return Bad(absl::StrCat("has ", NameOf(token, text), " twice"));
  }
  if (ReachesOverWord(text)) unit_ = SentencePieceUnit::kLines;
  if (defined) {
    user_defined_.Add(text, token);
  } else {
    min_score_ = std::min(min_score_, piece.score());
  }
  if (type() == Model::Trainer::UNIGRAM) trie_.Add(text, token);
  return absl::OkStatus();
}

absl::Status SentencePieces::CheckEncodesAsLibrary() const {
  const Model::Normalizer& normalizer = model_.normalizer_spec();
  const auto changes_spaces = [](const char* what, const char* field) {
    return absl::InvalidArgumentError(
        absl::StrCat(what, ", which would change the text; train it with --", field,
                     "=false, or set normalizer_spec.", field, " of the model to false"));
  };
  if (normalizer.add_dummy_prefix()) {
    return changes_spaces("adds a space in front of every text", "add_dummy_prefix");
  }
  if (normalizer.remove_extra_whitespaces()) {
    return changes_spaces("removes repeated spaces", "remove_extra_whitespaces");
  }
  const bool merges = type() == Model::Trainer::BPE;
  for (int32_t token = 0; token < model_.pieces_size(); ++token) {
    const Model::Piece& piece = model_.pieces(token);
    const std::string_view text = piece.piece();
    const bool in_text =
        piece.type() == Model::Piece::NORMAL || piece.type() == Model::Piece::USER_DEFINED;
    if (in_text && ReachesOverLine(text)) {
      return Bad(absl::StrCat("has a line end inside its ", NameOf(token, text),
                              ", and lines are encoded one by one"));
    }
    if (!merges || in_text) continue;
    // The library merges into unused pieces and then undoes it. It also looks up merges among the
    // pieces that represent no text.
    if (piece.type() == Model::Piece::UNUSED) {
      return Bad(absl::StrCat("has an unused ", NameOf(token, text)));
    }
    if (Find(text) >= 0 ||
        (piece.type() == Model::Piece::CONTROL && CharacterBytes(text) == text.size())) {
      return Bad(absl::StrCat("has a ", NameOf(token, text), " that matches ordinary text"));
    }
  }
  return absl::OkStatus();
}

void SentencePieces::TakePairs() {
  std::vector<float> scores;
  for (const auto& [text, token] : tokens_) {
    scores.push_back(piece(token).score());
    for (std::string_view rest = text; !rest.empty(); rest.remove_prefix(CharacterBytes(rest))) {
      const std::string_view character = rest.substr(0, CharacterBytes(rest));
      if (tokens_.contains(character)) continue;
      const size_t symbol = size() + characters_.size();
      characters_.try_emplace(character, static_cast<int32_t>(symbol));
    }
  }
  // Higher scores merge first; equal ones share a rank, so that the leftmost merges first.
  std::sort(scores.begin(), scores.end(), std::greater<>());
  scores.erase(std::unique(scores.begin(), scores.end()), scores.end());
  const auto symbol_of = [this](std::string_view part) {
    const auto token = tokens_.find(part);
    if (token != tokens_.end()) return token->second;
    const auto character = characters_.find(part);
    return character == characters_.end() ? -1 : character->second;
  };
  for (const auto& [text, token] : tokens_) {
    const auto place =
        std::lower_bound(scores.begin(), scores.end(), piece(token).score(), std::greater<>());
    const auto rank = static_cast<uint32_t>(place - scores.begin());
    for (size_t at = CharacterBytes(text); at < text.size();) {
      const int32_t left = symbol_of(text.substr(0, at));
      const int32_t right = symbol_of(text.substr(at));
      if (left >= 0 && right >= 0) ranks_.Add(left, right, {rank, token});
      at += CharacterBytes(text.substr(at));
    }
  }
}

int32_t SentencePieces::Find(std::string_view piece) const {
  const auto found = tokens_.find(piece);
  return found == tokens_.end() ? -1 : found->second;
}

int32_t SentencePieces::SymbolOfCharacter(std::string_view character) const {
  const int32_t token = Find(character);
  if (token >= 0) return token;
  const auto found = characters_.find(character);
  return found == characters_.end() ? -1 : found->second;
}

size_t SentencePieces::UserDefinedBytes(std::string_view text) const {
  size_t longest = 0;
  user_defined_.ForEachPrefix(text, [&](size_t size, int32_t /*token*/) { longest = size; });
  return longest;
}

size_t SentencePieceUnitBytes(std::string_view text, SentencePieceUnit unit) {
  size_t size = CharacterBytes(text);
  size_t last_word = 0;  // start of the last word
  while (size < text.size() && !BeginsUnit(text, size, unit)) {
    if (BeginsUnit(text, size, SentencePieceUnit::kWords)) last_word = size;
    const size_t next = size + CharacterBytes(text.substr(size));
    if (next > kMaxUnitBytes) return last_word > 0 ? last_word : size;
    size = next;
  }
  return size;
}

size_t SentencePieceCut(std::string_view text, SentencePieceUnit unit) {
  for (size_t i = text.size(); i-- > 1;) {
    if (BeginsUnit(text, i, unit)) return i;
  }
  // A single unit without an end in sight: only its maximum length is known.
  constexpr size_t kMaxCharacterBytes = 4;
  return text.size() < kMaxUnitBytes + kMaxCharacterBytes ? 0 : SentencePieceUnitBytes(text, unit);
}

}  // namespace tug
