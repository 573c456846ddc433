// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_SECURITY_REFUSALS_H_
#define TUG_SECURITY_REFUSALS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace tug {

// Reports refused connections to the user: each address and reason once, later ones are only
// counted; the total at 10, 100, 1000, ... Memory and lines are bounded however many connections
// come, and one address gets only a few lines, so that it cannot use up those of others.
// Thread-safe.
class Refusals {
 public:
  // `say` receives complete lines, without newline, one call at a time.
  explicit Refusals(std::function<void(const std::string&)> say) : say_(std::move(say)) {}

  // `address`: without the port, which differs per connection.
  void Add(const std::string& address, const std::string& reason);
  uint64_t count() const;

 private:
  static constexpr size_t kMaxLines = 100;
  static constexpr size_t kMaxLinesPerAddress = 8;  // per address

  const std::function<void(const std::string&)> say_;
  mutable absl::Mutex mutex_;
  uint64_t count_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t next_said_ ABSL_GUARDED_BY(mutex_) = 10;
  size_t lines_ ABSL_GUARDED_BY(mutex_) = 0;  // printed for all addresses
  // Reasons printed, by address.
  std::map<std::string, std::set<std::string>> said_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tug

#endif  // TUG_SECURITY_REFUSALS_H_
