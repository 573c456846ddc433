// SPDX-License-Identifier: Apache-2.0
#include "base/cpu/thread_pool.h"

#include <atomic>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "base/check.h"
#include "base/cpu/cpu_affinity.h"

namespace tug {

// A round is one ParallelFor. The caller opens it and closes it once every task has started.
// Threads join only an open round, so the caller waits for the threads that joined, never for one
// that has not woken up yet.
struct ThreadPool::State {
  // Constant after construction.
  std::vector<std::thread> helpers;

  absl::Mutex mutex;
  bool stop ABSL_GUARDED_BY(mutex) = false;
  bool open ABSL_GUARDED_BY(mutex) = false;
  int64_t round ABSL_GUARDED_BY(mutex) = 0;
  int joined ABSL_GUARDED_BY(mutex) = 0;

  // Written by the caller before it opens a round, read by the threads that join it.
  const std::function<void(int64_t)>* task = nullptr;
  int64_t n = 0;
  std::atomic<int64_t> next{0};

  void RunTasks() {
    for (int64_t i = next.fetch_add(1, std::memory_order_relaxed); i < n;
         i = next.fetch_add(1, std::memory_order_relaxed)) {
      (*task)(i);
    }
  }

  void Help() {
    int64_t done_round = 0;
    for (;;) {
      {
        absl::MutexLock lock(&mutex);
        const auto has_work = [this, &done_round]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
          return stop || (open && round != done_round);
        };
        mutex.Await(absl::Condition(&has_work));
        if (stop) return;
        done_round = round;
        ++joined;
      }
      RunTasks();
      absl::MutexLock lock(&mutex);
      --joined;
    }
  }
};

ThreadPool::ThreadPool(int threads, const std::vector<CoreList>& cores)
    : state_(std::make_unique<State>()) {
  TUG_CHECK_GE(threads, 1);
  State* state = state_.get();
  for (size_t i = 1; i < static_cast<size_t>(threads); ++i) {
    const CoreList stay_on = i < cores.size() ? cores[i] : CoreList();
    state->helpers.emplace_back([state, stay_on] {
      StayOn(stay_on);
      state->Help();
    });
  }
}

ThreadPool::~ThreadPool() {
  {
    absl::MutexLock lock(&state_->mutex);
    state_->stop = true;
  }
  for (std::thread& helper : state_->helpers) helper.join();
}

int ThreadPool::threads() const { return static_cast<int>(state_->helpers.size()) + 1; }

void ThreadPool::ParallelFor(int64_t n, const std::function<void(int64_t)>& task) {
  if (n <= 1 || state_->helpers.empty()) {
    for (int64_t i = 0; i < n; ++i) task(i);
    return;
  }
  State& state = *state_;
  {
    absl::MutexLock lock(&state.mutex);
    TUG_CHECK(!state.open) << "ParallelFor called inside ParallelFor, or from two threads";
    state.task = &task;
    state.n = n;
    state.next.store(0, std::memory_order_relaxed);
    ++state.round;
    state.open = true;
  }
  state.RunTasks();
  absl::MutexLock lock(&state.mutex);
  state.open = false;
  const auto all_left = [&state]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(state.mutex) {
    return state.joined == 0;
  };
  state.mutex.Await(absl::Condition(&all_left));
}

}  // namespace tug
