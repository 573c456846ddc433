// SPDX-License-Identifier: Apache-2.0
#include "collective/early_messages.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "collective/collective_header.h"

namespace tug {
namespace {

constexpr uint64_t kMaxMessages = 1 << 20;
constexpr uint64_t kMaxCollectives = 1 << 16;  // ahead of this rank

}  // namespace

std::string EarlyMessages::Keep(uint32_t rank, uint64_t next, Message message) {
  const uint64_t number = CollectiveOf(message.header);
  const uint64_t bytes = message.payload.size_bytes();
  if (bytes_ + bytes > max_size_bytes_)
    return absl::StrCat("more than ", max_size_bytes_, " bytes");
  if (messages_ >= kMaxMessages) return absl::StrCat("more than ", kMaxMessages, " messages");
  if (number - next >= kMaxCollectives) {
    return absl::StrCat("more than ", kMaxCollectives, " collectives");
  }
  std::vector<Early>& early = kept_[number];
  if (message.header.kind == MessageKind::kInCollective &&
      std::any_of(early.begin(), early.end(), [&](const Early& e) {
        return e.rank == rank && e.message.header.kind == MessageKind::kInCollective;
      })) {
    return "";  // a repeat adds nothing
  }
  bytes_ += bytes;
  ++messages_;
  early.push_back({rank, std::move(message)});
  return "";
}

std::vector<EarlyMessages::Early> EarlyMessages::Take(uint64_t number) {
  const auto found = kept_.find(number);
  if (found == kept_.end()) return {};
  std::vector<Early> early = std::move(found->second);
  kept_.erase(found);
  messages_ -= early.size();
  for (const Early& e : early) bytes_ -= e.message.payload.size_bytes();
  return early;
}

void EarlyMessages::Clear() {
  kept_.clear();
  bytes_ = messages_ = 0;
}

}  // namespace tug
