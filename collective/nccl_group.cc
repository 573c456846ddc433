#include "collective/nccl_group.h"

#include <algorithm>
#include <cstring>
#include <span>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "collective/binomial_tree.h"
#include "kernels/device.h"

#if TUG_CUDA
#include <cuda_runtime_api.h>
#include <nccl.h>

#include "absl/time/clock.h"
#endif

namespace tug {

#if TUG_CUDA

namespace {

// Between two looks at what does not tell us by itself when it is done.
constexpr absl::Duration kLook = absl::Microseconds(20);

ncclDataType_t TypeOf(ElementType type) {
  switch (type) {
    case ElementType::kFp32:
      return ncclFloat32;
    case ElementType::kBf16:
      return ncclBfloat16;
    case ElementType::kFp16:
      return ncclFloat16;
  }
  return ncclFloat32;
}

ncclComm_t Of(void* communicator) { return static_cast<ncclComm_t>(communicator); }

absl::Status NcclError(ncclResult_t result, ncclComm_t communicator, const char* call) {
  const char* const last = ncclGetLastError(communicator);
  return absl::UnavailableError(absl::StrCat(call, ": ", ncclGetErrorString(result),
                                             last != nullptr && *last != '\0' ? ": " : "",
                                             last != nullptr ? last : ""));
}

}  // namespace

static_assert(NcclGroup::kIdBytes == NCCL_UNIQUE_ID_BYTES);

absl::StatusOr<NcclGroup::Id> NcclGroup::MakeId() {
  RETURN_IF_ERROR(kernels::cuda::CheckGpu());
  ncclUniqueId made;
  if (const ncclResult_t result = ncclGetUniqueId(&made); result != ncclSuccess) {
    return NcclError(result, nullptr, "ncclGetUniqueId");
  }
  Id id;
  std::memcpy(id.data(), made.internal, id.size());
  return id;
}

absl::StatusOr<std::unique_ptr<NcclGroup>> NcclGroup::Create(const NcclGroupOptions& options,
                                                             const Id& id) {
  RETURN_IF_ERROR(kernels::cuda::CheckGpu());
  std::unique_ptr<NcclGroup> group(new NcclGroup(options));
  RETURN_IF_ERROR(group->Join(id));
  return group;
}

absl::Status NcclGroup::Join(const Id& id) {
  if (absl::Status status = kernels::cuda::UseDevice(options_.device); !status.ok()) {
    return Fail(std::move(status));
  }
  ncclUniqueId name;
  std::memcpy(name.internal, id.data(), id.size());
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  ncclComm_t communicator = nullptr;
  const ncclResult_t result =
      ncclCommInitRankConfig(&communicator, static_cast<int>(options_.world), name,
                             static_cast<int>(options_.rank), &config);
  communicator_ = communicator;
  return Settle(result, "ncclCommInitRankConfig");
}

NcclGroup::~NcclGroup() {
  if (communicator_ == nullptr) return;
  if (aborted_ || !Settle(ncclCommFinalize(Of(communicator_)), "ncclCommFinalize").ok()) {
    if (communicator_ != nullptr) ncclCommAbort(Of(communicator_));
    return;
  }
  ncclCommDestroy(Of(communicator_));
}

absl::Status NcclGroup::Fail(absl::Status status) {
  status_ = std::move(status);
  if (communicator_ != nullptr) ncclCommAbort(Of(std::exchange(communicator_, nullptr)));
  return status_;
}

absl::Status NcclGroup::Settle(int first, const char* call) {
  auto result = static_cast<ncclResult_t>(first);
  const absl::Time deadline = absl::Now() + options_.timeout;
  while (result == ncclInProgress) {
    if (aborted_) return Fail(absl::CancelledError("the group was aborted"));
    if (absl::Now() > deadline) {
      return Fail(absl::DeadlineExceededError(
          absl::StrCat(call, ": not all of ", options_.world, " ranks came within ",
                       absl::FormatDuration(options_.timeout))));
    }
    absl::SleepFor(kLook);
    const ncclResult_t asked = ncclCommGetAsyncError(Of(communicator_), &result);
    if (asked != ncclSuccess) result = asked;
  }
  if (result == ncclSuccess) return absl::OkStatus();
  return Fail(NcclError(result, Of(communicator_), call));
}

absl::Status NcclGroup::AllReduce(const void* in, void* out, uint64_t count, ElementType type,
                                  void* stream) {
  RETURN_IF_ERROR(status_);
  return Settle(ncclAllReduce(in, out, count, TypeOf(type), ncclSum, Of(communicator_),
                              static_cast<cudaStream_t>(stream)),
                "ncclAllReduce");
}

absl::Status NcclGroup::ReduceScatter(const void* in, void* out, uint64_t count, ElementType type,
                                      void* stream) {
  RETURN_IF_ERROR(status_);
  return Settle(ncclReduceScatter(in, out, count, TypeOf(type), ncclSum, Of(communicator_),
                                  static_cast<cudaStream_t>(stream)),
                "ncclReduceScatter");
}

absl::Status NcclGroup::AllGather(const void* in, void* out, uint64_t count, ElementType type,
                                  void* stream) {
  RETURN_IF_ERROR(status_);
  return Settle(ncclAllGather(in, out, count, TypeOf(type), Of(communicator_),
                              static_cast<cudaStream_t>(stream)),
                "ncclAllGather");
}

absl::Status NcclGroup::Broadcast(const void* in, void* out, uint64_t count, ElementType type,
                                  uint32_t root, void* stream) {
  RETURN_IF_ERROR(status_);
  return Settle(ncclBroadcast(in, out, count, TypeOf(type), static_cast<int>(root),
                              Of(communicator_), static_cast<cudaStream_t>(stream)),
                "ncclBroadcast");
}

absl::Status NcclGroup::Wait(void* stream) {
  RETURN_IF_ERROR(status_);
  const absl::Time deadline = absl::Now() + options_.timeout;
  while (true) {
    const cudaError_t done = cudaStreamQuery(static_cast<cudaStream_t>(stream));
    if (done == cudaSuccess) return absl::OkStatus();
    if (done != cudaErrorNotReady) {
      return Fail(absl::UnavailableError(absl::StrCat("GPU: ", cudaGetErrorString(done))));
    }
    if (aborted_) return Fail(absl::CancelledError("the group was aborted"));
    ncclResult_t state = ncclSuccess;
    const ncclResult_t asked = ncclCommGetAsyncError(Of(communicator_), &state);
    const ncclResult_t result = asked != ncclSuccess ? asked : state;
    if (result != ncclSuccess && result != ncclInProgress) {
      return Fail(NcclError(result, Of(communicator_), "collective"));
    }
    if (absl::Now() > deadline) {
      return Fail(absl::DeadlineExceededError(absl::StrCat(
          "a collective of ", options_.world, " ranks was not over within ",
          absl::FormatDuration(options_.timeout), ": a rank is lost, stuck, or calls another")));
    }
    absl::SleepFor(kLook);
  }
}

#else  // TUG_CUDA

namespace {

absl::Status NotBuilt() { return kernels::cuda::CheckGpu(); }

}  // namespace

absl::StatusOr<NcclGroup::Id> NcclGroup::MakeId() { return NotBuilt(); }
absl::StatusOr<std::unique_ptr<NcclGroup>> NcclGroup::Create(const NcclGroupOptions&, const Id&) {
  return NotBuilt();
}
NcclGroup::~NcclGroup() = default;
absl::Status NcclGroup::AllReduce(const void*, void*, uint64_t, ElementType, void*) {
  return NotBuilt();
}
absl::Status NcclGroup::ReduceScatter(const void*, void*, uint64_t, ElementType, void*) {
  return NotBuilt();
}
absl::Status NcclGroup::AllGather(const void*, void*, uint64_t, ElementType, void*) {
  return NotBuilt();
}
absl::Status NcclGroup::Broadcast(const void*, void*, uint64_t, ElementType, uint32_t, void*) {
  return NotBuilt();
}
absl::Status NcclGroup::Wait(void*) { return NotBuilt(); }

#endif  // TUG_CUDA

absl::StatusOr<NcclGroup::Id> ShareNcclId(Communicator& communicator, Transport& transport) {
  absl::StatusOr<NcclGroup::Id> id = NcclGroup::Id{};
  if (communicator.rank() == 0) id = NcclGroup::MakeId();
  const std::shared_ptr<AlignedBuffer> buffer = transport.NewBuffer(NcclGroup::kIdBytes);
  const std::span<std::byte> bytes(buffer->data(), NcclGroup::kIdBytes);
  // Zeros: rank 0 has none.
  const NcclGroup::Id sent = id.ok() ? *id : NcclGroup::Id{};
  std::copy(sent.begin(), sent.end(), bytes.begin());
  RETURN_IF_ERROR(
      communicator.Run(BinomialBroadcast(communicator.rank(), communicator.world(), /*root=*/0),
                       {buffer, bytes}, ElementType::kFp32));
  if (!id.ok()) return id;
  NcclGroup::Id received;
  std::copy(bytes.begin(), bytes.end(), received.begin());
  if (received == NcclGroup::Id{}) {
    return absl::UnavailableError("rank 0 cannot begin a group of GPUs: its own error says why");
  }
  return received;
}

}  // namespace tug
