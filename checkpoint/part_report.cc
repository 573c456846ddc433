// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/part_report.h"

#include <algorithm>
#include <string>
#include <utility>

namespace tug {

void ReportFile(const absl::StatusOr<PartFile>& file, CheckpointPart& part) {
  if (!file.ok()) {
    part.set_error(std::string(file.status().message()));
    return;
  }
  part.set_file(file->name);
  part.set_size_bytes(file->size_bytes);
  part.set_xxh3(file->xxh3);
  part.set_write_seconds(file->seconds);
}

void PartReports::Add(CheckpointPart part) {
  parts_.push_back(std::move(part));
  Trim();
}

void PartReports::OnHeard(uint64_t version) {
  while (heard_ < parts_.size() && parts_[heard_].version() <= version) ++heard_;
  Trim();
}

void PartReports::EraseAfter(uint64_t version) {
  while (!parts_.empty() && parts_.back().version() > version) parts_.pop_back();
  heard_ = std::min(heard_, parts_.size());
}

void PartReports::Clear() {
  parts_.clear();
  heard_ = 0;
}

void PartReports::Trim() {
  while (parts_.size() > kMost || (heard_ > 0 && parts_.size() > kRepeated)) {
    parts_.pop_front();
    if (heard_ > 0) --heard_;
  }
}

}  // namespace tug
