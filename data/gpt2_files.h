#ifndef TUG_DATA_GPT2_FILES_H_
#define TUG_DATA_GPT2_FILES_H_

// Files of tokenizers of GPT-2's kind, in a folder as transformers saves it:
//   tokenizer.json                         all of it (huggingface/tokenizers); where there is none:
//   vocab.json, merges.txt                 an object from tokens to their numbers; after a line
//                                          "#version: ...", a pair of tokens a line, the first to
//                                          merge first (openai/gpt-2)
//   added_tokens.json                      an object from texts to numbers; may be missing
//   tokenizer_config.json, special_tokens_map.json
//                                          name special tokens and, in the first, the class that
//                                          reads the folder (tokenizer_class); may be missing
// A token is written with a printable character for each of its bytes (data/gpt2_bytes.h), an added
// token as it is. Thread-safe.

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
// Stands between documents; read as one token where the vocabulary has it.
inline constexpr std::string_view kGpt2EndOfText = "<|endoftext|>";

// Errors, one line with file and remedy: a file missing or not JSON; a number that is there twice
// or too large; a merge of or to something without a token; a special token without a number;
// anything of tokenizer.json and the settings that GPT-2's tokenizer does not have (another model,
// pattern or normalizer, tokens or spaces around a text, added tokens that take the spaces beside
// them); without tokenizer.json, a tokenizer_class other than GPT-2's, whose pattern is unknown
// here.
absl::StatusOr<BytePairTables> ReadGpt2Files(const std::string& folder);

// The files of `folder` that are read.
std::vector<std::string> Gpt2FilesIn(const std::string& folder);

// The contents of files again: equal in meaning to those read, not in spacing.
std::string Gpt2VocabJson(const BytePairTables& tables);
std::string Gpt2MergesText(const BytePairTables& tables);
std::string Gpt2AddedTokensJson(const BytePairTables& tables);
// tokenizer_config.json. `context`: the longest text that the model takes.
std::string Gpt2SettingsJson(const BytePairTables& tables, uint32_t context);

// The token of kGpt2EndOfText.
std::optional<int32_t> Gpt2EndOfTextToken(const BytePairTables& tables);

// The tables of a tokenizer whose tokens are the 256 bytes, token = byte.
BytePairTables ByteTables();

}  // namespace tug

#endif  // TUG_DATA_GPT2_FILES_H_
