#ifndef TUG_CLI_JOB_MEMORY_H_
#define TUG_CLI_JOB_MEMORY_H_

#include <cstdint>
#include <optional>

#include "exchange/segment_table.h"
#include "proto/job.pb.h"

namespace tug {

// What processes of a job hold at most, bytes, by model/memory.h and server/memory.h, without
// residuals of error feedback. Of several workers or servers: the one that holds most.
struct JobMemory {
  uint32_t carried = 0;  // virtual workers of that worker
  uint64_t worker_bytes = 0;
  uint64_t activation_bytes = 0;  // of it
  uint64_t server_bytes = 0;
  uint64_t checkpoint_bytes = 0;  // more, of a server, while it takes one
  uint64_t weight_bytes = 0;      // of all the model, FP32
};

// Enough for a coordinator: it reads the text piece by piece.
inline constexpr uint64_t kCoordinatorBytes = uint64_t{256} << 20;

// `job`: all fields filled, data.resolved_symbols too; `table`: of its model. Servers keep weights
// as if each had a host to itself. `on_gpu`: what is on the worker's GPU is left out. Pure.
JobMemory PredictJobMemory(const JobConfig& job, const SegmentTable& table, bool on_gpu = false);

// Symbols that the job's tokenizer has whatever the text; 0: only the text knows. Pure.
uint32_t SymbolsWithoutText(const JobConfig& job);

// The same as PredictJobMemory without the text: where only that knows how many symbols or classes
// there are, guesses count (65,536 symbols: more than GPT-2's). With `device: CUDA` what is on the
// GPU is left out. None of a job without a model of ours (compute: REPLAY, model.external). `job`:
// all fields filled. Pure.
std::optional<JobMemory> GuessJobMemory(JobConfig job);

}  // namespace tug

#endif  // TUG_CLI_JOB_MEMORY_H_
