// SPDX-License-Identifier: Apache-2.0
#include "blocks/codec_choice.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "base/check.h"
#include "compression/codecs/codecs.h"
#include "config/field_path.h"
#include "config/job_config.h"

namespace tug {
namespace {

// Backtracks to the last * only: an earlier one never needs to match more.
bool Matches(absl::string_view pattern, absl::string_view name) {
  size_t p = 0, n = 0;
  size_t star = absl::string_view::npos;  // the last one
  size_t after_star = 0;                  // where to match the rest of the pattern in `name`
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      after_star = n;
    } else if (p < pattern.size() && pattern[p] == name[n]) {
      ++p;
      ++n;
    } else if (star != absl::string_view::npos) {
      p = star + 1;
      n = ++after_star;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

// Candidate of `auto`, with its default settings.
CodecChoice::Candidate MakeCandidate(const std::string& name) {
  JobConfig job;
  TUG_CHECK_OK(SetFieldFromText(job, absl::StrCat("comm.push_codec.", name), "{}"));
  FillDefaults(job, /*cores=*/1);
  const PushCodecConfig& config = job.comm().push_codec();
  return {name, static_cast<uint8_t>(config.codec_case()), MakeCodec(config)};
}

std::vector<CodecChoice::Candidate> MakeCandidates(const PushCodecConfig& config) {
  std::vector<CodecChoice::Candidate> candidates;
  if (config.has_auto_()) {
    for (const std::string& name : CandidateNames(config.auto_())) {
      candidates.push_back(MakeCandidate(name));
    }
  } else if (const CodecRow* const row = FindCodec(config.codec_case()); row != nullptr) {
    candidates.push_back({row->name, static_cast<uint8_t>(row->id), row->make(config)});
  }
  return candidates;
}

}  // namespace

bool MatchesNames(const std::string& patterns, const std::string& name) {
  for (const absl::string_view pattern : absl::StrSplit(patterns, ',')) {
    if (Matches(absl::StripAsciiWhitespace(pattern), name)) return true;
  }
  return false;
}

CodecChoice::CodecChoice(const PushCodecConfig& config, std::span<const std::string> block_names)
    : codecs_(MakeCandidates(config)),
      is_auto_(config.has_auto_()),
      error_feedback_(config.error_feedback()),
      warmup_steps_(config.warmup_steps()),
      min_elements_(config.min_elements()),
      vectors_(config.vectors()) {
  if (codecs_.empty()) return;
  for (const std::string& name : block_names) {
    chosen_.push_back(MatchesNames(config.blocks(), name));
  }
}

const SegmentCodec* CodecChoice::AfterWarmup(const Segment& segment) const {
  if (codecs_.empty() || segment.elements() < min_elements_) return nullptr;
  if (!segment.weight_decay && !vectors_) return nullptr;
  return chosen_.at(segment.block) ? codecs_.front().codec.get() : nullptr;
}

bool CodecChoice::Encodes(const SegmentTable& table, uint32_t block) const {
  for (uint32_t index = 0; index < table.segments_in_block(block); ++index) {
    if (AfterWarmup(table.segment(table.id(block, index))) != nullptr) return true;
  }
  return false;
}

}  // namespace tug
