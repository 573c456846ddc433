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

namespace tug {

class Manifest;
class View;

// What a virtual worker's pushes had left out when a checkpoint was made.
struct RestoredResiduals {
  std::vector<SegmentResidual> residuals;  // empty: nothing
  std::string notice;                      // why it goes on without what there was; else empty
};

// The virtual workers of a place, by index, that may go on with the residuals of the checkpoint
// that the view's timeline begins with. Where pushes are summed, a virtual worker whose start clock
// is not that of the checkpoint went on elsewhere meanwhile.
std::vector<size_t> ResidualsToRestore(const View& view, const WorkerPlace& place,
                                       bool update_per_push);
// Whether the residuals that a checkpoint has of a virtual worker are those at this clock.
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
