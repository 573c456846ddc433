#ifndef TUG_DATA_GPT2_FILES_H_
#define TUG_DATA_GPT2_FILES_H_

// GPT-2's tokenizer files. vocab.json: an object from token to its number, 0, 1, ... without gaps;
// merges.txt: a line "#version: ...", then a pair of tokens a line, the first to merge first. A
// token is written with a printable character for each of its bytes (openai/gpt-2,
// src/encoder.py: bytes_to_unicode). Thread-safe.

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/tokenizer_files.pb.h"

namespace tug {

inline constexpr char kGpt2VocabFile[] = "vocab.json";
inline constexpr char kGpt2MergesFile[] = "merges.txt";
// Stands between documents; read as one token where the vocabulary has it.
inline constexpr std::string_view kGpt2EndOfText = "<|endoftext|>";

// Reads both. Errors, one line with file and remedy: missing, not JSON, numbers with gaps, a byte
// without a token, a merge of or to something without a token or that is there twice.
absl::StatusOr<BytePairTables> ReadGpt2Files(const std::string& folder);

// Their contents again: equal in meaning to those read, not in spacing.
std::string Gpt2VocabJson(const BytePairTables& tables);
std::string Gpt2MergesText(const BytePairTables& tables);

// The tables of a tokenizer whose tokens are the 256 bytes, token = byte.
BytePairTables ByteTables();

}  // namespace tug

#endif  // TUG_DATA_GPT2_FILES_H_
