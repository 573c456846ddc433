// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_LAUNCH_GPU_SHARE_H_
#define TUG_LAUNCH_GPU_SHARE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tug {

// A worker's share of its host's GPUs: its index among the host's workers.
struct GpuShare {
  uint32_t worker = 0;
  uint32_t workers = 1;  // more than `worker`
};

// Parses "1/4", and formats it; nothing if the text does not have that form.
std::optional<GpuShare> ParseGpuShare(const std::string& text);
std::string GpuShareText(const GpuShare& share);

// Share of `gpus`, the numbers of all GPUs of the host. With at least as many GPUs as workers:
// floor(GPUs / workers) consecutive ones; with fewer: one, which other workers use too. So no GPU
// is shared while another is unused. Empty without GPUs.
std::vector<int> GpusOfWorker(const std::vector<int>& gpus, const GpuShare& share);

}  // namespace tug

#endif  // TUG_LAUNCH_GPU_SHARE_H_
