#include "data/sentencepiece_model.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "data/tokenizer.h"
#include "data/utf8.h"

namespace tug {
namespace {

using Model = SentencePieceModel;

absl::Status Bad(const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat(what,
                                                 "; give a model trained with "
                                                 "--normalization_rule_name=identity "
                                                 "--byte_fallback, or leave data.tokenizer_path "
                                                 "out to train one"));
}

// "<0x0A>" -> 10; -1 = of another form.
int ByteOf(std::string_view piece) {
  if (piece.size() != 6 || !piece.starts_with("<0x") || piece[5] != '>') return -1;
  int byte = -1;
  const auto read = std::from_chars(piece.data() + 3, piece.data() + 5, byte, 16);
  return read.ptr == piece.data() + 5 ? byte : -1;
}

// `piece 7 "lower"`, on one line, shortened.
std::string NameOf(int32_t token, std::string_view text) {
  const std::string_view front = text.substr(0, 40);
  return absl::StrCat(
      "piece ", token, " \"",
      absl::Utf8SafeCHexEscape(std::string(front.substr(0, WholeCodePoints(front)))),
      front.size() < text.size() ? "...\"" : "\"");
}

// Whether text can be divided into such pieces.
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

bool BeginsUnit(std::string_view text, size_t at) {
  if (text[at] == ' ') return text[at - 1] != ' ';
  return text[at - 1] == '\n' && text[at] != '\n';
}

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
    return Bad("has spaces at the end of its pieces, or none");
  }
  std::fill(std::begin(token_of_byte_), std::end(token_of_byte_), -1);
  for (int32_t token = 0; token < model_.pieces_size(); ++token) {
    const Model::Piece& piece = model_.pieces(token);
    const std::string_view text = piece.piece();
    if (text.empty()) return Bad(absl::StrCat("has an empty piece ", token));
    if (piece.type() == Model::Piece::BYTE) {
      const int byte = ByteOf(text);
      if (byte < 0) return Bad(absl::StrCat("has no byte in its ", NameOf(token, text)));
      token_of_byte_[byte] = token;
    }
    const bool defined = piece.type() == Model::Piece::USER_DEFINED;
    if (!defined && piece.type() != Model::Piece::NORMAL) continue;
    RETURN_IF_ERROR(CheckPiece(token, piece));
    if (defined) {
      user_defined_.emplace(text, token);
      max_user_defined_bytes_ = std::max(max_user_defined_bytes_, text.size());
    } else {
      const bool first = tokens_.size() == user_defined_.size();
      min_score_ = first ? piece.score() : std::min(min_score_, piece.score());
      max_score_ = first ? piece.score() : std::max(max_score_, piece.score());
    }
    if (!tokens_.emplace(text, token).second) {
      return Bad(absl::StrCat("has its ", NameOf(token, text), " twice"));
    }
    max_piece_bytes_ = std::max(max_piece_bytes_, text.size());
  }
  if (tokens_.empty() && token_of_byte_[0] < 0) return Bad("has no pieces");
  if (merges) TakePairs();
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
  for (size_t n = std::min(max_user_defined_bytes_, text.size()); n > 0; --n) {
    if (user_defined_.contains(text.substr(0, n))) return n;
  }
  return 0;
}

size_t SentencePieceUnitBytes(std::string_view text) {
  size_t size = CharacterBytes(text);
  while (size < text.size() && !BeginsUnit(text, size)) {
    const size_t next = size + CharacterBytes(text.substr(size));
    if (next > kMaxUnitBytes) break;
    size = next;
  }
  return size;
}

size_t SentencePieceCut(std::string_view text) {
  for (size_t i = text.size(); i-- > 1;) {
    if (BeginsUnit(text, i)) return i;
  }
  // One unit without an end: only its greatest length is known.
  constexpr size_t kMaxCharacterBytes = 4;
  return text.size() < kMaxUnitBytes + kMaxCharacterBytes ? 0 : SentencePieceUnitBytes(text);
}

}  // namespace tug
