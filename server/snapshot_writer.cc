// SPDX-License-Identifier: Apache-2.0
#include "server/snapshot_writer.h"

#include <algorithm>
#include <utility>

#include "checkpoint/checkpoint.h"

namespace tug {
namespace {

AlignedBuffer CopyOf(std::span<const float> values, LaneMemory& memory) {
  AlignedBuffer copy = memory.New(LaneMemory::Use::kSnapshot, values.size_bytes());
  std::copy(values.begin(), values.end(), copy.floats().begin());
  return copy;
}

}  // namespace

SnapshotWriter::SnapshotWriter(Options options, const SegmentTable& table)
    : options_(std::move(options)), table_(table), thread_([this] { Loop(); }) {}

SnapshotWriter::~SnapshotWriter() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  thread_.join();
}

void SnapshotWriter::SetPlace(const LanePlace& place) {
  filling_.SetPlace(place);
  absl::MutexLock lock(&mutex_);
  full_.reset();
  reports_.SetPlace(place);
}

void SnapshotWriter::Add(const SegmentSnapshot& snapshot) {
  const absl::Time begin = time_.Now();
  if (filling_.Begins(snapshot.version)) AwaitIdle();
  Checkpoint* const checkpoint = filling_.Lacking(snapshot.segment, snapshot.version);
  if (checkpoint == nullptr) return;
  checkpoint->copies.push_back({snapshot.segment,
                                snapshot.weights,
                                CopyOf(snapshot.m, *options_.memory),
                                CopyOf(snapshot.v, *options_.memory),
                                {snapshot.clocks.begin(), snapshot.clocks.end()}});
  const bool complete = filling_.IsComplete(*checkpoint);
  if (complete) AwaitIdle();
  checkpoint->pause_seconds += absl::ToDoubleSeconds(time_.Now() - begin);
  if (!complete) return;
  absl::MutexLock lock(&mutex_);
  full_ = filling_.Take(checkpoint);
}

void SnapshotWriter::AwaitIdle() {
  absl::MutexLock lock(&mutex_);
  // A write for an earlier placement does not block.
  const auto idle = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return !full_.has_value() && writing_ != reports_.place().placement;
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
  return reports_.parts();
}

void SnapshotWriter::OnHeard(const HeartbeatRequest& sent) {
  absl::MutexLock lock(&mutex_);
  reports_.OnHeard(sent);
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
    checkpoint = {};  // releases the weights before the next part may arrive
    mutex_.Lock();
    writing_.reset();
    reports_.Add(std::move(part));
  }
}

CheckpointPart SnapshotWriter::Write(Checkpoint& checkpoint) const {
  std::sort(checkpoint.copies.begin(), checkpoint.copies.end(),
            [](const Copy& a, const Copy& b) { return a.segment < b.segment; });
  std::vector<SegmentPart> segments;
  for (const Copy& copy : checkpoint.copies) {
    const Segment& segment = table_.segment(copy.segment);
    segments.push_back({options_.block_names[segment.block], segment.begin, segment.end,
                        copy.weights.floats(), copy.m.floats(), copy.v.floats(), copy.clocks});
  }
  CheckpointPart part = ReportOf(checkpoint);
  const LanePlace& place = checkpoint.place;
  ReportFile(
      WriteLanePart(options_.run_dir, checkpoint.version, place.lane_index, segments,
                    {.timeline = place.timeline, .placement = place.first ? 0 : place.placement}),
      part);
  return part;
}

}  // namespace tug
