// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_KERNELS_EMULATION_CUDA_EMULATION_SCHEDULER_H_
#define TUG_KERNELS_EMULATION_CUDA_EMULATION_SCHEDULER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <source_location>
#include <string>

#include "absl/status/status.h"

// Runs the threads of a CUDA grid on the CPU, for tests: the implementation of
// kernels/emulation/cuda_emulation.h.
//   - Blocks run one after another on the calling OS thread, in an order shuffled by the seed.
//   - A CUDA thread is a fiber with a stack of 64 KiB. It runs until it waits (barrier, warp
//     operation) or returns; the next thread is drawn at random from the seed. So a read of shared
//     memory before the required barrier gets a wrong value for most seeds.
//   - Shared memory is all ones (NaN as a float, -1 as an int) when a block begins.
// Faults that hang a GPU or produce garbage are errors here: a barrier or a warp operation that not
// all its threads reach, or that they reach in different places; a write beyond the end of shared
// memory. Races on device memory and between blocks are not detected.
// OS threads may run grids concurrently.
namespace tug::kernels::emulation {

struct Index3 {
  uint32_t x, y, z;
};

struct GridShape {
  Index3 grid;
  Index3 block;
  size_t shared_bytes;
};

// Seeds the grids that this OS thread runs from now on. Initially 1.
void SetSeed(uint64_t seed);

// INVALID_ARGUMENT for a shape that no GPU supports.
absl::Status CheckGrid(const GridShape& shape);

// Calls `thread` once for every thread of the grid. begin_thread(thread, block) is called whenever
// a thread starts or resumes. Errors: INTERNAL with the kernel's fault and its location; those of
// CheckGrid.
absl::Status RunGrid(const GridShape& shape, const std::function<void()>& thread,
                     void (*begin_thread)(const Index3& thread, const Index3& block));

// The following functions are called by CUDA threads.

// Waits until all threads of the block reach the same place.
void SyncThreads(const std::source_location& where);

// Joint operation of the lanes of a warp: `combine` reads the argument of each lane of the mask
// (null for other lanes) and writes each lane's result there.
struct WarpOperation {
  const char* name;
  void (*combine)(void* const lanes[32], uint32_t mask);
};

// Waits until all lanes of the mask call it with the same operation and mask; then all continue
// with their results in `mine`. `operation` has static storage.
void RunWarpOperation(uint32_t mask, const WarpOperation& operation, void* mine,
                      const std::source_location& where);

// Index of this thread in its warp.
uint32_t Lane();

// The block's shared memory. Fails if the launch requested fewer than `bytes`.
void* SharedBytes(size_t bytes);

bool IsShared(const void* p, size_t bytes);

// cp.async of 16 bytes, of which `bytes` are read. It is done no earlier than the thread waits for
// its group, so a thread that does not wait reads the old contents.
void BeginCopy(void* shared, const void* device, int bytes);
void CommitCopies();
void WaitForCopies(size_t still_going);

// Ends the grid with this error.
[[noreturn]] void Fail(const std::string& message);

}  // namespace tug::kernels::emulation

#endif  // TUG_KERNELS_EMULATION_CUDA_EMULATION_SCHEDULER_H_
