// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_DATA_TEXT_SENTENCEPIECE_TRAINER_H_
#define TUG_DATA_TEXT_SENTENCEPIECE_TRAINER_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "data/text/tokenizer.h"
#include "proto/tokenizer_files.pb.h"

namespace tug {

// Pieces with which every trained model begins: unknown, begin and end of sentence, and the 256
// bytes.
inline constexpr uint32_t kSentencePieceFixed = 3 + 256;

// Trains a SentencePiece model of type BPE with at most `pieces` pieces, fewer if the text has no
// more repeated pairs: the fixed pieces, then pairs in merge order, then characters. Other programs
// can read it as a .model file. Encoding is lossless: no normalisation; characters rarer than 1 in
// 2,000, or beyond the available pieces, are encoded as bytes.
//
// Algorithm: Sennrich et al. 2016, algorithm 1, over counted words. A word is a space and the text
// up to the next one; any preceding spaces, and newlines, are separate words. At most 32 MiB of the
// text are read, in pieces spread evenly; memory is a small multiple of that. Single-threaded and
// deterministic. Errors: INVALID_ARGUMENT for fewer than kSentencePieceFixed + 1 pieces; those of
// TextSource::ForEachPiece.
absl::StatusOr<SentencePieceModel> TrainSentencePieces(const EncodedText& text, uint32_t pieces);

}  // namespace tug

#endif  // TUG_DATA_TEXT_SENTENCEPIECE_TRAINER_H_
