// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_DATA_TEXT_SENTENCEPIECE_FILES_H_
#define TUG_DATA_TEXT_SENTENCEPIECE_FILES_H_

// Files that transformers saves next to a SentencePiece model. They may add tokens to its pieces,
// which are matched before text is divided into pieces:
//   added_tokens.json        an object from texts to numbers
//   tokenizer_config.json    objects with texts, by number (added_tokens_decoder)
//   tokenizer.json           objects with texts and numbers (added_tokens)
// All are optional. Thread-safe.

#include <string>
#include <vector>

#include "absl/status/status.h"

namespace tug {

class SentencePieces;

// Paths of the model and of the files above that exist next to it.
std::vector<std::string> SentencePieceFilesOf(const std::string& model_path);

// Refuses a model with tokens other than its pieces. A listed token that equals a piece, by text
// and number, is allowed. Errors, one line with file and remedy: INVALID_ARGUMENT for a token that
// is no such piece and for a file that is not JSON; those of ReadTextFile.
absl::Status CheckAddsNoTokens(const std::string& model_path, const SentencePieces& pieces);

}  // namespace tug

#endif  // TUG_DATA_TEXT_SENTENCEPIECE_FILES_H_
