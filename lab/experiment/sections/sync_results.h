// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_LAB_EXPERIMENT_SECTIONS_SYNC_RESULTS_H_
#define TUG_LAB_EXPERIMENT_SECTIONS_SYNC_RESULTS_H_

// Cases of an experiment that differ in their sync policy and straggler, compared over the repeats.
// Functions are pure and thread-safe.
//
// Speed is in batches per second: a batch is what all virtual workers process together in one
// optimizer step. So a job step with 16 local steps is 16 batches, and one of BACKUP is a batch, of
// which a part is dropped.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lab/experiment/measures/spread.h"
#include "lab/experiment/results/experiment_results.h"
#include "proto/job.pb.h"

namespace tug {

enum class StragglerKind { kNone, kPersistent, kPauses };

// A case over its repeats. Optional members are none if the case has no such thing, or none of its
// runs has ended.
struct SyncCase {
  std::string mode;       // sync mode, as the file's axes call it: "ssp(4)", "local(16)"
  std::string straggler;  // straggler, as the file's axes call it: "persistent"
  StragglerKind kind = StragglerKind::kNone;
  const JobConfig* config = nullptr;         // as planned
  const CaseCourse* first_repeat = nullptr;  // null: unknown

  std::optional<RepeatSpread> batches;                    // per second
  std::optional<RepeatSpread> updates;                    // of the model, per second
  std::optional<RepeatSpread> waits;                      // part of all workers' time in steps, %
  std::optional<RepeatSpread> max_waits;                  // of the worker that waited most
  std::optional<RepeatSpread> staleness, most_staleness;  // if every push is an update
  // %; for a replay in which all wait for a slow worker: speed relative to what it would be if that
  // worker never waited.
  std::optional<RepeatSpread> pace;
  std::optional<RepeatSpread> seconds;  // of the job
  std::optional<RepeatSpread> loss;     // at its end

  // Speed relative to undisturbed BSP, and to the same mode undisturbed, by repeat.
  std::optional<RepeatSpread> of_bsp, of_itself;
  std::optional<RepeatSpread> loss_difference;  // minus that of undisturbed BSP
  size_t without_loss = 0;                      // runs that ended without a finite loss
  // Part of its undisturbed speed that a mode can keep with one of S workers f times as slow, if
  // exchange took no time: 1 / f if all wait for it, (S - 1 + 1 / f) / S if none does, 1 if updates
  // close without it. None: for other stragglers, and for jobs that are not replays, whose workers
  // may share cores.
  std::optional<double> bound;

  double slowdown() const { return config->straggler().slowdown(); }
  const RunFigures* figures() const;  // of the first repeat; null: unknown
};

// Cases that differ only in sync mode and straggler.
struct SyncPart {
  std::string title;
  std::string about;           // the job and the stragglers, in sentences
  bool replay = false;         // the jobs learn nothing
  uint64_t batch_samples = 0;  // 0: unknown
  std::vector<SyncCase> cases;

  // Null: no such case.
  const SyncCase* Find(const std::string& mode, const std::string& straggler) const;
  const SyncCase* Undisturbed(const std::string& mode) const;
  const SyncCase* UndisturbedBsp() const;
  // In the order of the cases.
  std::vector<std::string> Modes() const;
  std::vector<std::string> Stragglers() const;
};

// A part for every combination of the axes that set neither sync mode nor straggler. Leaves out
// cases without a completed run. REQUIRES: `results` outlives the parts.
std::vector<SyncPart> SyncPartsOf(const ExperimentResults& results);

// A row per case: cells as text; the first row has the headings.
std::vector<std::vector<std::string>> SyncTable(const SyncPart& part);
// Results compared with expectations, a sentence each.
std::vector<std::string> SyncFindings(const SyncPart& part);

}  // namespace tug

#endif  // TUG_LAB_EXPERIMENT_SECTIONS_SYNC_RESULTS_H_
