// SPDX-License-Identifier: Apache-2.0
#include "base/standard_error.h"

#include <unistd.h>

#include <cstdlib>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/synchronization/mutex.h"
#include "base/pipe_writer.h"
#include "base/time_source.h"

namespace tug {
namespace {

constexpr absl::Duration kLastWordsTime = absl::Seconds(1);

class StandardError {
 public:
  void Write(absl::string_view text) {
    absl::MutexLock lock(&mutex_);
    if (absl::ConsumeSuffix(&text, "\n")) {
      writer_.AppendLineIfRoom("", text);
    } else if (writer_.empty()) {
      writer_.Append(text);
    }
    writer_.Flush();
  }

  void FlushUntil(absl::Time deadline) {
    absl::MutexLock lock(&mutex_);
    writer_.FlushUntil(deadline);
  }

 private:
  absl::Mutex mutex_;
  PipeWriter writer_ ABSL_GUARDED_BY(mutex_){STDERR_FILENO};
};

// One per process, since descriptor 2 is.
StandardError& OfProcess() {
  static StandardError& standard_error = *new StandardError;
  return standard_error;
}

}  // namespace

bool StandardErrorIsTerminal() { return isatty(STDERR_FILENO) != 0; }

void WriteStandardError(absl::string_view text) { OfProcess().Write(text); }

void PrintLineToStderr(absl::string_view text) { WriteStandardError(absl::StrCat(text, "\n")); }

void FlushStandardError() { OfProcess().FlushUntil(SteadyNow() + kLastWordsTime); }

void Die(absl::string_view text) {
  PrintLineToStderr(text);
  FlushStandardError();
  std::abort();
}

}  // namespace tug
