#ifndef TUG_CLI_GPU_SHARE_H_
#define TUG_CLI_GPU_SHARE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tug {

// Which one of so many workers of a host it is, that share the host's GPUs.
struct GpuShare {
  uint32_t worker = 0;
  uint32_t workers = 1;  // more than `worker`
};

// "1/4", and back; none: it is not of that form.
std::optional<GpuShare> ParseGpuShare(const std::string& text);
std::string GpuShareText(const GpuShare& share);

// Its part of `gpus`, the numbers of all that the host has: with as many as there are workers or
// more, floor(GPUs / workers) that follow each other; with fewer, one, which others have too. So
// none is shared while another has no worker. None of none.
std::vector<int> GpusOfWorker(const std::vector<int>& gpus, const GpuShare& share);

}  // namespace tug

#endif  // TUG_CLI_GPU_SHARE_H_
