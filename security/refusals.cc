// SPDX-License-Identifier: Apache-2.0
#include "security/refusals.h"

#include "absl/strings/str_cat.h"

namespace tug {

void Refusals::Add(const std::string& address, const std::string& reason) {
  absl::MutexLock lock(&mutex_);
  ++count_;
  if (lines_ < kMaxLines) {
    std::set<std::string>& reasons = said_[address];  // a new address uses a line: said_ is bounded
    if (reasons.size() < kMaxLinesPerAddress && reasons.insert(reason).second) {
      ++lines_;
      const char* end = "";
      if (reasons.size() == kMaxLinesPerAddress)
        end = " (further refusals of this address are only counted)";
      if (lines_ == kMaxLines) end = " (all further refusals are only counted)";
      say_(absl::StrCat("refused ", address, ": ", reason, end));
    }
  }
  if (count_ < next_said_) return;
  say_(absl::StrCat("refused ", count_, " times so far"));
  next_said_ *= 10;
}

uint64_t Refusals::count() const {
  absl::MutexLock lock(&mutex_);
  return count_;
}

}  // namespace tug
