// SPDX-License-Identifier: Apache-2.0
#include "process/last_words.h"

#include <cstdlib>
#include <exception>
#include <new>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/log.h"
#include "base/standard_error.h"
#include "process/log_format.h"

namespace tug {
namespace {

[[noreturn]] void End() {
  const std::exception_ptr exception = std::current_exception();
  if (exception == nullptr) std::abort();
  try {
    ReportError(WhyItEnds(exception));
    FlushStandardError();
  } catch (...) {  // no memory for a line either
  }
  std::abort();  // a supervisor restarts a coordinator killed by a signal
}

}  // namespace

void ReportError(const std::string& message) {
  if (LogIsForMachines()) {
    LogError(message);
  } else {
    LogInFile(LogLevel::kError, message);
    PrintLineToStderr(
        absl::StrCat("tug: error: ", absl::StrReplaceAll(message, {{"\n", " "}, {"\r", " "}})));
  }
}

std::string WhyItEnds(const std::exception_ptr& exception) {
  try {
    std::rethrow_exception(exception);
  } catch (const std::bad_alloc&) {
    return "out of memory: use a smaller model or batch, or fewer workers on this machine, or "
           "raise the memory limit (ulimit -v, or that of the control group)";
  } catch (const std::system_error& error) {
    if (error.code() != std::errc::resource_unavailable_try_again) {
      return absl::StrCat("unexpected: ", error.what());
    }
    return "cannot start a thread: raise the limit of processes (ulimit -u, pids.max of the "
           "control group) or the memory limit";
  } catch (const std::exception& error) {
    return absl::StrCat("unexpected: ", error.what());
  } catch (...) {
    return "unexpected: exception of an unknown type";
  }
}

void ReportUncaughtExceptions() { std::set_terminate(End); }

}  // namespace tug
