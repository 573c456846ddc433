// SPDX-License-Identifier: Apache-2.0
#include "kernels/emulation/cuda_emulation_scheduler.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <numeric>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "kernels/emulation/cuda_emulation_memory.h"
#include "kernels/emulation/cuda_fiber.h"

namespace tug::kernels::emulation {
namespace {

constexpr uint32_t kWarp = 32;
constexpr uint32_t kMaxThreads = 1024;                 // per block
constexpr size_t kMaxSharedBytes = size_t{163} << 10;  // per block, on sm_80
constexpr size_t kSharedGuardBytes = 256;  // behind shared memory, to detect writes beyond its end
constexpr int kCopyBytes = 16;             // per cp.async

enum class State { kCanRun, kAtBarrier, kInWarpOperation, kReturned };

// A cp.async that is not yet done.
struct Copy {
  void* to;
  const void* from;
  size_t bytes;
};

struct Thread {
  std::unique_ptr<Fiber> fiber;
  uint32_t number = 0;
  Index3 index = {};
  State state = State::kCanRun;
  // The operation it waits for:
  std::source_location where;
  const WarpOperation* operation = nullptr;
  uint32_t mask = 0;
  void* mine = nullptr;
  std::vector<Copy> begun;               // not yet in a group
  std::deque<std::vector<Copy>> groups;  // oldest first
};

// Thrown to leave a thread's stack with its objects destroyed.
struct Failed {};

std::string Place(const std::source_location& where) {
  return absl::StrCat(where.file_name(), ":", where.line());
}

bool SamePlace(const std::source_location& a, const std::source_location& b) {
  return a.line() == b.line() && std::strcmp(a.file_name(), b.file_name()) == 0;
}

// Runs the blocks of one OS thread. Keeps its fibers for the next grid.
class Scheduler {
 public:
  absl::Status Run(const GridShape& shape, const std::function<void()>& body,
                   void (*begin_thread)(const Index3&, const Index3&));
  void SyncThreads(const std::source_location& where);
  void RunWarpOperation(uint32_t mask, const WarpOperation& operation, void* mine,
                        const std::source_location& where);
  void* SharedBytes(size_t bytes);
  bool IsShared(const void* p, size_t bytes) const;
  void BeginCopy(void* shared, const void* device, int bytes);
  void CommitCopies();
  void WaitForCopies(size_t still_going);
  [[noreturn]] void Fail(const std::string& message);
  uint32_t lane() const { return running_->number % kWarp; }
  void set_seed(uint64_t seed) { random_ = seed; }

 private:
  static void Main(void* thread);
  void BeginBlock(const Index3& block_shape);
  void RunBlock();
  void LetRun(Thread& thread) {
    thread.state = State::kCanRun;
    can_run_.push_back(&thread);
  }
  // Suspends the running thread until LetRun.
  void Wait();
  std::string WhatAllWaitFor() const;
  uint64_t Random();

  uint64_t random_ = 1;
  Fiber self_;
  std::vector<std::unique_ptr<Thread>> threads_;  // as many as the largest block so far had
  // State of the grid.
  const std::function<void()>* body_ = nullptr;
  void (*begin_thread_)(const Index3&, const Index3&) = nullptr;
  size_t shared_bytes_ = 0;
  std::unique_ptr<std::byte[], decltype(&std::free)> shared_{nullptr, &std::free};
  // State of the block.
  Index3 block_ = {};
  uint32_t size_ = 0;
  std::vector<Thread*> can_run_;
  Thread* running_ = nullptr;
  uint32_t at_barrier_ = 0;
  std::source_location barrier_;  // location of the first thread at it
  std::string failure_;
};

Scheduler& ThisThreads() {
  thread_local Scheduler scheduler;
  return scheduler;
}

// SplitMix64.
uint64_t Scheduler::Random() {
  uint64_t z = (random_ += 0x9E3779B97F4A7C15u);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

void Scheduler::Main(void* thread) {
  auto& self = *static_cast<Thread*>(thread);
  Scheduler& scheduler = ThisThreads();
  while (true) {
    try {
      (*scheduler.body_)();
    } catch (const Failed&) {
    }
    self.state = State::kReturned;
    scheduler.Wait();
  }
}

void Scheduler::Wait() { running_->fiber->SwitchTo(self_); }

void Scheduler::Fail(const std::string& message) {
  failure_ =
      absl::StrFormat("thread (%u, %u, %u) of block (%u, %u, %u): %s", running_->index.x,
                      running_->index.y, running_->index.z, block_.x, block_.y, block_.z, message);
  throw Failed();
}

void Scheduler::SyncThreads(const std::source_location& where) {
  if (at_barrier_ == 0) {
    barrier_ = where;
  } else if (!SamePlace(where, barrier_)) {
    Fail(absl::StrCat("__syncthreads at ", Place(where), " while other threads wait in that at ",
                      Place(barrier_)));
  }
  running_->state = State::kAtBarrier;
  running_->where = where;
  if (++at_barrier_ == size_) {
    at_barrier_ = 0;
    for (uint32_t i = 0; i < size_; ++i) LetRun(*threads_[i]);
  }
  Wait();
}

void Scheduler::RunWarpOperation(uint32_t mask, const WarpOperation& operation, void* mine,
                                 const std::source_location& where) {
  if ((mask >> lane() & 1) == 0) {
    Fail(absl::StrFormat("%s at %s: the mask %#x lacks the calling lane %u", operation.name,
                         Place(where), mask, lane()));
  }
  running_->state = State::kInWarpOperation;
  running_->where = where;
  running_->operation = &operation;
  running_->mask = mask;
  running_->mine = mine;
  const uint32_t first = running_->number / kWarp * kWarp;
  bool all = true;
  void* lanes[kWarp] = {};
  for (uint32_t lane = 0; lane < kWarp && all; ++lane) {
    if ((mask >> lane & 1) == 0) continue;
    const Thread* const other = first + lane < size_ ? threads_[first + lane].get() : nullptr;
    all = other != nullptr && other->state == State::kInWarpOperation && other->mask == mask &&
          other->operation == &operation;
    if (all) lanes[lane] = other->mine;
  }
  if (all) {
    operation.combine(lanes, mask);
    for (uint32_t lane = 0; lane < kWarp; ++lane) {
      if ((mask >> lane & 1) != 0) LetRun(*threads_[first + lane]);
    }
  }
  Wait();
}

void* Scheduler::SharedBytes(size_t bytes) {
  if (bytes > shared_bytes_) {
    Fail(absl::StrFormat("uses %u bytes of shared memory, launched with %u", bytes, shared_bytes_));
  }
  return shared_.get();
}

bool Scheduler::IsShared(const void* p, size_t bytes) const {
  const size_t offset = reinterpret_cast<uintptr_t>(p) - reinterpret_cast<uintptr_t>(shared_.get());
  return offset <= shared_bytes_ && bytes <= shared_bytes_ - offset;
}

void Scheduler::BeginCopy(void* shared, const void* device, int bytes) {
  if (bytes < 0 || bytes > kCopyBytes || !IsShared(shared, kCopyBytes) ||
      reinterpret_cast<uintptr_t>(shared) % kCopyBytes != 0 ||
      (bytes > 0 && !IsDeviceRange(device, static_cast<size_t>(bytes))) ||
      reinterpret_cast<uintptr_t>(device) % kCopyBytes != 0) {
    Fail("cp.async: not from a 16-byte boundary of device memory to one of shared memory");
  }
  running_->begun.push_back({shared, device, static_cast<size_t>(bytes)});
}

void Scheduler::CommitCopies() {
  running_->groups.push_back(std::move(running_->begun));
  running_->begun.clear();
}

void Scheduler::WaitForCopies(size_t still_going) {
  auto& groups = running_->groups;
  for (; groups.size() > still_going; groups.pop_front()) {
    for (const Copy& copy : groups.front()) {
      std::memset(copy.to, 0, kCopyBytes);
      if (copy.bytes > 0) std::memcpy(copy.to, copy.from, copy.bytes);
    }
  }
}

// E.g. "block (0, 0, 0) of 32 threads is stuck:", then a line per kind of wait.
std::string Scheduler::WhatAllWaitFor() const {
  std::map<std::string, std::vector<const Thread*>> waiting;
  for (uint32_t i = 0; i < size_; ++i) {
    const Thread& thread = *threads_[i];
    std::string what = "returned";
    if (thread.state == State::kAtBarrier) {
      what = absl::StrCat("in __syncthreads at ", Place(thread.where));
    } else if (thread.state == State::kInWarpOperation) {
      what = absl::StrFormat("in %s at %s with the mask %#x", thread.operation->name,
                             Place(thread.where), thread.mask);
    }
    waiting[what].push_back(&thread);
  }
  std::string text = absl::StrFormat("block (%u, %u, %u) of %u threads is stuck:", block_.x,
                                     block_.y, block_.z, size_);
  for (const auto& [what, threads] : waiting) {
    const Index3& first = threads.front()->index;
    absl::StrAppendFormat(&text, "\n  %u of them, the first (%u, %u, %u): %s", threads.size(),
                          first.x, first.y, first.z, what);
  }
  return text;
}

void Scheduler::BeginBlock(const Index3& shape) {
  size_ = shape.x * shape.y * shape.z;
  at_barrier_ = 0;
  can_run_.clear();
  while (threads_.size() < size_) {
    auto thread = std::make_unique<Thread>();
    thread->fiber = std::make_unique<Fiber>(&Scheduler::Main, thread.get());
    threads_.push_back(std::move(thread));
  }
  for (uint32_t i = 0; i < size_; ++i) {
    threads_[i]->number = i;
    threads_[i]->index = {i % shape.x, i / shape.x % shape.y, i / (shape.x * shape.y)};
    threads_[i]->begun.clear();
    threads_[i]->groups.clear();
    LetRun(*threads_[i]);
  }
  std::memset(shared_.get(), kUnwritten, shared_bytes_ + kSharedGuardBytes);
}

void Scheduler::RunBlock() {
  while (!can_run_.empty() && failure_.empty()) {
    std::swap(can_run_[Random() % can_run_.size()], can_run_.back());
    running_ = can_run_.back();
    can_run_.pop_back();
    begin_thread_(running_->index, block_);
    self_.SwitchTo(*running_->fiber);
  }
  if (!failure_.empty()) return;
  const auto returned = [](const auto& thread) { return thread->state == State::kReturned; };
  if (!std::all_of(threads_.begin(), threads_.begin() + size_, returned)) {
    failure_ = WhatAllWaitFor();
    return;
  }
  const std::byte* const guard = shared_.get() + shared_bytes_;
  if (!std::all_of(guard, guard + kSharedGuardBytes,
                   [](std::byte b) { return b == std::byte{kUnwritten}; })) {
    failure_ = absl::StrFormat("block (%u, %u, %u) wrote beyond the %u bytes of its shared memory",
                               block_.x, block_.y, block_.z, shared_bytes_);
  }
}

absl::Status Scheduler::Run(const GridShape& shape, const std::function<void()>& body,
                            void (*begin_thread)(const Index3&, const Index3&)) {
  RETURN_IF_ERROR(CheckGrid(shape));
  body_ = &body;
  begin_thread_ = begin_thread;
  shared_bytes_ = shape.shared_bytes;
  const size_t allocated = (shared_bytes_ + kSharedGuardBytes + 127) / 128 * 128;
  shared_.reset(static_cast<std::byte*>(std::aligned_alloc(128, allocated)));
  std::vector<uint64_t> order(uint64_t{shape.grid.x} * shape.grid.y * shape.grid.z);
  std::iota(order.begin(), order.end(), uint64_t{0});
  for (uint64_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[Random() % i]);
  failure_.clear();
  for (const uint64_t i : order) {
    block_ = {static_cast<uint32_t>(i % shape.grid.x),
              static_cast<uint32_t>(i / shape.grid.x % shape.grid.y),
              static_cast<uint32_t>(i / shape.grid.x / shape.grid.y)};
    BeginBlock(shape.block);
    RunBlock();
    if (failure_.empty()) continue;
    for (const auto& thread : threads_) thread->fiber->Restart();
    return absl::InternalError(failure_);
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckGrid(const GridShape& shape) {
  const uint64_t size = uint64_t{shape.block.x} * shape.block.y * shape.block.z;
  const uint64_t blocks = uint64_t{shape.grid.x} * shape.grid.y * shape.grid.z;
  if (size == 0 || size > kMaxThreads || shape.block.z > 64 || blocks == 0 ||
      shape.grid.x > 0x7FFFFFFF || shape.grid.y > 0xFFFF || shape.grid.z > 0xFFFF ||
      shape.shared_bytes > kMaxSharedBytes) {
    return absl::InvalidArgumentError(
        absl::StrFormat("no GPU supports a grid of (%u, %u, %u) blocks of (%u, %u, %u) threads "
                        "with %u bytes of shared memory",
                        shape.grid.x, shape.grid.y, shape.grid.z, shape.block.x, shape.block.y,
                        shape.block.z, shape.shared_bytes));
  }
  return absl::OkStatus();
}

void SetSeed(uint64_t seed) { ThisThreads().set_seed(seed); }

absl::Status RunGrid(const GridShape& shape, const std::function<void()>& thread,
                     void (*begin_thread)(const Index3& thread, const Index3& block)) {
  const DeviceAccess access;
  return ThisThreads().Run(shape, thread, begin_thread);
}

void SyncThreads(const std::source_location& where) { ThisThreads().SyncThreads(where); }

void RunWarpOperation(uint32_t mask, const WarpOperation& operation, void* mine,
                      const std::source_location& where) {
  ThisThreads().RunWarpOperation(mask, operation, mine, where);
}

uint32_t Lane() { return ThisThreads().lane(); }
void* SharedBytes(size_t bytes) { return ThisThreads().SharedBytes(bytes); }
bool IsShared(const void* p, size_t bytes) { return ThisThreads().IsShared(p, bytes); }
void BeginCopy(void* shared, const void* device, int bytes) {
  ThisThreads().BeginCopy(shared, device, bytes);
}
void CommitCopies() { ThisThreads().CommitCopies(); }
void WaitForCopies(size_t still_going) { ThisThreads().WaitForCopies(still_going); }
void Fail(const std::string& message) { ThisThreads().Fail(message); }

}  // namespace tug::kernels::emulation
