// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_BASE_TRACE_H_
#define TUG_BASE_TRACE_H_

// Records what a process does in some steps of a job as spans, for a timeline of all processes
// (coordinator/trace/trace_file.h). Traceable code holds a pointer to a TraceTrack, null unless the
// job is traced: a hook then costs one branch.
//
// A track belongs to an activity that does one thing at a time: the compute thread, the exchange of
// a worker (on whichever thread drives it), a lane. Its fixed-size buffer is filled once, front to
// back: recording never blocks or allocates, and events that do not fit are counted. Other threads
// may read recorded events while recording continues.

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

// The values are sent over the wire (proto/control.proto): append only.
enum class TraceKind : uint8_t {
  // Compute thread.
  kStep = 0,  // from the end of the previous step to its own end, without waits at the gate
  kForward = 1,
  kBackward = 2,
  kEvaluate = 3,
  kWait = 4,  // for weights: exposed communication
  // Exchange. kQueue, kPush and kPull may overlap; the others are work, one at a time.
  kQueue = 5,   // a partition waits for its turn and for credit
  kEncode = 6,  // of a push that is not sent in place
  kPush = 7,    // from sending to the first reply that returns its credit
  kPull = 8,    // from request to arrival; the lane may be waiting for pushes meanwhile
  kDecode = 9,  // of a pull: copied, widened, or left in place
  // Lane.
  kSum = 10,        // a push into the sums of its segments, encoded ranges decoded
  kOptimizer = 11,  // one segment
  kServe = 12,      // a reply to a pull: encoded and passed to the transport
};
inline constexpr size_t kTraceKinds = static_cast<size_t>(TraceKind::kServe) + 1;
inline constexpr std::array<const char*, kTraceKinds> kTraceKindNames = {
    "step", "forward", "backward", "evaluate", "wait",      "queue", "encode",
    "push", "pull",    "decode",   "sum",      "optimizer", "serve"};

// Fields without meaning for a kind are 0.
struct TraceEvent {
  TraceKind kind = TraceKind::kStep;
  uint32_t block = 0;
  uint32_t first_segment = 0;  // within the block
  uint32_t segment_count = 0;
  uint32_t virtual_worker = 0;
  // The other side: lane number of a push or pull; node id of the worker of a sum; node id of the
  // worker that receives a reply, or of the server whose lane pulled for its host.
  uint32_t peer = 0;
  // 0-based step. For a pull and its reply, the step that makes the version: a push and the pull of
  // its result have the same clock.
  uint64_t clock = 0;
  uint64_t bytes = 0;    // of the payload
  int64_t begin_ns = 0;  // since the Unix epoch, by the process's TimeSource
  int64_t end_ns = 0;

  friend bool operator==(const TraceEvent&, const TraceEvent&) = default;
};

// Records clocks from `first` up to, not including, `end`.
struct TraceRange {
  uint64_t first = 0;
  uint64_t end = 0;

  bool Has(uint64_t clock) const { return clock >= first && clock < end; }
};

// One thread records at a time (the caller serializes them, e.g. by a mutex); any thread reads.
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

  // Records the event if its clock is in the range.
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

  // Events in the order they ended. Stays valid and unchanged while more are recorded.
  std::span<const TraceEvent> events() const {
    return {events_.get(), size_.load(std::memory_order_acquire)};
  }
  uint64_t dropped() const { return dropped_.load(std::memory_order_relaxed); }

 private:
  const std::string name_;
  const TraceRange range_;
  const size_t capacity_;
  const TimeSource& time_;
  const std::unique_ptr<TraceEvent[]> events_;  // unused pages are never touched
  std::atomic<size_t> size_ = 0;
  std::atomic<uint64_t> dropped_ = 0;
};

// The tracks of a process. Thread-safe.
class Trace {
 public:
  // 3.5 MiB per track if full.
  static constexpr size_t kEventsPerTrack = size_t{1} << 16;

  // REQUIRES: `time` outlives the trace.
  Trace(TraceRange range, const TimeSource& time) : range_(range), time_(time) {}

  int64_t NowNs() const { return absl::ToUnixNanos(time_.Now()); }

  // The track lives as long as the trace.
  TraceTrack* AddTrack(std::string name) {
    absl::MutexLock lock(&mutex_);
    return &tracks_.emplace_back(std::move(name), range_, kEventsPerTrack, time_);
  }
  // track(index) is in the order of AddTrack.
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
  std::deque<TraceTrack> tracks_ ABSL_GUARDED_BY(mutex_);  // a deque: addresses are stable
};

// Records its lifetime as an event.
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

  // Ends the span before the destructor.
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
