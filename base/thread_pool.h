#ifndef TUG_BASE_THREAD_POOL_H_
#define TUG_BASE_THREAD_POOL_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "base/cpu_budget.h"

namespace tug {

// Fork-join over a fixed set of threads, for kernels. The caller works too, so ThreadPool(1) starts
// no thread and runs everything inline. One ParallelFor at a time: not thread-safe, owned by one
// compute thread.
class ThreadPool {
 public:
  // cores[i]: where thread i stays, for i >= 1 (thread 0 is the caller, who sees to itself); empty
  // lists, and threads beyond the end, run anywhere. REQUIRES: threads >= 1.
  explicit ThreadPool(int threads, const std::vector<CoreList>& cores = {});
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const;

  // Runs task(0) ... task(n - 1), each once, in any order, and returns when all are done. What a
  // task computes must not depend on the thread it runs on: kernels cut work into tasks by shape
  // only, so results never depend on `threads`.
  void ParallelFor(int64_t n, const std::function<void(int64_t)>& task);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tug

#endif  // TUG_BASE_THREAD_POOL_H_
