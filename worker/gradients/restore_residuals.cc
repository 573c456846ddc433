// SPDX-License-Identifier: Apache-2.0
#include "worker/gradients/restore_residuals.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "checkpoint/checkpoint.h"
#include "proto/control.pb.h"

namespace tug {

std::vector<size_t> ResidualsToRestore(const View& view, const WorkerPlace& place,
                                       const SyncMode& mode) {
  std::vector<size_t> restored;
  if (view.restore_path().empty()) return restored;
  const uint64_t start = view.start_version();
  for (size_t i = 0; i < place.virtual_workers.size(); ++i) {
    if (mode.VersionAt(place.start_clocks[i]).value_or(start) == start) restored.push_back(i);
  }
  return restored;
}

bool HasResidualsAt(const Manifest& manifest, uint32_t virtual_worker, uint64_t clock) {
  const auto& clocks = manifest.clocks();
  const auto index = static_cast<int>(virtual_worker);
  return clock == (index < clocks.size() ? clocks.at(index) : manifest.version());
}

absl::StatusOr<RestoredResiduals> ReadResiduals(const std::string& folder,
                                                std::span<const std::string> block_names,
                                                const SegmentTable& table,
                                                const CodecChoice& codecs, uint32_t virtual_worker,
                                                uint64_t clock) {
  RestoredResiduals restored;
  ASSIGN_OR_RETURN(const std::optional<ResidualReader> reader,
                   ResidualReader::Open(folder, virtual_worker));
  if (!reader.has_value()) return restored;
  if (!HasResidualsAt(reader->manifest(), virtual_worker, clock)) return restored;
  for (uint32_t id = 0; id < table.size(); ++id) {
    const Segment& segment = table.segment(id);
    const SegmentCodec* const codec = codecs.AfterWarmup(segment);
    if (codec == nullptr) continue;
    const size_t floats = segment.elements() + codec->StateFloats(segment.elements());
    AlignedBuffer values(floats * sizeof(float));
    switch (reader->Read(block_names[segment.block], segment.begin, segment.end, values.floats())) {
      case ResidualReader::Found::kNothing:
        break;
      case ResidualReader::Found::kAll:
        restored.residuals.push_back({id, std::move(values)});
        break;
      case ResidualReader::Found::kMisfit:
        restored.residuals.clear();
        restored.notice =
            absl::StrCat("virtual worker ", virtual_worker,
                         " continues without its error-feedback residuals: ", folder,
                         " was written with a different comm.push_codec or comm.segment_elements");
        return restored;
    }
  }
  return restored;
}

}  // namespace tug
