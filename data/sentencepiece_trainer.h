#ifndef TUG_DATA_SENTENCEPIECE_TRAINER_H_
#define TUG_DATA_SENTENCEPIECE_TRAINER_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "data/tokenizer.h"
#include "proto/tokenizer_files.pb.h"

namespace tug {

// Unknown, beginning and end of sentence, and the 256 bytes: what every trained model begins with.
inline constexpr uint32_t kSentencePieceFixed = 3 + 256;

// A SentencePiece model of type BPE with at most `pieces` pieces, fewer if the text has no more
// pairs that come again: the fixed ones, then pairs in the order they merged, then characters.
// Other programs read it as a .model file. Text keeps every byte: no normalisation, bytes for
// characters that are rarer than 1 in 2,000 or for which there is no room.
//
// Sennrich et al. 2016, algorithm 1, over counted words: a word is a space and what follows up to
// the next one; the spaces before that one and line ends are words of their own. At most 32 MiB of
// text are read, pieces spread over all of it; memory is a small multiple of that. One thread; the
// same model for the same text. Errors: INVALID_ARGUMENT for fewer than kSentencePieceFixed + 1
// pieces; as TextSource::ForEachPiece.
absl::StatusOr<SentencePieceModel> TrainSentencePieces(const EncodedText& text, uint32_t pieces);

}  // namespace tug

#endif  // TUG_DATA_SENTENCEPIECE_TRAINER_H_
