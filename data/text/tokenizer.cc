// SPDX-License-Identifier: Apache-2.0
#include "data/text/tokenizer.h"

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace tug {
namespace {

constexpr TokenizerKind kTokenizers[] = {
    // kind, resolve, make
    {DataConfig::BYTE, nullptr, MakeByteTokenizer},
    {DataConfig::CHARACTER, ResolveCharacters, MakeCharacterTokenizer},
    {DataConfig::SENTENCEPIECE, ResolveSentencePiece, MakeSentencePieceTokenizer},
    {DataConfig::GPT2_BPE, ResolveGpt2Bpe, MakeGpt2BpeTokenizer},
};

}  // namespace

absl::StatusOr<std::vector<int32_t>> Tokenizer::Encode(std::string_view text) const {
  std::vector<int32_t> tokens;
  RETURN_IF_ERROR(Encode(text, 0, tokens));
  return tokens;
}

std::span<const TokenizerKind> Tokenizers() { return kTokenizers; }

absl::StatusOr<const TokenizerKind*> FindTokenizerKind(DataConfig::Tokenizer kind) {
  for (const TokenizerKind& row : kTokenizers) {
    if (row.kind == kind) return &row;
  }
  return absl::InvalidArgumentError(absl::StrCat("data.tokenizer = ", static_cast<int>(kind),
                                                 " has no tokenizer in this build; choose BYTE"));
}

absl::StatusOr<std::unique_ptr<Tokenizer>> MakeTokenizer(const DataConfig& config) {
  ASSIGN_OR_RETURN(const TokenizerKind* row, FindTokenizerKind(config.tokenizer()));
  return row->make(config);
}

}  // namespace tug
