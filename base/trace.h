#ifndef TUG_BASE_TRACE_H_
#define TUG_BASE_TRACE_H_

// What a process did in some steps of a job, span by span, for a timeline of all of them
// (coordinator/trace_file.h). Whoever can be traced holds a pointer to a TraceTrack, null unless
// the job is traced: then a hook costs one branch.
//
// A track is what does one thing at a time: the compute thread, the exchange of a worker (whichever
// thread drives it), a lane. It has a buffer of a fixed size, filled once, front to back: recording
// never blocks or allocates, and what no longer fits is counted. Others read what has been recorded
// while more is.

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "base/time_source.h"

namespace tug {

// The numbers travel (proto/control.proto): append only.
enum class TraceKind : uint8_t {
  // Compute thread.
  kStep = 0,  // from the end of the step before, waits at the gate left out, to its own
  kForward = 1,
  kBackward = 2,
  kEvaluate = 3,
  kWait = 4,  // for weights: exposed communication
  // Exchange. kQueue, kPush and kPull are open side by side; the others are work, one at a time.
  kQueue = 5,   // a partition waits for its turn and for credit
  kEncode = 6,  // of what is pushed, where it is not sent as it lies
  kPush = 7,    // from sending to the first answer that returns its credit
  kPull = 8,    // from asking to arrival; the lane may be waiting for pushes meanwhile
  kDecode = 9,  // of what was pulled: copied, widened, or left where it is
  // Lane.
  kSum = 10,        // a push into the sums of its segments, runs decoded
  kOptimizer = 11,  // one segment
  kServe = 12,      // an answer to a pull: encoded and handed to the transport
};
inline constexpr size_t kTraceKinds = static_cast<size_t>(TraceKind::kServe) + 1;
inline constexpr std::array<const char*, kTraceKinds> kTraceKindNames = {
    "step", "forward", "backward", "evaluate", "wait",      "queue", "encode",
    "push", "pull",    "decode",   "sum",      "optimizer", "serve"};

// What has no meaning for a kind is 0.
struct TraceEvent {
  TraceKind kind = TraceKind::kStep;
  uint32_t block = 0;
  uint32_t first_segment = 0;  // within the block
  uint32_t segment_count = 0;
  uint32_t virtual_worker = 0;
  // The other side: lane number of a push or pull; node id of the worker of a sum, and of the
  // worker that an answer goes to, or the server whose lane has pulled for its host.
  uint32_t peer = 0;
  // 0-based step. Of a pull, and its answer, the step that makes the version: a push and the pull
  // of what came of it have the same clock.
  uint64_t clock = 0;
  uint64_t bytes = 0;    // of the payload
  int64_t begin_ns = 0;  // since the Unix epoch, by the process's TimeSource
  int64_t end_ns = 0;

  friend bool operator==(const TraceEvent&, const TraceEvent&) = default;
};

// Clocks from `first` up to, not including, `end` are recorded.
struct TraceRange {
  uint64_t first = 0;
  uint64_t end = 0;

  bool Has(uint64_t clock) const { return clock >= first && clock < end; }
};

// One thread records at a time (the caller orders them, as by a mutex); any thread reads.
class TraceTrack {
 public:
  // REQUIRES: `time` outlives the track.
  TraceTrack(std::string name, TraceRange range, size_t capacity, const TimeSource& time)
      : name_(std::move(name)),
        range_(range),
        capacity_(capacity),
        time_(time),
        events_(std::make_unique_for_overwrite<TraceEvent[]>(capacity)) {}
  TraceTrack(const TraceTrack&) = delete;
  TraceTrack& operator=(const TraceTrack&) = delete;

  const std::string& name() const { return name_; }
  bool Wants(uint64_t clock) const { return range_.Has(clock); }
  int64_t NowNs() const { return absl::ToUnixNanos(time_.Now()); }

  // Records it, if its clock is wanted.
  void Add(const TraceEvent& event) {
    if (!Wants(event.clock)) return;
    const size_t size = size_.load(std::memory_order_relaxed);
    if (size == capacity_) {
      dropped_.store(dropped_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
      return;
    }
    events_[size] = event;
    size_.store(size + 1, std::memory_order_release);
  }

  // In the order they ended. Stays valid, and the same, while more are recorded.
  std::span<const TraceEvent> events() const {
    return {events_.get(), size_.load(std::memory_order_acquire)};
  }
  uint64_t dropped() const { return dropped_.load(std::memory_order_relaxed); }

 private:
  const std::string name_;
  const TraceRange range_;
  const size_t capacity_;
  const TimeSource& time_;
  const std::unique_ptr<TraceEvent[]> events_;  // memory that is not used is not touched
  std::atomic<size_t> size_ = 0;
  std::atomic<uint64_t> dropped_ = 0;
};

// The tracks of a process. Thread-safe.
class Trace {
 public:
  // 3.5 MiB of memory, where all of it is used.
  static constexpr size_t kEventsPerTrack = size_t{1} << 16;

  // REQUIRES: `time` outlives the trace.
  Trace(TraceRange range, const TimeSource& time) : range_(range), time_(time) {}

  int64_t NowNs() const { return absl::ToUnixNanos(time_.Now()); }

  // Lives as long as the trace.
  TraceTrack* AddTrack(std::string name) {
    absl::MutexLock lock(&mutex_);
    return &tracks_.emplace_back(std::move(name), range_, kEventsPerTrack, time_);
  }
  // In the order they were added.
  size_t track_count() const {
    absl::MutexLock lock(&mutex_);
    return tracks_.size();
  }
  const TraceTrack& track(size_t index) const {
    absl::MutexLock lock(&mutex_);
    return tracks_[index];
  }

 private:
  const TraceRange range_;
  const TimeSource& time_;
  mutable absl::Mutex mutex_;
  std::deque<TraceTrack> tracks_ ABSL_GUARDED_BY(mutex_);  // a deque: they stay where they are
};

// Records the time of its life.
//
//   const TraceSpan span(trace, {.kind = TraceKind::kForward, .block = b, .clock = c});
class TraceSpan {
 public:
  // `track` may be null.
  TraceSpan(TraceTrack* track, const TraceEvent& event) : track_(track) {
    if (track_ == nullptr) return;
    event_ = event;
    event_.begin_ns = track_->NowNs();
  }
  ~TraceSpan() { End(); }
  TraceSpan(const TraceSpan&) = delete;
  TraceSpan& operator=(const TraceSpan&) = delete;

  void set_bytes(uint64_t bytes) { event_.bytes = bytes; }

  // Before its life ends.
  void End() {
    if (track_ == nullptr) return;
    event_.end_ns = track_->NowNs();
    track_->Add(event_);
    track_ = nullptr;
  }

 private:
  TraceTrack* track_;
  TraceEvent event_;
};

}  // namespace tug

#endif  // TUG_BASE_TRACE_H_
