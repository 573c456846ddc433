// SPDX-License-Identifier: Apache-2.0
#include "worker/gradients/encoded_gradients.h"

#include <algorithm>
#include <utility>

namespace tug {

void EncodedGradients::Bind(uint32_t virtual_worker, uint32_t block) {
  const size_t bytes = encoder_.FramesBytes(block);
  if (bytes == 0) return;
  std::shared_ptr<AlignedBuffer>& frames = frames_[virtual_worker][block];
  if (frames == nullptr || !IsOnlyOwner(frames)) frames = new_buffer_(bytes);
  encoder_.Bind(block, {frames->data(), bytes});
}

PushFrames EncodedGradients::Take(uint32_t virtual_worker, uint32_t block) {
  PushFrames frames{.begins = encoder_.Take(block)};
  if (frames.empty()) return frames;
  const std::shared_ptr<AlignedBuffer>& bytes = frames_[virtual_worker][block];
  frames.bytes = Lease(bytes, std::span<const std::byte>(bytes->data(), frames.begins.back()));
  return frames;
}

void EncodedGradients::GiveUpAllBut(std::span<const uint32_t> virtual_workers) {
  std::erase_if(frames_, [&](const auto& of) {
    return std::find(virtual_workers.begin(), virtual_workers.end(), of.first) ==
           virtual_workers.end();
  });
  encoder_.GiveUpAllBut(virtual_workers);
}

}  // namespace tug
