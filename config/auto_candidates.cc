// SPDX-License-Identifier: Apache-2.0
// Codecs that comm.push_codec.auto may choose from.
#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"
#include "config/job_rules.h"

namespace tug {
namespace {

// Codecs with error feedback and no other state, so that a segment may be encoded with a different
// one each time. Those with more bytes first.
constexpr const char* kCandidates[] = {"bf16",    "fp16",  "int8",     "int4",
                                       "one_bit", "top_k", "random_k", "top_k_int8"};

}  // namespace

std::vector<std::string> CandidateNames(const AutoCodec& config) {
  std::vector<std::string> names = absl::StrSplit(config.candidates(), ',', absl::SkipEmpty());
  for (std::string& name : names) absl::StripAsciiWhitespace(&name);
  return names;
}

bool AreCandidates(const std::vector<std::string>& names) {
  auto next = std::begin(kCandidates);
  for (const std::string& name : names) {
    next = std::find(next, std::end(kCandidates), name);
    if (next == std::end(kCandidates)) return false;
    ++next;
  }
  return !names.empty();
}

}  // namespace tug
