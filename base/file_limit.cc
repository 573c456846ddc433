#include "base/file_limit.h"

#include <sys/resource.h>

#include "absl/strings/str_cat.h"

namespace tug {

absl::Status RaiseFileLimit() {
  rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return absl::OkStatus();
  if (limit.rlim_max < kLeastOpenFiles) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the limit of open files is ", limit.rlim_max, ", and a daemon needs ",
                     kLeastOpenFiles, " or more: raise it (ulimit -n)"));
  }
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
  return absl::OkStatus();
}

}  // namespace tug
