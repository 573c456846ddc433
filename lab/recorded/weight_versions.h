// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_LAB_RECORDED_WEIGHT_VERSIONS_H_
#define TUG_LAB_RECORDED_WEIGHT_VERSIONS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

namespace tug {

// A segment's changing weights, with the older versions that are still needed. Not thread-safe.
class WeightVersions {
 public:
  WeightVersions(uint64_t version, std::vector<float> weights)
      : version_(version), weights_(std::move(weights)) {}

  uint64_t version() const { return version_; }
  std::span<float> newest() { return weights_; }

  // Announces a later use of `version`, followed by one Release. REQUIRES: not older than the
  // newest.
  void Need(uint64_t version) { ++needed_[version]; }
  // REQUIRES: Need was called for it, and it has been made.
  std::span<const float> Of(uint64_t version) const {
    const auto kept = kept_.find(version);
    return kept == kept_.end() ? std::span<const float>(weights_) : kept->second;
  }
  void Release(uint64_t version) {
    const auto needed = needed_.find(version);
    if (--needed->second > 0) return;
    needed_.erase(needed);
    kept_.erase(version);
  }

  // Starts a new version: keeps a copy of the newest one if it is needed. The caller then changes
  // newest().
  void Advance() {
    if (needed_.contains(version_)) kept_[version_] = weights_;
    ++version_;
  }

  size_t kept() const { return kept_.size(); }

 private:
  uint64_t version_;
  std::vector<float> weights_;
  std::map<uint64_t, uint64_t> needed_;  // number of uses, by version
  std::map<uint64_t, std::vector<float>> kept_;
};

}  // namespace tug

#endif  // TUG_LAB_RECORDED_WEIGHT_VERSIONS_H_
