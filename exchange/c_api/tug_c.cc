// SPDX-License-Identifier: Apache-2.0
// Implements exchange/c_api/tug.h with ExternalWorker: checks arguments, translates statuses, and
// catches std::bad_alloc.

#include <map>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "control/join_job.h"
#include "exchange/c_api/external_worker.h"
#include "exchange/c_api/tug.h"
#include "security/key_file.h"

#define TUG_QUOTED(text) #text
#define TUG_VALUE(macro) TUG_QUOTED(macro)

struct tug_context {
  std::unique_ptr<tug::ExternalWorker> worker;  // null if tug_init failed
  mutable absl::Mutex mutex;
  // By thread: a message stays valid while calls of other threads fail.
  std::map<std::thread::id, std::string> errors ABSL_GUARDED_BY(mutex);
};

namespace {

tug_status CodeOf(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return TUG_OK;
    case absl::StatusCode::kInvalidArgument:
      return TUG_INVALID_ARGUMENT;
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kOutOfRange:
    case absl::StatusCode::kResourceExhausted:
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kUnauthenticated:
      return TUG_REFUSED;
    case absl::StatusCode::kUnavailable:
      return TUG_UNREACHABLE;
    case absl::StatusCode::kAborted:
    case absl::StatusCode::kCancelled:
      return TUG_JOB_FAILED;
    default:
      return TUG_INTERNAL;
  }
}

tug_status Answer(tug_context* context, const absl::Status& status) {
  if (status.ok()) return TUG_OK;
  absl::MutexLock lock(&context->mutex);
  context->errors[std::this_thread::get_id()] = std::string(status.message());
  return CodeOf(status);
}

// Runs `call(worker)`, which returns an absl::Status.
template <typename Call>
tug_status With(tug_context* context, Call call) {
  if (context == nullptr) return TUG_INVALID_ARGUMENT;
  try {
    if (context->worker == nullptr) {
      return Answer(context,
                    absl::FailedPreconditionError(
                        "tug_init failed for this context: call tug_free, then tug_init again"));
    }
    return Answer(context, call(*context->worker));
  } catch (const std::bad_alloc&) {
    return TUG_OUT_OF_MEMORY;
  }
}

// As With, for a call that returns an absl::StatusOr whose value goes to *out.
template <typename Out, typename Call>
tug_status WithResult(tug_context* context, Out* out, const char* name, Call call) {
  return With(context, [&](tug::ExternalWorker& worker) -> absl::Status {
    if (out == nullptr) return absl::InvalidArgumentError(std::string(name) + " is NULL");
    auto result = call(worker);
    if (result.ok()) *out = *result;
    return result.status();
  });
}

}  // namespace

tug_status tug_init(const char* coordinator, tug_context** context) {
  return tug_init_with_keys(coordinator, nullptr, context);
}

tug_status tug_init_with_keys(const char* coordinator, const char* key_file,
                              tug_context** context) {
  if (context == nullptr) return TUG_INVALID_ARGUMENT;
  *context = new (std::nothrow) tug_context;
  if (*context == nullptr) return TUG_OUT_OF_MEMORY;
  try {
    if (coordinator == nullptr) {
      return Answer(*context, absl::InvalidArgumentError("coordinator is NULL: pass HOST:PORT"));
    }
    tug::JobKeys keys;
    if (key_file != nullptr) {
      absl::StatusOr<tug::JobKeys> read = tug::ReadKeyFile(key_file);
      if (!read.ok()) return Answer(*context, read.status());
      keys = *std::move(read);
    }
    auto worker = tug::ExternalWorker::Connect(coordinator, tug::kJoinTimeout, keys);
    if (worker.ok()) (*context)->worker = *std::move(worker);
    return Answer(*context, worker.status());
  } catch (const std::bad_alloc&) {
    delete *context;
    *context = nullptr;
    return TUG_OUT_OF_MEMORY;
  }
}

const char* tug_last_error(const tug_context* context) {
  if (context == nullptr) return "the context is NULL: pass the one from tug_init";
  absl::MutexLock lock(&context->mutex);
  const auto found = context->errors.find(std::this_thread::get_id());
  return found == context->errors.end() ? "" : found->second.c_str();
}

tug_status tug_declare(tug_context* context, const char* name, uint64_t elements, float init_mean,
                       float init_std, uint32_t flags, uint32_t* block) {
  return WithResult(
      context, block, "block", [&](tug::ExternalWorker& worker) -> absl::StatusOr<uint32_t> {
        if (name == nullptr) return absl::InvalidArgumentError("name is NULL");
        if ((flags & ~uint32_t{TUG_WEIGHT_DECAY}) != 0) {
          return absl::InvalidArgumentError("unknown bit in flags: use 0 or TUG_WEIGHT_DECAY");
        }
        return worker.Declare(name, elements, init_mean, init_std, (flags & TUG_WEIGHT_DECAY) != 0);
      });
}

const char* tug_version() {
  return TUG_VALUE(TUG_VERSION_MAJOR) "." TUG_VALUE(TUG_VERSION_MINOR) "." TUG_VALUE(
      TUG_VERSION_PATCH);
}

tug_status tug_start(tug_context* context) {
  return With(context, [](tug::ExternalWorker& worker) { return worker.Start(); });
}

tug_status tug_worker_index(tug_context* context, uint32_t* index) {
  return WithResult(context, index, "index",
                    [](tug::ExternalWorker& worker) { return worker.Index(); });
}

tug_status tug_worker_count(tug_context* context, uint32_t* count) {
  return WithResult(context, count, "count",
                    [](tug::ExternalWorker& worker) { return worker.Count(); });
}

tug_status tug_begin_step(tug_context* context, uint64_t* step) {
  bool finished = false;
  const tug_status status = With(context, [&](tug::ExternalWorker& worker) {
    const auto begun = worker.BeginStep();
    finished = begun.ok() && !begun->has_value();
    if (begun.ok() && begun->has_value() && step != nullptr) *step = **begun;
    return begun.status();
  });
  return finished ? TUG_FINISHED : status;
}

tug_status tug_push(tug_context* context, uint32_t block, const float* gradient, uint64_t count,
                    tug_ticket* ticket) {
  return WithResult(context, ticket, "ticket", [&](tug::ExternalWorker& worker) {
    return worker.Push(block, gradient, count);
  });
}

tug_status tug_pull(tug_context* context, uint32_t block, float* weights, tug_ticket* ticket) {
  return WithResult(context, ticket, "ticket",
                    [&](tug::ExternalWorker& worker) { return worker.Pull(block, weights); });
}

tug_status tug_wait(tug_context* context, tug_ticket ticket) {
  return With(context, [&](tug::ExternalWorker& worker) { return worker.Wait(ticket); });
}

tug_status tug_report_loss(tug_context* context, double loss_sum, uint64_t count) {
  return With(context,
              [&](tug::ExternalWorker& worker) { return worker.ReportLoss(loss_sum, count); });
}

tug_status tug_buffer(tug_context* context, uint64_t size_bytes, void** memory) {
  return WithResult(context, memory, "memory",
                    [&](tug::ExternalWorker& worker) { return worker.NewBuffer(size_bytes); });
}

tug_status tug_stop(tug_context* context) {
  return With(context, [](tug::ExternalWorker& worker) { return worker.Stop(); });
}

tug_status tug_shutdown(tug_context* context) {
  return With(context, [](tug::ExternalWorker& worker) { return worker.Finish(); });
}

void tug_free(tug_context* context) { delete context; }
