// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_CHECKPOINT_CHECKPOINT_H_
#define TUG_CHECKPOINT_CHECKPOINT_H_

// Checkpoints of a job:
//
//   RUN/checkpoints/step-00000500/lane-003.safetensors   segments of one lane: weights, m, v
//                                 residual-003.safetensors
//                                                        error-feedback residuals of a virtual
//                                                        worker
//                                 manifest.textproto     proto/manifest.proto + its checksum
//
// (A later timeline of the job writes lane-003-timeline-2.safetensors. If segments have moved
// during the timeline, lanes write what they own then, e.g. lane-003-placement-7.safetensors, so a
// file that is still being written under an earlier placement cannot replace it. Likewise
// residual-003-view-7.safetensors, for a virtual worker that has moved.)
//
// A checkpoint is made in steps, so that a kill, a power cut or a full disk at any instant leaves
// the previous checkpoint usable:
//   1. Every lane writes and syncs its file into step-00000500.tmp/ (WriteLanePart). With error
//      feedback (comm.push_codec), workers write one file per virtual worker (WriteResidualPart).
//   2. Once all parts are reported, the coordinator writes and syncs the manifest there, renames
//   the
//      folder to its final name and syncs checkpoints/ (CommitCheckpoint). An existing folder of
//      that name is exchanged with it in one atomic step.
//   3. Only then older checkpoints are deleted: each is renamed to step-N.old, and its manifest is
//      deleted first.
//
// A tensor in a lane's file is named "<block>/<begin>-<end>/w" (also m and v, if the optimizer has
// them): elements of the block, so a job with other segments, lanes or servers can assemble the
// ranges it needs (CheckpointReader). If every push is an update (sync.policy SSP, ASP) a segment
// also has "<block>/<begin>-<end>/clocks", 64-bit integers: its version, then for each virtual
// worker the clock of the first push it has not applied. Clocks belong to complete segments: such a
// job resumes with the same comm.segment_elements.
//
// In a residual file, tensors are named "<block>/<begin>-<end>/residual": the elements of a segment
// (exchange/encode/residuals.h), then the additional state of its codec. Readers of weights skip
// these files, which the manifest marks.
//
// The run folder must be visible on all hosts of the job. Functions may be called from several
// threads and processes concurrently, with these limits: one writer per (version, lane or virtual
// worker, place), one CommitCheckpoint or DiscardUnfinished per run folder at a time.

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

// State of elements [begin, end) of a block. Each span holds end - begin values; m and v may be
// empty.
struct SegmentPart {
  std::string block;
  uint64_t begin = 0;
  uint64_t end = 0;
  std::span<const float> weights;
  std::span<const float> m;
  std::span<const float> v;
  std::span<const uint64_t> clocks = {};  // see above; empty: no clocks
};

// Manifest entry of a file, and the time to write and sync it.
struct PartFile {
  std::string name;  // within the checkpoint's folder
  uint64_t size_bytes = 0;
  uint64_t xxh3 = 0;
  double seconds = 0;
};

// Parts of a lane file's name other than the lane; timeline 1 and placement 0 are omitted.
struct PartPlace {
  uint32_t timeline = 1;
  uint32_t placement = 0;  // 0: first placement of its timeline
};

// Writes and syncs a lane's file of the unfinished checkpoint of `version` (completed steps);
// replaces a file of an earlier attempt. Errors, each with path, cause and remedy: NOT_FOUND
// (`run_dir` is not visible on this host), PERMISSION_DENIED, RESOURCE_EXHAUSTED (disk full),
// INTERNAL; the partial file is deleted.
absl::StatusOr<PartFile> WriteLanePart(const std::string& run_dir, uint64_t version,
                                       uint32_t lane_index, std::span<const SegmentPart> segments,
                                       const PartPlace& place = {});

// Error-feedback residual of a virtual worker for elements [begin, end) of a block.
struct ResidualPart {
  std::string block;
  uint64_t begin = 0;
  uint64_t end = 0;
  std::span<const float> values;  // end - begin values, then the additional state of the codec
};

// Parts of a residual file's name other than the virtual worker.
struct ResidualPlace {
  uint32_t timeline = 1;  // 1 is omitted
  uint32_t view = 0;      // view that assigned it to its worker; 0, omitted: view 1
};

// Writes and syncs a virtual worker's residual file; otherwise like WriteLanePart.
absl::StatusOr<PartFile> WriteResidualPart(const std::string& run_dir, uint64_t version,
                                           uint32_t virtual_worker,
                                           std::span<const ResidualPart> parts,
                                           const ResidualPlace& place = {});

// Complete checkpoints to keep: the newest `keep` (at least 1), the best one of the run
// (best_checkpoint.h), and the versions in `held`.
struct Retention {
  uint32_t keep = 1;
  std::span<const uint64_t> held = {};
};

// Completes the checkpoint of manifest.version() (sets format_version itself) and returns its
// folder. Then deletes checkpoints that `retention` does not keep, except the one just committed,
// and unfinished ones up to this version. A failure to delete is only logged, as is a damaged
// RUN/best, which keeps everything. Errors: FAILED_PRECONDITION (a file of the manifest is missing
// or has another size), those of WriteLanePart.
absl::StatusOr<std::string> CommitCheckpoint(const std::string& run_dir, const Manifest& manifest,
                                             const Retention& retention);

// Deletes complete checkpoints that `retention` does not keep, and remains of deleted ones. Errors:
// the first of the file system; ReadBest's, except NOT_FOUND: then nothing is deleted.
absl::Status TrimCheckpoints(const std::string& run_dir, const Retention& retention);

// Deletes the remains of unfinished and partly deleted checkpoints in the run folder. Call when a
// job starts and after a failed checkpoint: they may occupy space that the next one needs.
// REQUIRES: no checkpoint is being written.
absl::Status DiscardUnfinished(const std::string& run_dir);

// Path of the folder of a complete checkpoint of `version`; it need not exist.
std::string CheckpointPath(const std::string& run_dir, uint64_t version);

struct FoundCheckpoint {
  std::string folder;
  Manifest manifest;  // verified against its checksum
};

// `path`: a run folder (its newest checkpoint), RUN/best (its best), or the folder of one
// checkpoint. Checks the manifest and the file sizes only. Errors: NOT_FOUND; DATA_LOSS (a
// truncated or damaged file; the message names it and the next older complete checkpoint, if any).
absl::StatusOr<FoundCheckpoint> FindCheckpoint(const std::string& path);

// A verified checkpoint. Movable. Const methods are thread-safe.
class CheckpointReader {
 public:
  // Maps and verifies the files of all lanes: size, XXH3, format, no duplicate elements. Reads all
  // of them once. Errors: as FindCheckpoint.
  static absl::StatusOr<CheckpointReader> Open(const std::string& folder);
  CheckpointReader(CheckpointReader&&) noexcept;
  CheckpointReader& operator=(CheckpointReader&&) noexcept;
  ~CheckpointReader();

  const Manifest& manifest() const;

  // Copies elements [begin, end) of a block into `out`, which has that size, from any files that
  // hold them. `kind`: 'w' weights, 'm' or 'v' moments. Errors: NOT_FOUND (no file has some of the
  // elements).
  absl::Status ReadRange(const std::string& block, uint64_t begin, uint64_t end, char kind,
                         std::span<float> out) const;

  // Whether segments have clocks (sync.policy SSP or ASP).
  bool has_clocks() const;
  // Clocks of the segment with elements [begin, end) of a block. Errors: NOT_FOUND (no such
  // segment).
  absl::StatusOr<std::vector<uint64_t>> ReadClocks(const std::string& block, uint64_t begin,
                                                   uint64_t end) const;

 private:
  struct State;
  explicit CheckpointReader(std::unique_ptr<State> state);

  std::unique_ptr<State> state_;
};

// Error-feedback residuals of one virtual worker in a checkpoint. Movable. Const methods are
// thread-safe.
class ResidualReader {
 public:
  // Maps and verifies the virtual worker's file; nothing if the checkpoint has none. Errors: as
  // CheckpointReader::Open.
  static absl::StatusOr<std::optional<ResidualReader>> Open(const std::string& folder,
                                                            uint32_t virtual_worker);
  ResidualReader(ResidualReader&&) noexcept;
  ResidualReader& operator=(ResidualReader&&) noexcept;
  ~ResidualReader();

  const Manifest& manifest() const;

  enum class Found { kNothing, kAll, kMisfit };
  // Copies the residual of elements [begin, end) of a block to the front of `values`, followed by
  // the codec's additional state, which belongs to complete segments. kMisfit: the file has more or
  // less of that state than `values` holds, or has it for other segments. With kMisfit and kNothing
  // `values` is unspecified. Without additional state the file may have segments of another length;
  // elements in no file are 0. REQUIRES: `values` holds at least end - begin.
  Found Read(const std::string& block, uint64_t begin, uint64_t end, std::span<float> values) const;

 private:
  struct State;
  explicit ResidualReader(std::unique_ptr<State> state);

  std::unique_ptr<State> state_;
};

}  // namespace tug

#endif  // TUG_CHECKPOINT_CHECKPOINT_H_
