// SPDX-License-Identifier: Apache-2.0
#include "base/files/file_limit.h"

#include <sys/resource.h>

#include <algorithm>
#include <cerrno>

#include "absl/base/const_init.h"
#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"

namespace tug {
namespace {

// The reserve is the difference between the soft and the hard limit. It holds no descriptors;
// closing any descriptor refills it.
absl::Mutex mutex(absl::kConstInit);
rlim_t reserve ABSL_GUARDED_BY(mutex) = 0;

}  // namespace

absl::Status RaiseFileLimit() {
  const absl::MutexLock lock(&mutex);
  rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return absl::OkStatus();
  if (limit.rlim_max < kMinOpenFiles) {
    return absl::ResourceExhaustedError(absl::StrCat("the limit of open files is ", limit.rlim_max,
                                                     ", but a daemon needs at least ",
                                                     kMinOpenFiles, ": raise it (ulimit -n)"));
  }
  reserve = std::min<rlim_t>(kFileReserve, limit.rlim_max / 16);
  limit.rlim_cur = limit.rlim_max - reserve;
  setrlimit(RLIMIT_NOFILE, &limit);
  return absl::OkStatus();
}

void OpenWithReserve(absl::FunctionRef<bool()> open) {
  if (!open()) return;
  const absl::MutexLock lock(&mutex);
  rlimit usual;
  if (reserve == 0 || getrlimit(RLIMIT_NOFILE, &usual) != 0) return;
  rlimit raised = usual;
  // One at a time: another thread may accept a connection while the limit is raised.
  for (bool failed = true; failed && raised.rlim_cur < usual.rlim_max;) {
    ++raised.rlim_cur;
    setrlimit(RLIMIT_NOFILE, &raised);
    failed = open();
  }
  const int error = errno;  // set by `open`
  setrlimit(RLIMIT_NOFILE, &usual);
  errno = error;
}

}  // namespace tug
