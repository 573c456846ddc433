// SPDX-License-Identifier: Apache-2.0
#include "process/last_words.h"

#include <csignal>
#include <new>
#include <stdexcept>
#include <system_error>
#include <thread>

#include "gtest/gtest.h"

namespace tug {
namespace {

template <typename Exception>
void ThrowInAThread(const Exception& exception) {
  ReportUncaughtExceptions();
  std::thread([&] { throw exception; }).join();
}

TEST(LastWordsDeathTest, AThreadWithoutMemoryEndsTheProcessWithALine) {
  EXPECT_EXIT(ThrowInAThread(std::bad_alloc()), testing::KilledBySignal(SIGABRT),
              "^tug: error: out of memory: .* smaller");
}

TEST(LastWordsDeathTest, AThreadThatCannotStartToo) {
  const auto none = std::make_error_code(std::errc::resource_unavailable_try_again);
  EXPECT_EXIT(ThrowInAThread(std::system_error(none)), testing::KilledBySignal(SIGABRT),
              "^tug: error: cannot start a thread: .*ulimit -u");
}

TEST(LastWordsDeathTest, UncaughtExceptionIsReported) {
  EXPECT_EXIT(ThrowInAThread(std::runtime_error("odd")), testing::KilledBySignal(SIGABRT),
              "^tug: error: unexpected: odd");
}

}  // namespace
}  // namespace tug
