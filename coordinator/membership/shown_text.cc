// SPDX-License-Identifier: Apache-2.0
#include "coordinator/membership/shown_text.h"

#include <algorithm>
#include <string_view>

#include "absl/strings/ascii.h"
#include "control/control_client.h"
#include "proto/control.pb.h"

namespace tug {
namespace {

bool IsHostCharacter(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
         std::string_view(".-_:[]%").find(c) != std::string_view::npos;
}

// Whether a C1 control character starts here. In UTF-8, U+0080 to U+009F are C2 80 to C2 9F.
bool IsC1(const std::string& text, size_t at) {
  return text[at] == '\xC2' && at + 1 < text.size() &&
         static_cast<unsigned char>(text[at + 1]) < 0xA0;
}

bool IsContinuation(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

}  // namespace

std::string Shown(const std::string& text, size_t most) {
  size_t end = std::min(text.size(), most);
  while (end > 0 && end < text.size() && IsContinuation(text[end]))
    --end;  // do not split a character
  std::string shown = text.substr(0, end);
  for (size_t i = 0; i < shown.size(); ++i) {
    if (absl::ascii_iscntrl(static_cast<unsigned char>(shown[i]))) shown[i] = ' ';
    if (IsC1(shown, i)) shown.replace(i, 2, "  ");
  }
  return shown;
}

bool IsEndpoint(const std::string& text) {
  constexpr size_t kByteLimit = 256;
  return text.size() <= kByteLimit && std::ranges::all_of(text, IsHostCharacter) &&
         ParseHostPort(text).ok();
}

void ShowTexts(HeartbeatRequest& beat) {
  beat.set_failure(Shown(beat.failure()));
  for (Notice& notice : *beat.mutable_notices()) notice.set_text(Shown(notice.text()));
  for (CheckpointPart& part : *beat.mutable_parts()) part.set_error(Shown(part.error()));
  if (!beat.has_activity()) return;
  auto& algorithms = *beat.mutable_activity()->mutable_algorithms();
  constexpr int kMaxAlgorithms = 8;
  if (algorithms.size() > kMaxAlgorithms) {
    algorithms.DeleteSubrange(kMaxAlgorithms, algorithms.size() - kMaxAlgorithms);
  }
  constexpr size_t kMaxNameBytes = 40;
  for (std::string& name : algorithms) name = Shown(name, kMaxNameBytes);
}

}  // namespace tug
