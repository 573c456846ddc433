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

// Who was turned away, for people: each address and reason is said once, and then counted; the
// count is said at 10, 100, 1000, ... However many come, memory and lines stay bounded; one address
// has few of them, so that it cannot use up those of the others.
// Thread-safe.
class Refusals {
 public:
  // `say` gets whole lines, without their end, one at a time.
  explicit Refusals(std::function<void(const std::string&)> say) : say_(std::move(say)) {}

  // `address`: without the port, which is another one each time.
  void Add(const std::string& address, const std::string& reason);
  uint64_t count() const;

 private:
  static constexpr size_t kMostSaid = 100;
  static constexpr size_t kMostSaidOfOne = 8;  // address

  const std::function<void(const std::string&)> say_;
  mutable absl::Mutex mutex_;
  uint64_t count_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t next_said_ ABSL_GUARDED_BY(mutex_) = 10;
  size_t lines_ ABSL_GUARDED_BY(mutex_) = 0;                                   // of all addresses
  std::map<std::string, std::set<std::string>> said_ ABSL_GUARDED_BY(mutex_);  // reasons
};

}  // namespace tug

#endif  // TUG_SECURITY_REFUSALS_H_
