// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_COORDINATOR_CHECKPOINTS_FAILED_CHECKPOINTS_H_
#define TUG_COORDINATOR_CHECKPOINTS_FAILED_CHECKPOINTS_H_

#include <cstdint>
#include <map>
#include <string>

namespace tug {

// Checkpoints since the last commit that could not be written or committed. A full disk or a lack
// of file descriptors is often temporary, so a job continues without one; several in a row fail it.
// Pure. Not thread-safe.
class FailedCheckpoints {
 public:
  static constexpr size_t kMaxConsecutive = 3;

  // False: this version has already failed; it counts once.
  bool Add(uint64_t version, const std::string& why) {
    return failed_.emplace(version, why).second;
  }
  // A checkpoint of this version is committed: forgets failures up to it.
  void OnCommitted(uint64_t version) {
    failed_.erase(failed_.begin(), failed_.upper_bound(version));
  }
  bool too_many() const { return failed_.size() >= kMaxConsecutive; }
  // Reason the version failed; null: it has not.
  const std::string* Find(uint64_t version) const {
    const auto found = failed_.find(version);
    return found == failed_.end() ? nullptr : &found->second;
  }

 private:
  std::map<uint64_t, std::string> failed_;  // at most kMaxConsecutive, when the job fails
};

}  // namespace tug

#endif  // TUG_COORDINATOR_CHECKPOINTS_FAILED_CHECKPOINTS_H_
