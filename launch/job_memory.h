// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_LAUNCH_JOB_MEMORY_H_
#define TUG_LAUNCH_JOB_MEMORY_H_

#include <cstdint>
#include <optional>

#include "blocks/segment_table.h"
#include "proto/job.pb.h"

namespace tug {

// Predicted peak memory of a job's processes in bytes, from model/transformer/memory.h and
// server/segments/memory.h, without residuals of error feedback. The maximum over its workers and
// servers.
struct JobMemory {
  uint32_t carried = 0;  // virtual workers of the worker with most
  uint64_t worker_bytes = 0;
  uint64_t activation_bytes = 0;  // activations, included in worker_bytes
  uint64_t server_bytes = 0;
  uint64_t checkpoint_bytes = 0;  // additional, on that server, during a checkpoint
  uint64_t weight_bytes = 0;      // whole model, FP32
};

// Sufficient for a coordinator: it reads the text in pieces.
inline constexpr uint64_t kCoordinatorBytes = uint64_t{256} << 20;

// `job`: all fields filled, including data.resolved_symbols; `table`: its model's. Assumes one
// server per host. `on_gpu`: excludes the worker's GPU memory. Pure.
JobMemory PredictJobMemory(const JobConfig& job, const SegmentTable& table, bool on_gpu = false);

// Number of symbols of the job's tokenizer if it is independent of the text; 0: it depends on the
// text. Pure.
uint32_t SymbolsWithoutText(const JobConfig& job);

// PredictJobMemory without the text: guesses numbers of symbols or classes that only the text
// determines (65,536 symbols: more than GPT-2's). With `device: CUDA` excludes GPU memory. Nothing
// for a job that does not train tug's model (compute: REPLAY, model.external). `job`: all fields
// filled. Pure.
std::optional<JobMemory> GuessJobMemory(JobConfig job);

}  // namespace tug

#endif  // TUG_LAUNCH_JOB_MEMORY_H_
