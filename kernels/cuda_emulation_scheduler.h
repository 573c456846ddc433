#ifndef TUG_KERNELS_CUDA_EMULATION_SCHEDULER_H_
#define TUG_KERNELS_CUDA_EMULATION_SCHEDULER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <source_location>
#include <string>

#include "absl/status/status.h"

// Runs the threads of a CUDA grid on the CPU, for tests: what is below the words of
// kernels/cuda_emulation.h.
//   - Blocks run one after another on the calling OS thread, in an order shuffled by the seed.
//   - A CUDA thread is a fiber with a stack of 64 KiB. It runs until it waits (barrier, warp
//     operation) or returns; which of those that can run goes on is drawn from the seed. So what
//     reads shared memory before a barrier made it safe reads something else, for most seeds.
//   - Shared memory is all ones (NaN as a float, -1 as an int) when a block begins.
// What a GPU answers with a hang or with garbage is an error here: a barrier or a warp operation
// that not all its threads reach, or that they reach in different places; a write behind the end
// of shared memory. Races on device memory and between blocks are not looked for.
// OS threads may run grids at the same time.
namespace tug::kernels::emulation {

struct Index3 {
  uint32_t x, y, z;
};

struct GridShape {
  Index3 grid;
  Index3 block;
  size_t shared_bytes;
};

// Of the grids that this OS thread runs from here on. 1 at first.
void SetSeed(uint64_t seed);

// INVALID_ARGUMENT for a shape that no GPU takes.
absl::Status CheckGrid(const GridShape& shape);

// Calls `thread` once for every thread of the grid. `begin_thread`(thread, block) says which one
// goes on. Errors: INTERNAL with what the kernel did wrong, and where; those of CheckGrid.
absl::Status RunGrid(const GridShape& shape, const std::function<void()>& thread,
                     void (*begin_thread)(const Index3& thread, const Index3& block));

// The rest is called by CUDA threads.

// Waits for all threads of the block to come to the same place.
void SyncThreads(const std::source_location& where);

// What the lanes of a warp do together: `combine` gets what each lane of the mask brought (null for
// the others), and writes each lane's result there.
struct WarpOperation {
  const char* name;
  void (*combine)(void* const lanes[32], uint32_t mask);
};

// Waits for all lanes of the mask to come with the same operation and mask; then all go on with
// their results in `mine`. `operation` has static storage.
void RunWarpOperation(uint32_t mask, const WarpOperation& operation, void* mine,
                      const std::source_location& where);

// This thread's number in its warp.
uint32_t Lane();

// The block's shared memory, of which at least `bytes` were asked for at the launch.
void* SharedBytes(size_t bytes);

bool IsShared(const void* p, size_t bytes);

// cp.async of 16 bytes, of which `bytes` are read: done no earlier than the thread waits for its
// group, so that who does not wait reads what was there before.
void BeginCopy(void* shared, const void* device, int bytes);
void CommitCopies();
void WaitForCopies(size_t still_going);

// Ends the grid with this error.
[[noreturn]] void Fail(const std::string& message);

}  // namespace tug::kernels::emulation

#endif  // TUG_KERNELS_CUDA_EMULATION_SCHEDULER_H_
