// SPDX-License-Identifier: Apache-2.0
// SENTENCEPIECE: the pieces of a model (data/text/sentencepiece_model.h), found in each unit of
// text by merging pairs (BPE) or as the most probable division (UNIGRAM; Kudo 2018, "Subword
// regularization", section 3.2). A character without a piece is encoded as its UTF-8 bytes.
// Encoding is lossless: a model that adds a space before a text or removes repeated spaces is
// refused.

#include <algorithm>
#include <cmath>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/files/file.h"
#include "base/status_macros.h"
#include "data/text/byte_pairs.h"
#include "data/text/sentencepiece_files.h"
#include "data/text/sentencepiece_model.h"
#include "data/text/sentencepiece_trainer.h"
#include "data/text/tokenizer.h"
#include "data/text/utf8.h"

namespace tug {
namespace {

// The model is sent to every node within the job's configuration (kMaxJobConfigBytes in
// config/job_config.h).
constexpr uint64_t kModelLimitBytes = uint64_t{12} << 20;
// A character without a piece scores this much less than the worst piece (google/sentencepiece,
// unigram_model.cc: kUnkPenalty).
constexpr float kUnknownPenalty = 10;
// Above this, summing of scores restarts at 0 (kScoreResetThreshold).
constexpr float kSumLimit = 100000;
constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

std::string Replace(std::string_view text, std::string_view what, std::string_view by) {
  std::string result;
  for (size_t at; (at = text.find(what)) != std::string_view::npos;) {
    result.append(text.substr(0, at)).append(by);
    text.remove_prefix(at + what.size());
  }
  return result.append(text);
}

// Divides units of text into tokens. Reuses its memory between units.
class Divider {
 public:
  explicit Divider(const SentencePieces& pieces) : pieces_(pieces), merger_(pieces.ranks()) {}

  // Appends the tokens of `unit`. Returns the first character without a token; empty if none.
  std::string_view DivideText(std::string_view unit, std::vector<int32_t>& tokens) {
    while (true) {
      // A mark in the text would decode to a space, so it is encoded as bytes.
      const size_t mark = unit.find(kSpaceMark);
      marked_ = Replace(unit.substr(0, mark), " ", kSpaceMark);
      if (const auto bad = Divide(marked_, tokens); !bad.empty()) return bad;
      if (mark == std::string_view::npos) return {};
      if (const auto bad = AppendBytes(kSpaceMark, tokens); !bad.empty()) return bad;
      unit.remove_prefix(mark + kSpaceMark.size());
    }
  }

 private:
  // `unit` has marks instead of spaces.
  std::string_view Divide(std::string_view unit, std::vector<int32_t>& tokens) {
    return pieces_.type() == SentencePieceModel::Trainer::BPE ? Merge(unit, tokens)
                                                              : MostProbable(unit, tokens);
  }

  std::string_view AppendBytes(std::string_view character, std::vector<int32_t>& tokens) const {
    for (const char c : character) {
      const int32_t token = pieces_.TokenOfByte(static_cast<uint8_t>(c));
      if (token < 0) return character;
      tokens.push_back(token);
    }
    return {};
  }

  // Merges symbols between pieces that never merge: user-defined ones and characters without a
  // piece.
  std::string_view Merge(std::string_view unit, std::vector<int32_t>& tokens) {
    symbols_.clear();
    const char* begin = unit.data();  // of the characters in symbols_
    while (!unit.empty()) {
      const size_t defined = pieces_.UserDefinedBytes(unit);
      const size_t size = defined > 0 ? defined : CharacterBytes(unit);
      const std::string_view front = unit.substr(0, size);
      const int32_t symbol = defined > 0 ? -1 : pieces_.SymbolOfCharacter(front);
      if (symbol >= 0) {
        symbols_.push_back(symbol);
      } else {
        if (const auto bad = Flush({begin, front.data()}, tokens); !bad.empty()) return bad;
        if (defined > 0) {
          tokens.push_back(pieces_.Find(front));
        } else if (const auto bad = AppendBytes(front, tokens); !bad.empty()) {
          return bad;
        }
        begin = front.data() + size;
      }
      unit.remove_prefix(size);
    }
    return Flush({begin, unit.data()}, tokens);
  }

  // Merges symbols_, which are the characters of `text`, and appends the tokens.
  std::string_view Flush(std::string_view text, std::vector<int32_t>& tokens) {
    merger_.Merge(symbols_);
    for (const int32_t symbol : symbols_) {
      if (symbol < static_cast<int32_t>(pieces_.size())) {
        tokens.push_back(symbol);
        text.remove_prefix(pieces_.piece(symbol).piece().size());
        continue;
      }
      const std::string_view character = text.substr(0, CharacterBytes(text));
      if (const auto bad = AppendBytes(character, tokens); !bad.empty()) return bad;
      text.remove_prefix(character.size());
    }
    symbols_.clear();
    return {};
  }

  // Viterbi 1967 over the ends of pieces; scores are summed as in version 0.2.3 of the library.
  std::string_view MostProbable(std::string_view unit, std::vector<int32_t>& tokens) {
    best_.assign(unit.size() + 1, {});
    farthest_ = 0;
    const float unknown = pieces_.min_score() - kUnknownPenalty;
    for (size_t at = 0; at < unit.size();) {
      if (std::abs(best_[at].score) > kSumLimit) SumFromZeroAt(at);
      const size_t character = CharacterBytes(unit.substr(at));
      bool alone = false;  // whether some piece is exactly this character
      pieces_.trie().ForEachPrefix(unit.substr(at), [&](size_t size, int32_t token) {
        alone = alone || size == character;
        Reach(at, size, token, best_[at].score + ScoreOf(token, size));
      });
      if (!alone) Reach(at, character, -1, best_[at].score + unknown);
      at += character;
    }
    symbols_.clear();
    for (size_t end = unit.size(); end > 0; end -= best_[end].size_bytes) {
      symbols_.push_back(static_cast<int32_t>(end));
    }
    for (size_t i = symbols_.size(); i-- > 0;) {
      const auto end = static_cast<size_t>(symbols_[i]);
      const Best& best = best_[end];
      if (best.token >= 0) {
        tokens.push_back(best.token);
        continue;
      }
      const std::string_view character = unit.substr(end - best.size_bytes, best.size_bytes);
      if (const auto bad = AppendBytes(character, tokens); !bad.empty()) return bad;
    }
    symbols_.clear();
    return {};
  }

  // Scores are log probabilities, below 0, so user-defined pieces beat all others, and longer ones
  // beat shorter ones (GetUserDefinedScore; before version 0.2.3, -0.1 each).
  float ScoreOf(int32_t token, size_t size_bytes) const {
    const SentencePieceModel::Piece& piece = pieces_.piece(token);
    if (piece.type() != SentencePieceModel::Piece::USER_DEFINED) return piece.score();
    return static_cast<float>(0.1 * static_cast<double>(size_bytes - 1));
  }

  // On equal FP32 sums, the first one found stays. Before version 0.2.3 the library compared the
  // new sum in FP64, so nearly equal sums may give other tokens.
  void Reach(size_t from, size_t size_bytes, int32_t token, float score) {
    Best& best = best_[from + size_bytes];
    farthest_ = std::max(farthest_, from + size_bytes);
    if (best.size_bytes != 0 && score <= best.score) return;
    best = {score, size_bytes, token};
  }

  // Keeps the sums of long lines precise.
  void SumFromZeroAt(size_t at) {
    const float sum = best_[at].score;
    for (size_t end = at; end <= farthest_; ++end) {
      if (best_[end].size_bytes != 0) best_[end].score -= sum;
    }
  }

  // Best division of the text before an offset: its last piece.
  struct Best {
    float score = 0;
    size_t size_bytes = 0;
    int32_t token = -1;
  };

  const SentencePieces& pieces_;
  PairMerger merger_;
  std::string marked_;
  std::vector<int32_t> symbols_;
  std::vector<Best> best_;
  size_t farthest_ = 0;  // largest offset that a piece ends at
};

class SentencePieceTokenizer : public Tokenizer {
 public:
  explicit SentencePieceTokenizer(SentencePieces pieces) : pieces_(std::move(pieces)) {}

  uint32_t symbols() const override { return pieces_.size(); }

  using Tokenizer::Encode;
  absl::Status Encode(std::string_view text, uint64_t offset_bytes,
                      std::vector<int32_t>& tokens) const override {
    // Cache, since most units repeat: offset and number of a unit's tokens in `tokens`.
    absl::flat_hash_map<std::string_view, std::pair<size_t, size_t>> known;
    Divider divider(pieces_);
    for (std::string_view rest = text; !rest.empty();) {
      const std::string_view unit = rest.substr(0, SentencePieceUnitBytes(rest, pieces_.unit()));
      rest.remove_prefix(unit.size());
      const size_t begin = tokens.size();
      const auto [entry, is_new] = known.try_emplace(unit);
      if (!is_new) {
        const auto [first, count] = entry->second;
        for (size_t i = 0; i < count; ++i) tokens.push_back(tokens[first + i]);
        continue;
      }
      const std::string_view without = divider.DivideText(unit, tokens);
      if (!without.empty()) {
        return NoToken(without, offset_bytes + static_cast<size_t>(unit.data() - text.data()));
      }
      entry->second = {begin, tokens.size() - begin};
    }
    return absl::OkStatus();
  }

  size_t Cut(std::string_view text) const override {
    return SentencePieceCut(text, pieces_.unit());
  }

  absl::StatusOr<std::string> Decode(std::span<const int32_t> tokens) const override {
    std::string text;
    for (const int32_t token : tokens) {
      if (token < 0 || static_cast<uint32_t>(token) >= symbols()) {
        return absl::InvalidArgumentError(
            absl::StrCat("token ", token, " is not in 0..", symbols() - 1));
      }
      const SentencePieceModel::Piece& piece = pieces_.piece(token);
      switch (piece.type()) {
        case SentencePieceModel::Piece::BYTE:
          text.push_back(static_cast<char>(std::stoi(piece.piece().substr(3, 2), nullptr, 16)));
          break;
        case SentencePieceModel::Piece::CONTROL:
          break;  // control pieces have no text
        case SentencePieceModel::Piece::UNKNOWN:
          text += kReplacement;
          break;
        default:
          text += Replace(piece.piece(), kSpaceMark, " ");
      }
    }
    return text;
  }

 private:
  static absl::Status NoToken(std::string_view character, uint64_t offset_bytes) {
    const CodePoint point = DecodeUtf8(character);
    const std::string name =
        point.state == CodePoint::State::kValid
            ? absl::StrCat("character ", NameOfCodePoint(point.value))
            : absl::StrFormat("byte 0x%02X", static_cast<uint8_t>(character[0]));
    return absl::InvalidArgumentError(absl::StrCat(
        name, ", in the word at offset ", offset_bytes,
        ", has no piece in the SentencePiece model: use a model trained with --byte_fallback"));
  }

  SentencePieces pieces_;
};

}  // namespace

absl::Status ResolveSentencePiece(const EncodedText& text, DataConfig& config) {
  if (config.tokenizer_path().empty()) {
    ASSIGN_OR_RETURN(const SentencePieceModel model, TrainSentencePieces(text, config.pieces()));
    config.set_resolved_tokenizer(model.SerializeAsString());
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(std::string bytes, ReadWholeFile(config.tokenizer_path(), kModelLimitBytes));
  const auto pieces = SentencePieces::Create(bytes);
  const absl::Status status = pieces.ok() ? pieces->CheckEncodesAsLibrary() : pieces.status();
  if (!status.ok()) {
    return absl::InvalidArgumentError(absl::StrCat("data.tokenizer_path ", config.tokenizer_path(),
                                                   " ", std::string(status.message())));
  }
  RETURN_IF_ERROR(CheckAddsNoTokens(config.tokenizer_path(), *pieces));
  config.set_resolved_tokenizer(std::move(bytes));
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Tokenizer>> MakeSentencePieceTokenizer(const DataConfig& config) {
  auto pieces = SentencePieces::Create(config.resolved_tokenizer());
  if (!pieces.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("data.resolved_tokenizer ", std::string(pieces.status().message())));
  }
  return std::make_unique<SentencePieceTokenizer>(*std::move(pieces));
}

}  // namespace tug
