// SPDX-License-Identifier: Apache-2.0
#include "kernels/emulation/cuda_emulation_streams.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <random>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "base/check.h"
#include "base/standard_error.h"
#include "base/status_macros.h"
#include "base/time_source.h"
#include "kernels/emulation/cuda_emulation_capture.h"
#include "kernels/emulation/cuda_emulation_late.h"
#include "kernels/emulation/cuda_emulation_memory.h"

namespace tug::kernels::emulation {
namespace {

// How far a stream progresses beyond what is needed.
enum class Mood { kLazy, kSteady, kEager };  // not at all; at random; as far as possible

struct Item {
  Work work;            // null: only a wait
  MarkPointer awaited;  // waited for before `work`
  bool always = false;
};

struct Queue {
  int device = 0;
  Mood mood = Mood::kLazy;
  bool is_open = true;  // the stream exists
  std::deque<Item> items;
};

}  // namespace

struct Mark {
  std::shared_ptr<Queue> queue;  // null once done
  absl::Time done_at = absl::InfiniteFuture();
  bool was_asked = false;

  bool is_done() const { return done_at != absl::InfiniteFuture(); }
};

namespace {

struct Handle {
  std::shared_ptr<Queue> queue;
};

// Makes the calling thread use that device during its lifetime.
class OnDevice {
 public:
  explicit OnDevice(int device) : before_(ThisDevice()) { SetThisDevice(device); }
  ~OnDevice() { SetThisDevice(before_); }
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;

 private:
  const int before_;
};

// All devices of the process, since events connect them. Lives as long as the process.
class Machine {
 public:
  Machine();

  bool late() const { return late_; }
  void SetLate(bool late, uint64_t seed);
  void Seed(uint64_t seed);
  // Seed that reproduces the next random choices.
  uint64_t seed();
  std::shared_ptr<Queue> Open(int device);
  void Close(Queue& queue);
  absl::Status Enqueue(Queue& queue, Item item);
  absl::Status EnqueuePageable(Queue& queue, Work work);
  absl::StatusOr<MarkPointer> Record(const std::shared_ptr<Queue>& queue);
  absl::StatusOr<bool> IsDone(Mark& mark);
  absl::Time TimeOf(const Mark& mark);
  absl::Status AwaitMark(const Mark& mark);
  absl::Status AwaitQueue(Queue& queue);
  void AwaitDevice(int device);
  absl::Status Finish();

 private:
  struct Device {
    absl::Status error;
    bool was_told = false;
  };

  static bool CanRun(const Queue& queue) {
    return !queue.items.empty() &&
           (queue.items.front().awaited == nullptr || queue.items.front().awaited->is_done());
  }
  void RunFront(Queue& queue) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Executes the next piece of work that the queue's first item needs.
  void Step(Queue* queue) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Executes work beyond need, at random.
  void GoOn() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void RunUntil(Queue& queue, absl::FunctionRef<bool()> is_done)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void RunAll(absl::FunctionRef<bool(const Queue&)> of) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Push(Queue& queue, Item item) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns the device's error to a caller, and records that it was reported.
  absl::Status Tell(int device) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void SeedIfNoneIsGiven() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Random number in 0 .. n - 1.
  uint64_t Draw(uint64_t n) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Mood DrawMood() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  std::atomic<bool> late_ = false;
  absl::Mutex mutex_;
  bool draws_ ABSL_GUARDED_BY(mutex_) = true;
  bool is_seeded_ ABSL_GUARDED_BY(mutex_) = true;
  uint64_t random_ ABSL_GUARDED_BY(mutex_) = 1;
  // Queues of streams that exist or still have work.
  std::vector<std::shared_ptr<Queue>> queues_ ABSL_GUARDED_BY(mutex_);
  std::map<int, Device> devices_ ABSL_GUARDED_BY(mutex_);
};

Machine& TheMachine() {
  static auto* const machine = new Machine;
  return *machine;
}

Machine::Machine() {
  const char* const streams = std::getenv("TUG_EMULATED_STREAMS");
  if (streams == nullptr) return;
  TUG_CHECK_EQ(std::strcmp(streams, "late"), 0) << "TUG_EMULATED_STREAMS=" << streams;
  late_ = true;
  absl::MutexLock lock(&mutex_);
  is_seeded_ = false;
}

void Machine::SeedIfNoneIsGiven() {
  if (std::exchange(is_seeded_, true)) return;
  random_ = std::random_device()() % 99999 + 1;
  PrintLineToStderr(absl::StrCat("emulated streams are late with seed ", random_));
}

void Machine::SetLate(bool late, uint64_t seed) {
  Finish().IgnoreError();
  Seed(seed);
  late_ = late;
}

void Machine::Seed(uint64_t seed) {
  absl::MutexLock lock(&mutex_);
  is_seeded_ = true;
  draws_ = seed != 0;
  random_ = seed;
  for (const auto& queue : queues_) queue->mood = DrawMood();
}

uint64_t Machine::seed() {
  absl::MutexLock lock(&mutex_);
  SeedIfNoneIsGiven();
  return draws_ ? random_ : 0;
}

// SplitMix64.
uint64_t Machine::Draw(uint64_t n) {
  SeedIfNoneIsGiven();
  uint64_t z = (random_ += 0x9E3779B97F4A7C15u);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return (z ^ (z >> 31)) % n;
}

Mood Machine::DrawMood() {
  if (!draws_) return Mood::kLazy;
  const uint64_t drawn = Draw(8);
  return drawn < 5 ? Mood::kLazy : drawn < 7 ? Mood::kSteady : Mood::kEager;
}

std::shared_ptr<Queue> Machine::Open(int device) {
  absl::MutexLock lock(&mutex_);
  auto queue = std::make_shared<Queue>(Queue{.device = device, .mood = DrawMood()});
  queues_.push_back(queue);
  return queue;
}

void Machine::Close(Queue& queue) {
  absl::MutexLock lock(&mutex_);
  queue.is_open = false;
  GoOn();
}

absl::Status Machine::Tell(int device) {
  Device& of = devices_[device];
  of.was_told |= !of.error.ok();
  return of.error;
}

void Machine::RunFront(Queue& queue) {
  const Item item = std::move(queue.items.front());
  queue.items.pop_front();
  absl::Status& error = devices_[queue.device].error;
  const OnDevice device(queue.device);
  if (item.work != nullptr && (item.always || error.ok())) error.Update(item.work());
}

void Machine::Step(Queue* queue) {
  while (!CanRun(*queue)) queue = queue->items.front().awaited->queue.get();
  RunFront(*queue);
}

void Machine::GoOn() {
  std::erase_if(queues_, [](const auto& queue) { return !queue->is_open && queue->items.empty(); });
  if (!draws_ || queues_.empty()) return;
  constexpr uint64_t kCallsInAMood = 32;
  if (Draw(kCallsInAMood) == 0) queues_[Draw(queues_.size())]->mood = DrawMood();
  std::vector<Queue*> can_run;
  while (true) {
    can_run.clear();
    for (const auto& queue : queues_) {
      if (queue->mood != Mood::kLazy && CanRun(*queue)) can_run.push_back(queue.get());
    }
    if (can_run.empty()) return;
    Queue& queue = *can_run[Draw(can_run.size())];
    if (queue.mood == Mood::kSteady && Draw(2) == 0) return;
    RunFront(queue);
  }
}

void Machine::RunUntil(Queue& queue, absl::FunctionRef<bool()> is_done) {
  for (GoOn(); !is_done(); GoOn()) Step(&queue);
}

void Machine::RunAll(absl::FunctionRef<bool(const Queue&)> of) {
  std::vector<Queue*> left;
  while (true) {
    GoOn();
    left.clear();
    for (const auto& queue : queues_) {
      if (!queue->items.empty() && of(*queue)) left.push_back(queue.get());
    }
    if (left.empty()) return;
    Step(left[draws_ ? Draw(left.size()) : 0]);
  }
}

void Machine::Push(Queue& queue, Item item) {
  queue.items.push_back(std::move(item));
  GoOn();
}

absl::Status Machine::Enqueue(Queue& queue, Item item) {
  absl::MutexLock lock(&mutex_);
  const bool always = item.always;
  Push(queue, std::move(item));
  return always ? absl::OkStatus() : Tell(queue.device);
}

absl::Status Machine::EnqueuePageable(Queue& queue, Work work) {
  absl::MutexLock lock(&mutex_);
  Push(queue, {.work = std::move(work)});
  if (draws_ && Draw(2) == 0) RunUntil(queue, [&] { return queue.items.empty(); });
  return Tell(queue.device);
}

absl::StatusOr<MarkPointer> Machine::Record(const std::shared_ptr<Queue>& queue) {
  absl::MutexLock lock(&mutex_);
  auto mark = std::make_shared<Mark>(Mark{.queue = queue});
  Push(*queue, {.work =
                    [mark] {
                      mark->done_at = SteadyNow();
                      mark->queue = nullptr;
                      return absl::OkStatus();
                    },
                .always = true});
  const absl::Status error = Tell(queue->device);
  if (!error.ok()) return error;
  return mark;
}

// With the latest possible order, a mark is done at the second call.
absl::StatusOr<bool> Machine::IsDone(Mark& mark) {
  absl::MutexLock lock(&mutex_);
  const std::shared_ptr<Queue> queue = mark.queue;
  if (queue == nullptr) return true;
  GoOn();
  const bool goes_on = draws_ ? Draw(2) == 0 : mark.was_asked;
  mark.was_asked = true;
  if (goes_on && !mark.is_done()) Step(queue.get());
  const absl::Status error = Tell(queue->device);
  if (!error.ok()) return error;
  return mark.is_done();
}

absl::Time Machine::TimeOf(const Mark& mark) {
  absl::MutexLock lock(&mutex_);
  return mark.done_at;
}

absl::Status Machine::AwaitMark(const Mark& mark) {
  absl::MutexLock lock(&mutex_);
  const std::shared_ptr<Queue> queue = mark.queue;
  if (queue == nullptr) return absl::OkStatus();
  RunUntil(*queue, [&] { return mark.is_done(); });
  return Tell(queue->device);
}

absl::Status Machine::AwaitQueue(Queue& queue) {
  absl::MutexLock lock(&mutex_);
  RunUntil(queue, [&] { return queue.items.empty(); });
  return Tell(queue.device);
}

void Machine::AwaitDevice(int device) {
  absl::MutexLock lock(&mutex_);
  RunAll([&](const Queue& queue) { return queue.device == device; });
}

absl::Status Machine::Finish() {
  absl::MutexLock lock(&mutex_);
  RunAll([](const Queue&) { return true; });
  absl::Status untold;
  for (const auto& [number, device] : devices_) {
    if (!device.was_told) untold.Update(device.error);
  }
  devices_.clear();
  return untold;
}

const std::shared_ptr<Queue>& QueueOf(void* stream) { return static_cast<Handle*>(stream)->queue; }

}  // namespace

void* NewStream(int device) { return new Handle{TheMachine().Open(device)}; }

void DestroyStream(void* stream) {
  TheMachine().Close(*QueueOf(stream));
  delete static_cast<Handle*>(stream);
}

absl::Status Enqueue(void* stream, Work work) {
  if (KeepWork(stream, work)) return absl::OkStatus();
  if (!TheMachine().late()) return work();
  return TheMachine().Enqueue(*QueueOf(stream), {.work = std::move(work)});
}

void EnqueueAlways(void* stream, std::function<void()> work) {
  if (!TheMachine().late()) return work();
  const Item item = {.work =
                         [work = std::move(work)] {
                           work();
                           return absl::OkStatus();
                         },
                     .always = true};
  TheMachine().Enqueue(*QueueOf(stream), item).IgnoreError();
}

absl::Status EnqueuePageable(void* stream, Work work) {
  RETURN_IF_ERROR(CheckNotCapturing("a copy of memory that is not pinned"));
  if (!TheMachine().late()) return work();
  return TheMachine().EnqueuePageable(*QueueOf(stream), std::move(work));
}

absl::StatusOr<MarkPointer> RecordMark(void* stream) {
  RETURN_IF_ERROR(CheckNotCapturing("recording an event"));
  if (!TheMachine().late()) return std::make_shared<Mark>(Mark{.done_at = SteadyNow()});
  return TheMachine().Record(QueueOf(stream));
}

absl::Status WaitForMark(void* stream, MarkPointer mark) {
  RETURN_IF_ERROR(CheckNotCapturing("a wait for an event"));
  if (mark == nullptr || !TheMachine().late()) return absl::OkStatus();
  return TheMachine().Enqueue(*QueueOf(stream), {.awaited = std::move(mark)});
}

absl::StatusOr<bool> IsDone(const MarkPointer& mark) {
  RETURN_IF_ERROR(CheckNotCapturing("a query of an event"));
  return mark == nullptr ? true : TheMachine().IsDone(*mark);
}

absl::Time TimeOf(const MarkPointer& mark) {
  return mark == nullptr ? absl::InfinitePast() : TheMachine().TimeOf(*mark);
}

absl::Status AwaitMark(const MarkPointer& mark) {
  RETURN_IF_ERROR(CheckNotCapturing("the host's wait for an event"));
  return mark == nullptr ? absl::OkStatus() : TheMachine().AwaitMark(*mark);
}
absl::Status AwaitStream(void* stream) {
  RETURN_IF_ERROR(CheckNotCapturing("the host's wait for a stream"));
  return TheMachine().AwaitQueue(*QueueOf(stream));
}
void AwaitDevice(int device) { TheMachine().AwaitDevice(device); }

bool StreamsAreLate() { return TheMachine().late(); }
void SeedStreams(uint64_t seed) { TheMachine().Seed(seed); }
absl::Status FinishStreams() { return TheMachine().Finish(); }

LateStreams::LateStreams(uint64_t seed) : were_late_(StreamsAreLate()), seed_(TheMachine().seed()) {
  TheMachine().SetLate(true, seed);
}
LateStreams::~LateStreams() { TheMachine().SetLate(were_late_, seed_); }

}  // namespace tug::kernels::emulation
