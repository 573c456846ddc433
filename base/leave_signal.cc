// SPDX-License-Identifier: Apache-2.0
#include "base/leave_signal.h"

#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>

#include "base/check.h"
#include "base/stop_wishes.h"

namespace tug {
namespace {

constexpr int kSignals[] = {SIGTERM, SIGHUP};

// Signal handlers can only reach global variables.
std::atomic<int64_t> asked_at_ns = 0;  // monotonic; 0: not asked
std::atomic<bool> awaits_end = false;
static_assert(std::atomic<int64_t>::is_always_lock_free);
static_assert(std::atomic<bool>::is_always_lock_free);

void EndBy(int signal_number) {
  signal(signal_number, SIG_DFL);
  sigset_t own;
  sigemptyset(&own);
  sigaddset(&own, signal_number);
  pthread_sigmask(SIG_UNBLOCK, &own, nullptr);
  raise(signal_number);
  _exit(128 + signal_number);  // signals do not kill the first process of a container
}

void OnPatienceOver(int) { EndBy(SIGTERM); }

void Note(int signal_number) {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  const int64_t now_ns = now.tv_sec * int64_t{1'000'000'000} + now.tv_nsec;
  int64_t never = 0;
  if (asked_at_ns.compare_exchange_strong(never, now_ns)) {
    if (awaits_end) alarm(LeaveSignal::kPatienceSeconds);
    return;
  }
  if (now_ns - asked_at_ns < absl::ToInt64Nanoseconds(StopWishes::kApart)) return;
  EndBy(signal_number);
}

void (*HandlerOf(int signal_number))(int) {
  struct sigaction action {};
  TUG_CHECK_EQ(sigaction(signal_number, nullptr, &action), 0);
  return action.sa_handler;
}

void Handle(int signal_number, void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;  // do not interrupt system calls in progress
  TUG_CHECK_EQ(sigaction(signal_number, &action, nullptr), 0);
}

}  // namespace

void LeaveSignal::Arm(Rule rule) {
  asked_at_ns = 0;
  leaves_ = rule == Rule::kLeave;
  awaits_end = rule == Rule::kAwaitEnd;
  Handle(SIGALRM, OnPatienceOver);
  for (const int signal_number : kSignals) {
    if (HandlerOf(signal_number) != SIG_IGN) Handle(signal_number, Note);
  }
}

LeaveSignal::~LeaveSignal() {
  alarm(0);
  for (const int signal_number : kSignals) {
    if (HandlerOf(signal_number) == Note) signal(signal_number, SIG_DFL);
  }
}

bool LeaveSignal::asked() const { return leaves_ && asked_at_ns != 0; }

}  // namespace tug
