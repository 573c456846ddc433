#include "checkpoint/part_report.h"

#include <string>

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

}  // namespace tug
