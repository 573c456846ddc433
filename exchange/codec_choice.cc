#include "exchange/codec_choice.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "compression/codecs.h"

namespace tug {
namespace {

// Goes back to the last * only: what an earlier one has taken never needs to be more.
bool Matches(absl::string_view pattern, absl::string_view name) {
  size_t p = 0, n = 0;
  size_t star = absl::string_view::npos;  // the last one
  size_t after_star = 0;                  // where in the name the pattern goes on after it
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

}  // namespace

bool MatchesNames(const std::string& patterns, const std::string& name) {
  for (const absl::string_view pattern : absl::StrSplit(patterns, ',')) {
    if (Matches(absl::StripAsciiWhitespace(pattern), name)) return true;
  }
  return false;
}

CodecChoice::CodecChoice(const PushCodecConfig& config, std::span<const std::string> block_names)
    : codec_(MakeCodec(config)),
      id_(codec_ == nullptr ? 0 : static_cast<uint8_t>(config.codec_case())),
      error_feedback_(config.error_feedback()),
      warmup_steps_(config.warmup_steps()),
      min_elements_(config.min_elements()),
      vectors_(config.vectors()) {
  if (codec_ == nullptr) return;
  for (const std::string& name : block_names) {
    chosen_.push_back(MatchesNames(config.blocks(), name));
  }
}

const SegmentCodec* CodecChoice::AfterWarmup(const Segment& segment) const {
  if (codec_ == nullptr || segment.elements() < min_elements_) return nullptr;
  return (segment.weight_decay || vectors_) && chosen_.at(segment.block) ? codec_.get() : nullptr;
}

bool CodecChoice::Encodes(const SegmentTable& table, uint32_t block) const {
  for (uint32_t index = 0; index < table.segments_in_block(block); ++index) {
    if (AfterWarmup(table.segment(table.id(block, index))) != nullptr) return true;
  }
  return false;
}

}  // namespace tug
