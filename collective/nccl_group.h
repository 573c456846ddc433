#ifndef TUG_COLLECTIVE_NCCL_GROUP_H_
#define TUG_COLLECTIVE_NCCL_GROUP_H_

// Collectives between GPUs by NCCL (NVIDIA Collective Communications Library), as a group whose
// calls return errors and never hang: the communicator does not block (ncclConfig_t::blocking = 0),
// every wait looks at ncclCommGetAsyncError and at a deadline, and a group that has failed is
// aborted (ncclCommAbort), so that kernels that wait for a lost rank end.
//
//   ASSIGN_OR_RETURN(NcclGroup::Id id, ShareNcclId(communicator, transport));
//   ASSIGN_OR_RETURN(auto group, NcclGroup::Create({.rank = r, .world = n}, id));
//   RETURN_IF_ERROR(group->AllReduce(gradient, gradient, count, ElementType::kFp32, stream));
//   RETURN_IF_ERROR(group->Wait(stream));
//
// Built under --config=cuda. Without it, and where there is no GPU, MakeId and Create say so
// (UNAVAILABLE, "no GPU: ...").
//
// Of a job that spans hosts it is for the GPUs of one: reduce there, then push and pull between
// hosts. Ranks that share a GPU must each set an NCCL_HOSTID of their own.

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
#include "collective/communicator.h"
#include "collective/element_type.h"
#include "transport/transport.h"

namespace tug {

struct NcclGroupOptions {
  uint32_t rank = 0;
  uint32_t world = 1;
  int device = 0;  // CUDA's number
  // For a call to come to its end on all ranks.
  absl::Duration timeout = absl::Seconds(30);
};

// Used from one thread at a time, but for Abort. Nothing but Abort is called before Join. After an
// error it is of no use, and says why; what it has queued on streams ends, and what that was to
// write means nothing.
class NcclGroup {
 public:
  static constexpr size_t kIdBytes = 128;
  using Id = std::array<std::byte, kIdBytes>;

  // Names a group; on one of its ranks, whose process has to live until all have joined.
  static absl::StatusOr<Id> MakeId();
  // Makes a group, and joins it.
  static absl::StatusOr<std::unique_ptr<NcclGroup>> Create(const NcclGroupOptions& options,
                                                           const Id& id);
  // For whoever may have to end the wait in Join.
  explicit NcclGroup(const NcclGroupOptions& options) : options_(options) {}
  ~NcclGroup();
  NcclGroup(const NcclGroup&) = delete;
  NcclGroup& operator=(const NcclGroup&) = delete;

  // Once: joins, and waits for the others. Errors: UNAVAILABLE (no GPU; NCCL's own, with its
  // words), DEADLINE_EXCEEDED (not all ranks came), CANCELLED (Abort).
  absl::Status Join(const Id& id);

  // Queued on `stream` (a cudaStream_t; nullptr: the default one) when they return; all ranks call
  // the same ones in the same order. `in` and `out` are device memory, the same or apart.
  //   AllReduce      [count] -> [count], the sum
  //   ReduceScatter  [world x count] -> [count], this rank's part of the sum
  //   AllGather      [count] -> [world x count], by rank
  //   Broadcast      [count] of `root` -> [count]
  absl::Status AllReduce(const void* in, void* out, uint64_t count, ElementType type, void* stream);
  absl::Status ReduceScatter(const void* in, void* out, uint64_t count, ElementType type,
                             void* stream);
  absl::Status AllGather(const void* in, void* out, uint64_t count, ElementType type, void* stream);
  absl::Status Broadcast(const void* in, void* out, uint64_t count, ElementType type, uint32_t root,
                         void* stream);

  // Blocks until all that is queued on the stream is done. Errors: UNAVAILABLE (a rank is gone, or
  // what NCCL says), DEADLINE_EXCEEDED (`timeout`), CANCELLED (Abort).
  absl::Status Wait(void* stream);

  // An error, CANCELLED, of the call in progress, and of all later ones. So whoever waits for the
  // GPU in another way, as Stream::Synchronize, goes on too. Thread-safe.
  void Abort();

  uint32_t rank() const { return options_.rank; }
  uint32_t world() const { return options_.world; }

 private:
  // Gives it the communicator (an ncclComm_t), and waits until NCCL has taken what it calls, whose
  // result (an ncclResult_t) it returns.
  absl::Status Run(absl::FunctionRef<int(void* communicator)> f, const char* call);
  absl::Status Settle(int result, const char* call);
  // What is the matter, if anything. `state`: an ncclResult_t of what is under way.
  absl::Status Look(int& state);
  // Keeps and returns it, or the one before.
  absl::Status Fail(absl::Status status);

  const NcclGroupOptions options_;
  absl::Mutex mutex_;  // held in calls of NCCL, which do not wait for other ranks
  void* communicator_ ABSL_GUARDED_BY(mutex_) =
      nullptr;  // null until it is joined, and once it is aborted
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
};

// The same id on all ranks of a group that can talk already: rank 0 makes it. Errors: those of
// MakeId, on all ranks; those of the communicator.
absl::StatusOr<NcclGroup::Id> ShareNcclId(Communicator& communicator, Transport& transport);

}  // namespace tug

#endif  // TUG_COLLECTIVE_NCCL_GROUP_H_
