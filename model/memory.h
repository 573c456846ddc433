#ifndef TUG_MODEL_MEMORY_H_
#define TUG_MODEL_MEMORY_H_

#include <cstdint>

#include "proto/job.pb.h"

namespace tug {

// Memory of a worker process, to choose `micro_batch` by and to compare its peak with.
// P = parameters (ElementCount of GptLayout), N = micro_batch x context, S = virtual workers
// carried, the other letters as in model/layout.h:
//   weights       4 P             FP32, pulled in place; 0 of what is read where the lanes have it
//   gradients     4 P S           one per virtual worker: it stays until its push is committed
//   activations   4 N (L (16 C + H T + 4) + 9 C + V + 3), see Activations::SizeBytes
//   process       kProcessBytes   program, libraries, buffers of oneDNN and ZeroMQ, messages
inline constexpr uint64_t kProcessBytes = uint64_t{64} << 20;

// `config` has all fields filled. Pure, thread-safe.
uint64_t PredictWorkerBytes(const ModelConfig& config, uint32_t symbols, uint32_t micro_batch,
                            uint32_t virtual_workers);

// Bytes of the activations alone: what Gpt::Create allocates.
uint64_t PredictActivationBytes(const ModelConfig& config, uint32_t symbols, uint32_t micro_batch);

}  // namespace tug

#endif  // TUG_MODEL_MEMORY_H_
