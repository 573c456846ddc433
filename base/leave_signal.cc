#include "base/leave_signal.h"

#include <signal.h>

#include <atomic>

#include "base/check.h"

namespace tug {
namespace {

// A handler is a function, and reaches nothing else.
std::atomic<bool> asked_to_leave = false;
static_assert(std::atomic<bool>::is_always_lock_free);

void Note(int) { asked_to_leave = true; }

}  // namespace

void LeaveSignal::Arm() {
  asked_to_leave = false;
  struct sigaction action {};
  TUG_CHECK_EQ(sigaction(SIGTERM, nullptr, &action), 0);
  if (action.sa_handler == SIG_IGN) return;
  action = {};
  action.sa_handler = Note;
  // The next one does what it did before; calls under way are not interrupted.
  action.sa_flags = SA_RESETHAND | SA_RESTART;
  TUG_CHECK_EQ(sigaction(SIGTERM, &action, nullptr), 0);
  armed_ = true;
}

LeaveSignal::~LeaveSignal() {
  if (armed_) signal(SIGTERM, SIG_DFL);
}

bool LeaveSignal::asked() const { return armed_ && asked_to_leave; }

}  // namespace tug
