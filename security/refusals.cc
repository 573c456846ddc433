#include "security/refusals.h"

#include "absl/strings/str_cat.h"

namespace tug {

void Refusals::Add(const std::string& address, const std::string& reason) {
  absl::MutexLock lock(&mutex_);
  ++count_;
  if (said_.size() < kMostSaid && said_.emplace(address, reason).second) {
    say_(absl::StrCat("refused ", address, ": ", reason,
                      said_.size() < kMostSaid ? "" : " (all further ones are only counted)"));
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
