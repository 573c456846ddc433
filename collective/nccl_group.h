// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_COLLECTIVE_NCCL_GROUP_H_
#define TUG_COLLECTIVE_NCCL_GROUP_H_

// Collectives between GPUs by NCCL (NVIDIA Collective Communications Library), as a group whose
// calls return errors and never hang. The communicator does not block (ncclConfig_t::blocking = 0);
// every wait checks ncclCommGetAsyncError and a deadline; a failed group is aborted
// (ncclCommAbort), which ends kernels that wait for a lost rank.
//
//   ASSIGN_OR_RETURN(NcclGroup::Id id, NcclGroup::MakeId());  // on one rank, for all
//   ASSIGN_OR_RETURN(auto group, NcclGroup::Create({.rank = r, .world = n}, id));
//   RETURN_IF_ERROR(group->AllReduce(gradient, gradient, count, ElementType::kFp32, stream));
//   RETURN_IF_ERROR(group->Wait(stream));
//
// Built with --config=cuda. Without it, and on hosts without a GPU, MakeId and Create fail with
// UNAVAILABLE ("no GPU: ...").
//
// Ranks that share a GPU must each set a different NCCL_HOSTID.

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "collective/element_type.h"

namespace tug {

struct NcclGroupOptions {
  uint32_t rank = 0;
  uint32_t world = 1;
  int device = 0;  // CUDA device number
  // Time limit for a call to finish on all ranks.
  absl::Duration timeout = absl::Seconds(30);
};

// Used from one thread at a time, except Abort. Call only Abort before Join. After an error every
// call returns that error; work queued on streams ends, and its output is undefined.
class NcclGroup {
 public:
  static constexpr size_t kIdBytes = 128;
  using Id = std::array<std::byte, kIdBytes>;

  // Makes the id of a group. Call on one rank, whose process must live until all have joined.
  static absl::StatusOr<Id> MakeId();
  // Constructs a group and joins it.
  static absl::StatusOr<std::unique_ptr<NcclGroup>> Create(const NcclGroupOptions& options,
                                                           const Id& id);
  // For a caller that may have to abort the wait in Join.
  explicit NcclGroup(const NcclGroupOptions& options) : options_(options) {}
  ~NcclGroup();
  NcclGroup(const NcclGroup&) = delete;
  NcclGroup& operator=(const NcclGroup&) = delete;

  // Joins the group and waits for the other ranks. Call once. Errors: UNAVAILABLE (no GPU, or an
  // NCCL error with its message), DEADLINE_EXCEEDED (not all ranks came), CANCELLED (Abort).
  absl::Status Join(const Id& id);

  // These calls queue work on `stream` (a cudaStream_t; nullptr: the default one) and return. All
  // ranks make the same calls in the same order. `in` and `out` are device memory, equal or
  // disjoint.
  //   AllReduce      [count] -> [count], the sum
  //   ReduceScatter  [world x count] -> [count], this rank's part of the sum
  //   AllGather      [count] -> [world x count], by rank
  absl::Status AllReduce(const void* in, void* out, uint64_t count, ElementType type, void* stream);
  absl::Status ReduceScatter(const void* in, void* out, uint64_t count, ElementType type,
                             void* stream);
  absl::Status AllGather(const void* in, void* out, uint64_t count, ElementType type, void* stream);

  // Blocks until all work queued on the stream is done. Errors: UNAVAILABLE (a rank is gone, or
  // another NCCL error), DEADLINE_EXCEEDED (`timeout`), CANCELLED (Abort).
  absl::Status Wait(void* stream);

  // Fails the call in progress and all later ones with CANCELLED. Also ends kernels that wait for
  // other ranks, so a thread in Stream::Synchronize returns. Thread-safe.
  void Abort();

  uint32_t rank() const { return options_.rank; }
  uint32_t world() const { return options_.world; }

 private:
  // Calls `f` with the communicator (an ncclComm_t), then waits until NCCL no longer reports its
  // result (an ncclResult_t) as in progress.
  absl::Status Run(absl::FunctionRef<int(void* communicator)> f, const char* call);
  absl::Status Settle(int result, const char* call);
  // Reads the state (an ncclResult_t) of the operation in progress. Returns the group's error, if
  // any.
  absl::Status Look(int& state);
  // Records `status` unless there is an earlier error, aborts the communicator, and returns the
  // recorded error.
  absl::Status Fail(absl::Status status);

  const NcclGroupOptions options_;
  absl::Mutex mutex_;  // held during NCCL calls, which do not wait for other ranks
  void* communicator_ ABSL_GUARDED_BY(mutex_) = nullptr;  // null before Join and after Abort
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tug

#endif  // TUG_COLLECTIVE_NCCL_GROUP_H_
