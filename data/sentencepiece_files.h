#ifndef TUG_DATA_SENTENCEPIECE_FILES_H_
#define TUG_DATA_SENTENCEPIECE_FILES_H_

// Files that transformers saves in one folder with a SentencePiece model. They may add tokens to
// its pieces, which are then found in text before it is divided into pieces:
//   added_tokens.json        an object from texts to numbers
//   tokenizer_config.json    objects with texts, by number (added_tokens_decoder)
//   tokenizer.json           objects with texts and numbers (added_tokens)
// Each may be missing. Thread-safe.

#include <string>
#include <vector>

#include "absl/status/status.h"

namespace tug {

class SentencePieces;

// The model's file, and those of the files above that lie beside it.
std::vector<std::string> SentencePieceFilesOf(const std::string& model_path);

// Refuses a model whose pieces are not all the tokens that text is divided into. A listed token
// that is a piece, by text and number, adds nothing. Errors, one line with file and remedy:
// INVALID_ARGUMENT for a token that is no such piece and for a file that is not JSON; those of
// ReadTextFile.
absl::Status CheckAddsNoTokens(const std::string& model_path, const SentencePieces& pieces);

}  // namespace tug

#endif  // TUG_DATA_SENTENCEPIECE_FILES_H_
