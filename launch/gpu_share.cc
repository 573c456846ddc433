// SPDX-License-Identifier: Apache-2.0
#include "launch/gpu_share.h"

#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace tug {

std::optional<GpuShare> ParseGpuShare(const std::string& text) {
  const std::pair<std::string, std::string> parts = absl::StrSplit(text, absl::MaxSplits('/', 1));
  GpuShare share;
  if (!absl::SimpleAtoi(parts.first, &share.worker) ||
      !absl::SimpleAtoi(parts.second, &share.workers) || share.worker >= share.workers) {
    return std::nullopt;
  }
  return share;
}

std::string GpuShareText(const GpuShare& share) {
  return absl::StrCat(share.worker, "/", share.workers);
}

std::vector<int> GpusOfWorker(const std::vector<int>& gpus, const GpuShare& share) {
  if (gpus.empty()) return {};
  const size_t count = gpus.size() / share.workers;
  if (count == 0) return {gpus[share.worker % gpus.size()]};
  const auto first = gpus.begin() + static_cast<std::ptrdiff_t>(share.worker * count);
  return {first, first + static_cast<std::ptrdiff_t>(count)};
}

}  // namespace tug
