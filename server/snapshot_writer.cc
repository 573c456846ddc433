#include "server/snapshot_writer.h"

#include <algorithm>
#include <utility>

#include "checkpoint/checkpoint.h"

namespace tug {
namespace {

// One more than the two that segments can lie apart, and one that is left over.
constexpr size_t kMostFilling = 4;

AlignedBuffer CopyOf(std::span<const float> values, LaneMemory& memory) {
  AlignedBuffer copy = memory.New(LaneMemory::Use::kSnapshot, values.size_bytes());
  std::copy(values.begin(), values.end(), copy.floats().begin());
  return copy;
}

// By virtual worker, the first clock that some segment lacks; empty if segments have none.
template <typename Copies>
std::vector<uint64_t> LeastClocks(const Copies& copies) {
  std::vector<uint64_t> least;
  for (const auto& copy : copies) {
    if (copy.clocks.empty()) return {};
    const std::span<const uint64_t> next = std::span(copy.clocks).subspan(1);
    if (least.empty()) least.assign(next.begin(), next.end());
    for (size_t vw = 0; vw < next.size(); ++vw) least[vw] = std::min(least[vw], next[vw]);
  }
  return least;
}

}  // namespace

SnapshotWriter::SnapshotWriter(Options options, const SegmentTable& table)
    : options_(std::move(options)),
      table_(table),
      place_(options_.place),
      thread_([this] { Loop(); }) {}

SnapshotWriter::~SnapshotWriter() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  thread_.join();
}

void SnapshotWriter::SetPlace(const Place& place) {
  filling_.clear();
  absl::MutexLock lock(&mutex_);
  place_ = place;
  full_.reset();
  parts_.Clear();
}

void SnapshotWriter::Add(const SegmentSnapshot& snapshot) {
  const absl::Time begin = time_.Now();
  Checkpoint* const checkpoint = FillingOf(snapshot.version);
  if (checkpoint == nullptr) return;
  for (const Copy& copy : checkpoint->segments) {
    if (copy.segment == snapshot.segment) return;
  }
  checkpoint->segments.push_back({snapshot.segment,
                                  snapshot.weights,
                                  CopyOf(snapshot.m, *options_.memory),
                                  CopyOf(snapshot.v, *options_.memory),
                                  {snapshot.clocks.begin(), snapshot.clocks.end()}});
  const bool whole = checkpoint->segments.size() == checkpoint->place.segments;
  if (whole) AwaitIdle();
  checkpoint->pause_seconds += absl::ToDoubleSeconds(time_.Now() - begin);
  if (!whole) return;
  absl::MutexLock lock(&mutex_);
  full_ = std::move(*checkpoint);
  // An older one can no longer become whole: all segments have passed it.
  filling_.erase(filling_.begin(), filling_.begin() + (checkpoint - filling_.data()) + 1);
}

SnapshotWriter::Checkpoint* SnapshotWriter::FillingOf(uint64_t version) {
  const auto is_older = [&](const Checkpoint& other) { return other.version < version; };
  auto place = std::find_if_not(filling_.begin(), filling_.end(), is_older);
  if (place != filling_.end() && place->version == version) return &*place;
  if (filling_.size() == kMostFilling) {
    if (place == filling_.begin()) return nullptr;
    filling_.erase(filling_.begin());
    place = std::find_if_not(filling_.begin(), filling_.end(), is_older);
  }
  AwaitIdle();
  absl::MutexLock lock(&mutex_);
  return &*filling_.insert(place, {.version = version, .place = place_});
}

void SnapshotWriter::AwaitIdle() {
  absl::MutexLock lock(&mutex_);
  // What is written of a placement before holds nobody up.
  const auto idle = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return !full_.has_value() && writing_ != place_.placement;
  };
  const absl::Condition is_idle(&idle);
  if (!options_.while_waiting) return mutex_.Await(is_idle);
  while (!mutex_.AwaitWithTimeout(is_idle, kWaitStep)) {
    mutex_.Unlock();
    options_.while_waiting();
    mutex_.Lock();
  }
}

std::vector<CheckpointPart> SnapshotWriter::parts() const {
  absl::MutexLock lock(&mutex_);
  return {parts_.parts().begin(), parts_.parts().end()};
}

void SnapshotWriter::OnHeard(const HeartbeatRequest& sent) {
  absl::MutexLock lock(&mutex_);
  for (const CheckpointPart& part : sent.parts()) {
    if (part.lane() == place_.lane_index && part.placement() == place_.placement) {
      parts_.OnHeard(part.version());
    }
  }
}

void SnapshotWriter::Loop() {
  absl::MutexLock lock(&mutex_);
  while (true) {
    const auto work = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
      return full_.has_value() || stopping_;
    };
    mutex_.Await(absl::Condition(&work));
    if (!full_.has_value()) return;
    Checkpoint checkpoint = *std::exchange(full_, std::nullopt);
    writing_ = checkpoint.place.placement;
    mutex_.Unlock();
    CheckpointPart part = Write(checkpoint);
    checkpoint = {};  // lets the weights go before the next one may come
    mutex_.Lock();
    writing_.reset();
    if (part.placement() != place_.placement) continue;
    parts_.Add(std::move(part));
  }
}

CheckpointPart SnapshotWriter::Write(Checkpoint& checkpoint) const {
  std::sort(checkpoint.segments.begin(), checkpoint.segments.end(),
            [](const Copy& a, const Copy& b) { return a.segment < b.segment; });
  std::vector<SegmentPart> segments;
  for (const Copy& copy : checkpoint.segments) {
    const Segment& segment = table_.segment(copy.segment);
    segments.push_back({options_.block_names[segment.block], segment.begin, segment.end,
                        copy.weights.floats(), copy.m.floats(), copy.v.floats(), copy.clocks});
  }
  CheckpointPart part;
  for (const uint64_t clock : LeastClocks(checkpoint.segments)) part.add_clocks(clock);
  const Place& place = checkpoint.place;
  part.set_lane(place.lane_index);
  part.set_placement(place.placement);
  part.set_version(checkpoint.version);
  part.set_pause_seconds(checkpoint.pause_seconds);
  ReportFile(
      WriteLanePart(options_.run_dir, checkpoint.version, place.lane_index, segments,
                    {.timeline = place.timeline, .placement = place.first ? 0 : place.placement}),
      part);
  return part;
}

}  // namespace tug
