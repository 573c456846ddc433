#ifndef TUG_WORKER_RESTORE_RESIDUALS_H_
#define TUG_WORKER_RESTORE_RESIDUALS_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "exchange/codec_choice.h"
#include "exchange/requests.h"
#include "exchange/segment_table.h"
#include "exchange/worker_place.h"
#include "proto/sync_mode.h"

namespace tug {

class Manifest;
class View;

// What a virtual worker's pushes had left out when a checkpoint was made.
struct RestoredResiduals {
  std::vector<SegmentResidual> residuals;  // empty: nothing
  std::string notice;                      // why it goes on without what there was; else empty
};

// Of the virtual workers of `place`, the indices of those that may go on from the checkpoint that
// the view's timeline began with: not those that have made later clocks, as far as the clock tells.
std::vector<size_t> ResidualsToRestore(const View& view, const WorkerPlace& place,
                                       const SyncMode& mode);

// Whether the residuals that a checkpoint has of a virtual worker are those at this clock: not if
// it went on elsewhere since.
bool HasResidualsAt(const Manifest& manifest, uint32_t virtual_worker, uint64_t clock);

// Of the virtual worker that goes on at `clock`: nothing if the checkpoint in `folder` has nothing
// of it, or is of another clock of it. All of it is given up where a part does not fit what the
// job's codec keeps. `block_names`: by block. Errors: NOT_FOUND (there is no checkpoint in
// `folder`), DATA_LOSS (a damaged file), those of the file system.
absl::StatusOr<RestoredResiduals> ReadResiduals(const std::string& folder,
                                                std::span<const std::string> block_names,
                                                const SegmentTable& table,
                                                const CodecChoice& codecs, uint32_t virtual_worker,
                                                uint64_t clock);

}  // namespace tug

#endif  // TUG_WORKER_RESTORE_RESIDUALS_H_
