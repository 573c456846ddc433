#ifndef TUG_CHECKPOINT_CHECKPOINT_H_
#define TUG_CHECKPOINT_CHECKPOINT_H_

// Checkpoints of a job:
//
//   RUN/checkpoints/step-00000500/lane-003.safetensors   segments of one lane: weights, m, v
//                                 residual-003.safetensors
//                                                        what pushes of a virtual worker left out
//                                 manifest.textproto     proto/manifest.proto + its checksum
//
// (lane-003-timeline-2.safetensors in a later life of the job, lane-003-placement-7.safetensors
// where segments have moved while it ran: lanes write what they own then, and nothing that a lane
// of before still writes takes its place. So with residual-003-view-7.safetensors, of a virtual
// worker that has moved.)
//
// How one comes about, so that a kill, a power cut or a full disk at any instant leaves the
// previous checkpoint usable:
//   1. Every lane writes and syncs its file into step-00000500.tmp/ (WriteLanePart), and, with
//      error feedback (comm.push_codec), workers one of each virtual worker (WriteResidualPart).
//   2. The coordinator, with all parts reported, writes and syncs the manifest there, renames the
//      folder to its final name and syncs checkpoints/ (CommitCheckpoint). A folder of that name
//      that exists already changes places with it in one atomic step.
//   3. Only then older checkpoints go: each is renamed to step-N.old, loses its manifest first.
//
// A tensor in a lane's file is named "<block>/<begin>-<end>/w" (or m, v, as far as the optimizer
// keeps them): elements of the block, so a job with other segments, lanes or servers assembles what
// it needs (CheckpointReader). Where every push is an update (sync.policy SSP, ASP) a segment has
// "<block>/<begin>-<end>/clocks" too, 64-bit integers: its version, then by virtual worker the
// clock of the next push that it lacks. These are of whole segments: such a job resumes with the
// same comm.segment_elements.
//
// In a residual's file they are named "<block>/<begin>-<end>/residual": the elements of a segment
// (exchange/residuals.h), and behind them what its codec keeps beside. Whoever reads weights does
// not read these files; the manifest says which they are.
//
// All hosts of the job must see the run folder. Functions may be called from several threads and
// processes at once, with these limits: one writer per (version, lane or virtual worker, place),
// one CommitCheckpoint or DiscardUnfinished per run folder at a time.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/manifest.pb.h"

namespace tug {

// State of elements [begin, end) of a block; each span holds end - begin values, or those of m and
// v none.
struct SegmentPart {
  std::string block;
  uint64_t begin = 0;
  uint64_t end = 0;
  std::span<const float> weights;
  std::span<const float> m;
  std::span<const float> v;
  std::span<const uint64_t> clocks = {};  // see above; empty: none
};

// What the manifest says of a file, and how long writing and syncing it took.
struct PartFile {
  std::string name;  // within the checkpoint's folder
  uint64_t size_bytes = 0;
  uint64_t xxh3 = 0;
  double seconds = 0;
};

// Of a part's file what its name says beside the lane: 1 and 0 are left out.
struct PartPlace {
  uint32_t timeline = 1;
  uint32_t placement = 0;  // 0: the first of its timeline
};

// Writes and syncs a lane's file of the unfinished checkpoint of `version` (completed steps); a
// file left over from an earlier attempt is replaced. Errors, each with path, cause and remedy:
// NOT_FOUND (`run_dir` is not on this host), PERMISSION_DENIED, RESOURCE_EXHAUSTED (disk full),
// INTERNAL; the partial file is deleted.
absl::StatusOr<PartFile> WriteLanePart(const std::string& run_dir, uint64_t version,
                                       uint32_t lane_index, std::span<const SegmentPart> segments,
                                       const PartPlace& place = {});

// What a virtual worker's pushes of elements [begin, end) of a block have left out.
struct ResidualPart {
  std::string block;
  uint64_t begin = 0;
  uint64_t end = 0;
  std::span<const float> values;  // end - begin, and behind them what the codec keeps
};

// Of a residual's file what its name says beside the virtual worker.
struct ResidualPlace {
  uint32_t timeline = 1;  // 1 is left out
  uint32_t view = 0;      // that it came to its worker with; 0, left out: view 1
};

// Writes and syncs a virtual worker's file, as WriteLanePart a lane's.
absl::StatusOr<PartFile> WriteResidualPart(const std::string& run_dir, uint64_t version,
                                           uint32_t virtual_worker,
                                           std::span<const ResidualPart> parts,
                                           const ResidualPlace& place = {});

// Complete checkpoints that stay: the newest `keep` (at least 1), the best one of the run
// (best_checkpoint.h), and those of `held`.
struct Retention {
  uint32_t keep = 1;
  std::span<const uint64_t> held = {};
};

// Completes the checkpoint of manifest.version() (sets format_version itself) and returns its
// folder. Afterwards deletes what `retention` does not keep, never the one just committed, and
// unfinished ones of older versions; a failure to delete is only logged, as is a damaged RUN/best,
// which keeps everything.
// Errors: FAILED_PRECONDITION (a file of the manifest is missing or has another size), those of
// WriteLanePart.
absl::StatusOr<std::string> CommitCheckpoint(const std::string& run_dir, const Manifest& manifest,
                                             const Retention& retention);

// Deletes complete checkpoints that `retention` does not keep, and what is left of deleted ones.
// Errors: the first of the file system; ReadBest's, except NOT_FOUND: then nothing is deleted.
absl::Status TrimCheckpoints(const std::string& run_dir, const Retention& retention);

// Deletes what unfinished and half-deleted checkpoints left in the run folder. For the start of a
// job and after a checkpoint that failed: it may hold the space the next one needs. Nobody may be
// writing a checkpoint meanwhile.
absl::Status DiscardUnfinished(const std::string& run_dir);

// The folder of the complete checkpoint of `version`, whether or not there is one.
std::string CheckpointPath(const std::string& run_dir, uint64_t version);

struct FoundCheckpoint {
  std::string folder;
  Manifest manifest;  // verified against its checksum
};

// `path`: a run folder (its newest checkpoint), RUN/best (its best), or the folder of one
// checkpoint. Looks at the manifest and the sizes of the files only. Errors: NOT_FOUND; DATA_LOSS
// (a truncated or damaged file, named, and the next older complete checkpoint, if there is one).
absl::StatusOr<FoundCheckpoint> FindCheckpoint(const std::string& path);

// A verified checkpoint. Movable. Const methods are thread-safe.
class CheckpointReader {
 public:
  // Maps and verifies every file of lanes: size, XXH3, format; that no element is there twice.
  // Reads all of them once. Errors: as FindCheckpoint.
  static absl::StatusOr<CheckpointReader> Open(const std::string& folder);
  CheckpointReader(CheckpointReader&&) noexcept;
  CheckpointReader& operator=(CheckpointReader&&) noexcept;
  ~CheckpointReader();

  const Manifest& manifest() const;

  // Copies elements [begin, end) of a block into `out`, which holds as many, wherever they are.
  // `kind`: 'w' weights, 'm' or 'v' moments. Errors: NOT_FOUND (some elements are in no file).
  absl::Status ReadRange(const std::string& block, uint64_t begin, uint64_t end, char kind,
                         std::span<float> out) const;

  // Whether segments have clocks of their own.
  bool has_clocks() const;
  // Those of the segment with elements [begin, end) of a block. Errors: NOT_FOUND (no segment
  // begins and ends there).
  absl::StatusOr<std::vector<uint64_t>> ReadClocks(const std::string& block, uint64_t begin,
                                                   uint64_t end) const;

 private:
  struct State;
  explicit CheckpointReader(std::unique_ptr<State> state);

  std::unique_ptr<State> state_;
};

// What the pushes of a virtual worker had left out when the checkpoint was made. Movable. Const
// methods are thread-safe.
class ResidualReader {
 public:
  // Maps and verifies the virtual worker's file, as CheckpointReader those of lanes; none: the
  // checkpoint has none of it. Errors: as there.
  static absl::StatusOr<std::optional<ResidualReader>> Open(const std::string& folder,
                                                            uint32_t virtual_worker);
  ResidualReader(ResidualReader&&) noexcept;
  ResidualReader& operator=(ResidualReader&&) noexcept;
  ~ResidualReader();

  const Manifest& manifest() const;

  enum class Found { kNothing, kAll, kMisfit };
  // Copies what was left out of elements [begin, end) of a block into the front of `values`, and
  // behind it what the codec had kept, which is of whole segments: kMisfit if there is more or
  // less of it than `values` holds, or if it is of other segments. Then, and with kNothing,
  // `values` is unspecified. Segments of another length find their elements where nothing was kept
  // beside; what is in no file is 0. REQUIRES: `values` holds end - begin at least.
  Found Read(const std::string& block, uint64_t begin, uint64_t end, std::span<float> values) const;

 private:
  struct State;
  explicit ResidualReader(std::unique_ptr<State> state);

  std::unique_ptr<State> state_;
};

}  // namespace tug

#endif  // TUG_CHECKPOINT_CHECKPOINT_H_
