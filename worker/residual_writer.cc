#include "worker/residual_writer.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "checkpoint/checkpoint.h"

namespace tug {
namespace {

CheckpointPart PartOf(const ResidualWriter::Copy& copy) {
  CheckpointPart part;
  part.set_virtual_worker(copy.virtual_worker);
  part.set_version(copy.version);
  part.set_pause_seconds(absl::ToDoubleSeconds(copy.pause));
  return part;
}

}  // namespace

ResidualWriter::ResidualWriter(Options options, const SegmentTable& table)
    : options_(std::move(options)), table_(table), thread_([this] { Loop(); }) {}

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
      "this worker does not see the job's run folder ", run_dir,
      ", where checkpoints have what its pushes leave out: share the folder with workers too, or "
      "set comm.push_codec.error_feedback=false"));
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

void ResidualWriter::Forget(uint32_t virtual_worker, uint64_t clock) {
  absl::MutexLock lock(&mutex_);
  uint64_t& newest = newest_kept_.try_emplace(virtual_worker, clock).first->second;
  newest = std::min(newest, clock);
  const auto parts = parts_.find(virtual_worker);
  if (parts != parts_.end()) parts->second.EraseAfter(newest);
}

void ResidualWriter::Expect(uint32_t virtual_worker) {
  absl::MutexLock lock(&mutex_);
  newest_kept_.erase(virtual_worker);
}

void ResidualWriter::Add(Copy copy) {
  absl::MutexLock lock(&mutex_);
  if (copy.residuals.empty()) return Keep(PartOf(copy));
  if (stopping_) return;
  TUG_CHECK(!next_.has_value());
  next_ = std::move(copy);
}

ResidualWriter::Report ResidualWriter::report() const {
  absl::MutexLock lock(&mutex_);
  Report report{.writing = next_.has_value() || writing_};
  for (const auto& [virtual_worker, reports] : parts_) {
    report.parts.insert(report.parts.end(), reports.parts().begin(), reports.parts().end());
  }
  return report;
}

void ResidualWriter::OnHeard(const HeartbeatRequest& sent) {
  absl::MutexLock lock(&mutex_);
  for (const CheckpointPart& part : sent.parts()) {
    const auto reports = parts_.find(part.virtual_worker());
    if (reports != parts_.end()) reports->second.OnHeard(part.version());
  }
}

void ResidualWriter::Keep(CheckpointPart part) {
  const auto newest = newest_kept_.find(part.virtual_worker());
  if (newest != newest_kept_.end() && part.version() > newest->second) return;
  PartReports& reports = parts_[part.virtual_worker()];
  reports.Add(std::move(part));
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
    copy = {};  // before the next one may come
    mutex_.Lock();
    writing_ = false;
    Keep(std::move(part));
  }
}

CheckpointPart ResidualWriter::Write(const Copy& copy) const {
  std::vector<ResidualPart> parts;
  for (const SegmentResidual& residual : copy.residuals) {
    const Segment& segment = table_.segment(residual.segment);
    parts.push_back({options_.block_names[segment.block], segment.begin, segment.end,
                     residual.values.floats()});
  }
  CheckpointPart part = PartOf(copy);
  ReportFile(WriteResidualPart(options_.run_dir, copy.version, copy.virtual_worker, parts,
                               {.timeline = options_.timeline, .view = copy.view}),
             part);
  return part;
}

}  // namespace tug
