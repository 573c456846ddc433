// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_BASE_CPU_THREAD_POOL_H_
#define TUG_BASE_CPU_THREAD_POOL_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "base/cpu/cpu_budget.h"

namespace tug {

// Fork-join over a fixed set of threads, for kernels. The caller also works, so ThreadPool(1)
// starts no thread and runs everything inline. Not thread-safe: owned by one compute thread, one
// ParallelFor at a time.
class ThreadPool {
 public:
  // cores[i]: cores of thread i, for i >= 1 (thread 0 is the caller, which pins itself); an empty
  // or missing list means any core. REQUIRES: threads >= 1.
  explicit ThreadPool(int threads, const std::vector<CoreList>& cores = {});
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const;

  // Runs task(0) ... task(n - 1), each once, in any order, and returns when all are done. A task's
  // result must not depend on its thread: kernels split work into tasks by shape only, so results
  // never depend on `threads`.
  void ParallelFor(int64_t n, const std::function<void(int64_t)>& task);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tug

#endif  // TUG_BASE_CPU_THREAD_POOL_H_
