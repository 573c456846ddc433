// SPDX-License-Identifier: Apache-2.0
// Shows absl::Mutex to ThreadSanitizer (--config=tsan only).
//
// Debian's Abseil is not instrumented, so ThreadSanitizer sees no lock and reports every
// guarded access as a race. The functions below override the library's: each calls the
// library's function and reports the ordering to ThreadSanitizer.
//
//   1. Unlock, and every wait before it sleeps: release (publishes the thread's writes).
//   2. Lock, and every wait after it wakes: acquire (sees the published writes).
//   3. Any thread that holds the lock may evaluate a Condition: its reads are ignored.
#include <dlfcn.h>
#include <sanitizer/tsan_interface.h>

#include <cstdlib>

#include "absl/synchronization/blocking_counter.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"

extern "C" {
void AnnotateIgnoreReadsBegin(const char* file, int line);
void AnnotateIgnoreReadsEnd(const char* file, int line);
}

namespace {

// Returns the library's function of this mangled name, which the one here overrides.
template <typename Function>
Function* Real(const char* symbol) {
  void* found = dlsym(RTLD_NEXT, symbol);
  if (found == nullptr) std::abort();
  return reinterpret_cast<Function*>(found);
}

}  // namespace

// Declares `real`, the library's version of the enclosing function.
#define REAL(symbol, ...) static auto* const real = Real<__VA_ARGS__>("_ZN" symbol)
#define REAL_CONST(symbol, ...) static auto* const real = Real<__VA_ARGS__>("_ZNK" symbol)

namespace absl {
ABSL_NAMESPACE_BEGIN

void Mutex::Lock() {
  REAL("4absl7debian35Mutex4LockEv", void(Mutex*));
  real(this);
  __tsan_acquire(this);
}

void Mutex::Unlock() {
  REAL("4absl7debian35Mutex6UnlockEv", void(Mutex*));
  __tsan_release(this);
  real(this);
}

bool Mutex::TryLock() {
  REAL("4absl7debian35Mutex7TryLockEv", bool(Mutex*));
  const bool result = real(this);
  if (result) __tsan_acquire(this);
  return result;
}

void Mutex::LockWhen(const Condition& condition) {
  REAL("4absl7debian35Mutex8LockWhenERKNS0_9ConditionE", void(Mutex*, const Condition&));
  real(this, condition);
  __tsan_acquire(this);
}

bool Mutex::LockWhenWithTimeout(const Condition& condition, Duration timeout) {
  REAL("4absl7debian35Mutex19LockWhenWithTimeoutERKNS0_9ConditionENS0_8DurationE",
       bool(Mutex*, const Condition&, Duration));
  const bool result = real(this, condition, timeout);
  __tsan_acquire(this);
  return result;
}

bool Mutex::LockWhenWithDeadline(const Condition& condition, Time deadline) {
  REAL("4absl7debian35Mutex20LockWhenWithDeadlineERKNS0_9ConditionENS0_4TimeE",
       bool(Mutex*, const Condition&, Time));
  const bool result = real(this, condition, deadline);
  __tsan_acquire(this);
  return result;
}

void Mutex::ReaderLock() {
  REAL("4absl7debian35Mutex10ReaderLockEv", void(Mutex*));
  real(this);
  __tsan_acquire(this);
}

void Mutex::ReaderUnlock() {
  REAL("4absl7debian35Mutex12ReaderUnlockEv", void(Mutex*));
  __tsan_release(this);
  real(this);
}

bool Mutex::ReaderTryLock() {
  REAL("4absl7debian35Mutex13ReaderTryLockEv", bool(Mutex*));
  const bool result = real(this);
  if (result) __tsan_acquire(this);
  return result;
}

void Mutex::ReaderLockWhen(const Condition& condition) {
  REAL("4absl7debian35Mutex14ReaderLockWhenERKNS0_9ConditionE", void(Mutex*, const Condition&));
  real(this, condition);
  __tsan_acquire(this);
}

bool Mutex::ReaderLockWhenWithTimeout(const Condition& condition, Duration timeout) {
  REAL("4absl7debian35Mutex25ReaderLockWhenWithTimeoutERKNS0_9ConditionENS0_8DurationE",
       bool(Mutex*, const Condition&, Duration));
  const bool result = real(this, condition, timeout);
  __tsan_acquire(this);
  return result;
}

bool Mutex::ReaderLockWhenWithDeadline(const Condition& condition, Time deadline) {
  REAL("4absl7debian35Mutex26ReaderLockWhenWithDeadlineERKNS0_9ConditionENS0_4TimeE",
       bool(Mutex*, const Condition&, Time));
  const bool result = real(this, condition, deadline);
  __tsan_acquire(this);
  return result;
}

void Mutex::Await(const Condition& condition) {
  REAL("4absl7debian35Mutex5AwaitERKNS0_9ConditionE", void(Mutex*, const Condition&));
  __tsan_release(this);
  real(this, condition);
  __tsan_acquire(this);
}

bool Mutex::AwaitWithTimeout(const Condition& condition, Duration timeout) {
  REAL("4absl7debian35Mutex16AwaitWithTimeoutERKNS0_9ConditionENS0_8DurationE",
       bool(Mutex*, const Condition&, Duration));
  __tsan_release(this);
  const bool result = real(this, condition, timeout);
  __tsan_acquire(this);
  return result;
}

bool Mutex::AwaitWithDeadline(const Condition& condition, Time deadline) {
  REAL("4absl7debian35Mutex17AwaitWithDeadlineERKNS0_9ConditionENS0_4TimeE",
       bool(Mutex*, const Condition&, Time));
  __tsan_release(this);
  const bool result = real(this, condition, deadline);
  __tsan_acquire(this);
  return result;
}

bool Condition::Eval() const {
  REAL_CONST("4absl7debian39Condition4EvalEv", bool(const Condition*));
  AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
  const bool result = real(this);
  AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
  return result;
}

void CondVar::Wait(Mutex* mu) {
  REAL("4absl7debian37CondVar4WaitEPNS0_5MutexE", void(CondVar*, Mutex*));
  __tsan_release(mu);
  real(this, mu);
  __tsan_acquire(mu);
}

bool CondVar::WaitWithTimeout(Mutex* mu, Duration timeout) {
  REAL("4absl7debian37CondVar15WaitWithTimeoutEPNS0_5MutexENS0_8DurationE",
       bool(CondVar*, Mutex*, Duration));
  __tsan_release(mu);
  const bool result = real(this, mu, timeout);
  __tsan_acquire(mu);
  return result;
}

bool CondVar::WaitWithDeadline(Mutex* mu, Time deadline) {
  REAL("4absl7debian37CondVar16WaitWithDeadlineEPNS0_5MutexENS0_4TimeE",
       bool(CondVar*, Mutex*, Time));
  __tsan_release(mu);
  const bool result = real(this, mu, deadline);
  __tsan_acquire(mu);
  return result;
}

void Notification::Notify() {
  REAL("4absl7debian312Notification6NotifyEv", void(Notification*));
  __tsan_release(this);
  real(this);
}

void Notification::WaitForNotification() const {
  REAL_CONST("4absl7debian312Notification19WaitForNotificationEv", void(const Notification*));
  real(this);
  __tsan_acquire(const_cast<Notification*>(this));
}

bool Notification::WaitForNotificationWithTimeout(Duration timeout) const {
  REAL_CONST("4absl7debian312Notification30WaitForNotificationWithTimeoutENS0_8DurationE",
             bool(const Notification*, Duration));
  const bool result = real(this, timeout);
  if (result) __tsan_acquire(const_cast<Notification*>(this));
  return result;
}

bool Notification::WaitForNotificationWithDeadline(Time deadline) const {
  REAL_CONST("4absl7debian312Notification31WaitForNotificationWithDeadlineENS0_4TimeE",
             bool(const Notification*, Time));
  const bool result = real(this, deadline);
  if (result) __tsan_acquire(const_cast<Notification*>(this));
  return result;
}

bool BlockingCounter::DecrementCount() {
  REAL("4absl7debian315BlockingCounter14DecrementCountEv", bool(BlockingCounter*));
  __tsan_release(this);
  const bool result = real(this);
  return result;
}

void BlockingCounter::Wait() {
  REAL("4absl7debian315BlockingCounter4WaitEv", void(BlockingCounter*));
  real(this);
  __tsan_acquire(this);
}

ABSL_NAMESPACE_END
}  // namespace absl
