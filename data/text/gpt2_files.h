// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_DATA_TEXT_GPT2_FILES_H_
#define TUG_DATA_TEXT_GPT2_FILES_H_

// Files of GPT-2-style tokenizers, in a folder as saved by transformers:
//   tokenizer.json                         complete (huggingface/tokenizers); without it:
//   vocab.json, merges.txt                 an object from tokens to their numbers; after a line
//                                          "#version: ...", one pair of tokens per line, in merge
//                                          order (openai/gpt-2)
//   added_tokens.json                      an object from texts to numbers; optional
//   tokenizer_config.json, special_tokens_map.json
//                                          name special tokens; the first also names the class that
//                                          reads the folder (tokenizer_class); optional
// A token is written with a printable character for each of its bytes (data/text/gpt2_bytes.h), an
// added token verbatim. Thread-safe.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/tokenizer_files.pb.h"

namespace tug {

inline constexpr char kGpt2VocabFile[] = "vocab.json";
inline constexpr char kGpt2MergesFile[] = "merges.txt";
inline constexpr char kTokenizerFile[] = "tokenizer.json";
inline constexpr char kGpt2AddedTokensFile[] = "added_tokens.json";
inline constexpr char kGpt2SettingsFile[] = "tokenizer_config.json";
// Separates documents; matched as one token if the vocabulary has it.
inline constexpr std::string_view kGpt2EndOfText = "<|endoftext|>";

// Errors, one line with file and remedy: a file that is missing or not JSON; a number that is too
// large or used twice; a merge of or to an unknown token; a special token without a number; any
// part of tokenizer.json or the settings that GPT-2's tokenizer does not have (another model,
// pattern or normalizer, tokens or spaces around a text, added tokens that absorb adjacent spaces);
// without tokenizer.json, a tokenizer_class other than GPT-2's, whose pattern is unknown here.
absl::StatusOr<BytePairTables> ReadGpt2Files(const std::string& folder);

// Paths of the files that ReadGpt2Files reads in `folder`.
std::vector<std::string> Gpt2FilesIn(const std::string& folder);

// Contents of the files: equivalent to those read, except for spacing.
std::string Gpt2VocabJson(const BytePairTables& tables);
std::string Gpt2MergesText(const BytePairTables& tables);
std::string Gpt2AddedTokensJson(const BytePairTables& tables);
// tokenizer_config.json. `context`: maximum text length of the model, in tokens.
std::string Gpt2SettingsJson(const BytePairTables& tables, uint32_t context);

// Token of kGpt2EndOfText; none if the vocabulary lacks it.
std::optional<int32_t> Gpt2EndOfTextToken(const BytePairTables& tables);

// Tables of a tokenizer whose tokens are the 256 bytes, token = byte.
BytePairTables ByteTables();

}  // namespace tug

#endif  // TUG_DATA_TEXT_GPT2_FILES_H_
