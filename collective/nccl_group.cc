// SPDX-License-Identifier: Apache-2.0
#include "collective/nccl_group.h"

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/time_source.h"
#include "kernels/cuda/device/device.h"

#if TUG_CUDA
#include <cuda_runtime_api.h>
#include <nccl.h>

#include "absl/time/clock.h"
#endif

namespace tug {

#if TUG_CUDA

namespace {

// Interval for polling NCCL and CUDA, which give no notice of completion.
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

// NCCL keeps one last error message per process, whichever communicator is queried.
absl::Status NcclError(ncclResult_t result, const char* call) {
  const char* const last = ncclGetLastError(nullptr);
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
    return NcclError(result, "ncclGetUniqueId");
  }
  Id id;
  std::memcpy(id.data(), made.internal, id.size());
  return id;
}

absl::StatusOr<std::unique_ptr<NcclGroup>> NcclGroup::Create(const NcclGroupOptions& options,
                                                             const Id& id) {
  auto group = std::make_unique<NcclGroup>(options);
  RETURN_IF_ERROR(group->Join(id));
  return group;
}

absl::Status NcclGroup::Join(const Id& id) {
  absl::Status gpu = kernels::cuda::UseDevice(options_.device);
  gpu.Update(kernels::cuda::CheckGpu());
  if (!gpu.ok()) return Fail(std::move(gpu));
  ncclUniqueId name;
  std::memcpy(name.internal, id.data(), id.size());
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  ncclResult_t result;
  {
    absl::MutexLock lock(&mutex_);
    RETURN_IF_ERROR(status_);
    ncclComm_t communicator = nullptr;
    result = ncclCommInitRankConfig(&communicator, static_cast<int>(options_.world), name,
                                    static_cast<int>(options_.rank), &config);
    communicator_ = communicator;
  }
  return Settle(result, "ncclCommInitRankConfig");
}

NcclGroup::~NcclGroup() {
  if (communicator_ == nullptr) return;
  const absl::Status over = Run(
      [](void* communicator) { return ncclCommFinalize(Of(communicator)); }, "ncclCommFinalize");
  if (over.ok()) ncclCommDestroy(Of(communicator_));
}

void NcclGroup::Abort() { Fail(absl::CancelledError("the group was aborted")).IgnoreError(); }

absl::Status NcclGroup::Fail(absl::Status status) {
  absl::MutexLock lock(&mutex_);
  if (status_.ok()) status_ = std::move(status);
  if (communicator_ != nullptr) ncclCommAbort(Of(std::exchange(communicator_, nullptr)));
  return status_;
}

absl::Status NcclGroup::Run(absl::FunctionRef<int(void* communicator)> f, const char* call) {
  int result;
  {
    absl::MutexLock lock(&mutex_);
    RETURN_IF_ERROR(status_);
    result = f(communicator_);
  }
  return Settle(result, call);
}

absl::Status NcclGroup::Look(int& state) {
  absl::MutexLock lock(&mutex_);
  RETURN_IF_ERROR(status_);
  ncclResult_t under_way = ncclSuccess;
  const ncclResult_t asked = ncclCommGetAsyncError(Of(communicator_), &under_way);
  state = asked != ncclSuccess ? asked : under_way;
  return absl::OkStatus();
}

absl::Status NcclGroup::Settle(int result, const char* call) {
  const absl::Time deadline = SteadyNow() + options_.timeout;
  while (result == ncclInProgress) {
    if (SteadyNow() > deadline) {
      return Fail(absl::DeadlineExceededError(
          absl::StrCat(call, ": not all of ", options_.world, " ranks joined within ",
                       absl::FormatDuration(options_.timeout))));
    }
    absl::SleepFor(kLook);
    RETURN_IF_ERROR(Look(result));
  }
  if (result == ncclSuccess) return absl::OkStatus();
  return Fail(NcclError(static_cast<ncclResult_t>(result), call));
}

absl::Status NcclGroup::AllReduce(const void* in, void* out, uint64_t count, ElementType type,
                                  void* stream) {
  return Run(
      [&](void* communicator) {
        return ncclAllReduce(in, out, count, TypeOf(type), ncclSum, Of(communicator),
                             static_cast<cudaStream_t>(stream));
      },
      "ncclAllReduce");
}

absl::Status NcclGroup::ReduceScatter(const void* in, void* out, uint64_t count, ElementType type,
                                      void* stream) {
  return Run(
      [&](void* communicator) {
        return ncclReduceScatter(in, out, count, TypeOf(type), ncclSum, Of(communicator),
                                 static_cast<cudaStream_t>(stream));
      },
      "ncclReduceScatter");
}

absl::Status NcclGroup::AllGather(const void* in, void* out, uint64_t count, ElementType type,
                                  void* stream) {
  return Run(
      [&](void* communicator) {
        return ncclAllGather(in, out, count, TypeOf(type), Of(communicator),
                             static_cast<cudaStream_t>(stream));
      },
      "ncclAllGather");
}

absl::Status NcclGroup::Wait(void* stream) {
  const absl::Time deadline = SteadyNow() + options_.timeout;
  while (true) {
    int state = ncclSuccess;
    RETURN_IF_ERROR(Look(state));
    const cudaError_t done = cudaStreamQuery(static_cast<cudaStream_t>(stream));
    if (done == cudaSuccess) return absl::OkStatus();
    if (done != cudaErrorNotReady) {
      return Fail(absl::UnavailableError(absl::StrCat("GPU: ", cudaGetErrorString(done))));
    }
    if (state != ncclSuccess && state != ncclInProgress) {
      return Fail(NcclError(static_cast<ncclResult_t>(state), "collective"));
    }
    if (SteadyNow() > deadline) {
      return Fail(absl::DeadlineExceededError(
          absl::StrCat("a collective of ", options_.world, " ranks did not complete within ",
                       absl::FormatDuration(options_.timeout),
                       ": a rank is lost, stuck or in another collective")));
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
absl::Status NcclGroup::Join(const Id&) { return NotBuilt(); }
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
absl::Status NcclGroup::Wait(void*) { return NotBuilt(); }
void NcclGroup::Abort() {}

#endif  // TUG_CUDA

}  // namespace tug
