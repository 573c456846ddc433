// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_WORKER_GRADIENTS_RESTORE_RESIDUALS_H_
#define TUG_WORKER_GRADIENTS_RESTORE_RESIDUALS_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "blocks/codec_choice.h"
#include "blocks/requests.h"
#include "blocks/segment_table.h"
#include "blocks/worker_place.h"
#include "config/sync_mode.h"

namespace tug {

class Manifest;
class View;

// Error-feedback residuals of a virtual worker, read from a checkpoint.
struct RestoredResiduals {
  std::vector<SegmentResidual> residuals;  // empty: none
  std::string notice;                      // why existing residuals were not used; else empty
};

// Indices in `place` of the virtual workers that may continue from the checkpoint with which the
// view's timeline began: not those at other clocks, where versions count clocks.
std::vector<size_t> ResidualsToRestore(const View& view, const WorkerPlace& place,
                                       const SyncMode& mode);

// Whether a checkpoint's residuals of a virtual worker are those at this clock: not if it has
// continued elsewhere since.
bool HasResidualsAt(const Manifest& manifest, uint32_t virtual_worker, uint64_t clock);

// Reads the residuals of the virtual worker that continues at `clock`: none if the checkpoint in
// `folder` has none of it or is for another clock. Discards all if one part does not fit the state
// of the job's codec. `block_names`: by block. Errors: NOT_FOUND (no checkpoint in `folder`),
// DATA_LOSS (a damaged file), those of the file system.
absl::StatusOr<RestoredResiduals> ReadResiduals(const std::string& folder,
                                                std::span<const std::string> block_names,
                                                const SegmentTable& table,
                                                const CodecChoice& codecs, uint32_t virtual_worker,
                                                uint64_t clock);

}  // namespace tug

#endif  // TUG_WORKER_GRADIENTS_RESTORE_RESIDUALS_H_
