// SPDX-License-Identifier: Apache-2.0
#include "worker/gradients/residual_writer.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "checkpoint/checkpoint.h"

namespace tug {
ResidualWriter::ResidualWriter(Options options, const SegmentTable& table)
    : options_(std::move(options)),
      table_(table),
      parts_(options_.mode),
      thread_([this] { Loop(); }) {}

ResidualWriter::~ResidualWriter() {
  Cancel();
  thread_.join();
}

absl::Status ResidualWriter::CheckRunFolder(const std::string& run_dir) {
  std::error_code error;
  if (std::filesystem::exists(absl::StrCat(run_dir, "/config.textproto"), error)) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(absl::StrCat(
      "this worker cannot access the run folder ", run_dir,
      ", where it writes its error-feedback residuals at checkpoints: share the folder with the "
      "hosts of workers too, or set comm.push_codec.error_feedback=false"));
}

bool ResidualWriter::AwaitIdle() {
  absl::MutexLock lock(&mutex_);
  const auto idle = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return stopping_ || (!next_.has_value() && !writing_);
  };
  mutex_.Await(absl::Condition(&idle));
  return !stopping_;
}

void ResidualWriter::Cancel() {
  absl::MutexLock lock(&mutex_);
  stopping_ = true;
}

void ResidualWriter::OnView(const View& view, uint32_t node_id) {
  absl::MutexLock lock(&mutex_);
  parts_.OnView(view, node_id);
}

void ResidualWriter::Add(Copy copy) {
  absl::MutexLock lock(&mutex_);
  parts_.AddOlder(copy.order);
  if (copy.residuals.empty()) return parts_.Add(NewestPart(copy.order, copy.pause));
  if (stopping_) return;
  TUG_CHECK(!next_.has_value());
  next_ = std::move(copy);
}

void ResidualWriter::AddTo(HeartbeatRequest& beat) const {
  absl::MutexLock lock(&mutex_);
  parts_.AddTo(beat);
  if (!next_.has_value() && !writing_) return;
  beat.set_pausing(false);
  beat.set_finished(false);
}

void ResidualWriter::OnHeard(const HeartbeatRequest& sent) {
  absl::MutexLock lock(&mutex_);
  parts_.OnHeard(sent);
}

void ResidualWriter::Loop() {
  absl::MutexLock lock(&mutex_);
  while (true) {
    const auto work = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
      return next_.has_value() || stopping_;
    };
    mutex_.Await(absl::Condition(&work));
    if (stopping_) return;
    Copy copy = *std::exchange(next_, std::nullopt);
    writing_ = true;
    mutex_.Unlock();
    CheckpointPart part = Write(copy);
    copy = {};  // freed before the next copy may arrive
    mutex_.Lock();
    writing_ = false;
    parts_.Add(std::move(part));
  }
}

CheckpointPart ResidualWriter::Write(const Copy& copy) const {
  std::vector<ResidualPart> parts;
  for (const SegmentResidual& residual : copy.residuals) {
    const Segment& segment = table_.segment(residual.segment);
    parts.push_back({options_.block_names[segment.block], segment.begin, segment.end,
                     residual.values.floats()});
  }
  CheckpointPart part = NewestPart(copy.order, copy.pause);
  ReportFile(
      WriteResidualPart(options_.run_dir, copy.order.versions.back(), copy.order.virtual_worker,
                        parts, {.timeline = options_.timeline, .view = copy.order.view}),
      part);
  return part;
}

}  // namespace tug
