#ifndef TUG_WORKER_ENCODED_GRADIENTS_H_
#define TUG_WORKER_ENCODED_GRADIENTS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <utility>

#include "base/lease.h"
#include "exchange/device_encoder.h"
#include "exchange/requests.h"

namespace tug {

// The host's memory for frames that a GPU makes: for each virtual worker and block, as gradients.
// Not thread-safe: owned by the compute thread.
class EncodedGradients {
 public:
  using NewBuffer = std::function<std::shared_ptr<AlignedBuffer>(size_t)>;

  // `encoder` outlives this.
  EncodedGradients(DeviceEncoder& encoder, NewBuffer new_buffer)
      : encoder_(encoder), new_buffer_(std::move(new_buffer)) {}

  // Where the frames of the block's next gradient go. What of the one before is still read keeps
  // its memory.
  void Bind(uint32_t virtual_worker, uint32_t block);
  // The frames of the gradient that was awaited last; empty: it is not encoded.
  PushFrames Take(uint32_t virtual_worker, uint32_t block);
  // Memory of virtual workers that are not among these is let go of, and what the GPU keeps of
  // them.
  void GiveUpAllBut(std::span<const uint32_t> virtual_workers);

  DeviceEncoder& encoder() const { return encoder_; }

 private:
  using Buffers = std::map<uint32_t, std::shared_ptr<AlignedBuffer>>;  // by block

  DeviceEncoder& encoder_;
  const NewBuffer new_buffer_;
  std::map<uint32_t, Buffers> frames_;  // by virtual worker
};

}  // namespace tug

#endif  // TUG_WORKER_ENCODED_GRADIENTS_H_
