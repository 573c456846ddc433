// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_WORKER_GRADIENTS_ENCODED_GRADIENTS_H_
#define TUG_WORKER_GRADIENTS_ENCODED_GRADIENTS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <utility>

#include "base/memory/lease.h"
#include "blocks/requests.h"
#include "exchange/encode/device_encoder.h"

namespace tug {

// Host memory for frames that a GPU encodes, per virtual worker and block like gradients. Not
// thread-safe: owned by the compute thread.
class EncodedGradients {
 public:
  using NewBuffer = std::function<std::shared_ptr<AlignedBuffer>(size_t)>;

  // REQUIRES: `encoder` outlives this.
  EncodedGradients(DeviceEncoder& encoder, NewBuffer new_buffer)
      : encoder_(encoder), new_buffer_(std::move(new_buffer)) {}

  // Binds memory for the frames of the block's next gradient. Earlier frames that are still read
  // keep their memory.
  void Bind(uint32_t virtual_worker, uint32_t block);
  // Frames of the gradient that was awaited last; empty: it is not encoded.
  PushFrames Take(uint32_t virtual_worker, uint32_t block);
  // Releases the memory, and the GPU's state, of all other virtual workers.
  void GiveUpAllBut(std::span<const uint32_t> virtual_workers);

  DeviceEncoder& encoder() const { return encoder_; }

 private:
  using Buffers = std::map<uint32_t, std::shared_ptr<AlignedBuffer>>;  // by block

  DeviceEncoder& encoder_;
  const NewBuffer new_buffer_;
  std::map<uint32_t, Buffers> frames_;  // by virtual worker
};

}  // namespace tug

#endif  // TUG_WORKER_GRADIENTS_ENCODED_GRADIENTS_H_
