#include "base/leave_signal.h"

#include <signal.h>
#include <time.h>

#include <atomic>
#include <cstdint>

#include "base/check.h"
#include "base/stop_wishes.h"

namespace tug {
namespace {

// A handler is a function, and reaches nothing else.
std::atomic<int64_t> asked_at_ns = 0;  // monotonic; 0: not asked
static_assert(std::atomic<int64_t>::is_always_lock_free);

void Note(int) {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  const int64_t now_ns = now.tv_sec * int64_t{1'000'000'000} + now.tv_nsec;
  int64_t never = 0;
  if (asked_at_ns.compare_exchange_strong(never, now_ns)) return;
  if (now_ns - asked_at_ns < absl::ToInt64Nanoseconds(StopWishes::kApart)) return;
  signal(SIGTERM, SIG_DFL);
  raise(SIGTERM);
}

}  // namespace

void LeaveSignal::Arm() {
  asked_at_ns = 0;
  struct sigaction action {};
  TUG_CHECK_EQ(sigaction(SIGTERM, nullptr, &action), 0);
  if (action.sa_handler == SIG_IGN) return;
  action = {};
  action.sa_handler = Note;
  action.sa_flags = SA_RESTART;  // calls under way are not interrupted
  TUG_CHECK_EQ(sigaction(SIGTERM, &action, nullptr), 0);
  armed_ = true;
}

LeaveSignal::~LeaveSignal() {
  if (armed_) signal(SIGTERM, SIG_DFL);
}

bool LeaveSignal::asked() const { return armed_ && asked_at_ns != 0; }

}  // namespace tug
