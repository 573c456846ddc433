#ifndef TUG_EXPERIMENT_SYNC_RESULTS_H_
#define TUG_EXPERIMENT_SYNC_RESULTS_H_

// Cases of an experiment that differ in their sync policy and in who is slow, compared over the
// repeats. Functions are pure and thread-safe.
//
// Speed is in batches a second: a batch is what all virtual workers take together in one optimizer
// step. So a job step with 16 local steps is 16 batches, and one of BACKUP is a batch, a part of
// which was taken for nothing.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "experiment/experiment_results.h"
#include "experiment/spread.h"
#include "proto/job.pb.h"

namespace tug {

enum class StragglerKind { kNone, kPersistent, kPauses };

// A case, over its repeats. What is optional is none where the case has no such thing, or none of
// its runs has ended.
struct SyncCase {
  std::string mode;       // who waits for whom, as the file's axes call it: "ssp(4)", "local(16)"
  std::string straggler;  // who is slow, in the same way: "persistent"
  StragglerKind kind = StragglerKind::kNone;
  const JobConfig* config = nullptr;         // as planned
  const CaseCourse* first_repeat = nullptr;  // null: it is not known

  std::optional<RepeatSpread> batches;                    // a second
  std::optional<RepeatSpread> updates;                    // of the model, a second
  std::optional<RepeatSpread> waits;                      // part of all workers' time in steps, %
  std::optional<RepeatSpread> most_waits;                 // of the worker that waited most
  std::optional<RepeatSpread> staleness, most_staleness;  // where every push is an update
  // %; of a replay in which all wait for a slow worker: speed as a part of what it would be if that
  // worker never waited.
  std::optional<RepeatSpread> pace;
  std::optional<RepeatSpread> seconds;  // of the job
  std::optional<RepeatSpread> loss;     // at its end

  // Speed as a multiple of undisturbed bsp's, and of the same mode's undisturbed, repeat by repeat.
  std::optional<RepeatSpread> of_bsp, of_itself;
  std::optional<RepeatSpread> loss_difference;  // with undisturbed bsp's
  size_t without_loss = 0;                      // runs that have ended without a finite one
  // What a mode can keep of its undisturbed speed beside a worker that is f times as slow, one of
  // S, if exchange took no time: 1 / f where all wait for it, (S - 1 + 1 / f) / S where nobody
  // does, 1 where updates close without it. None: for other stragglers, and where nothing is
  // replayed, so that workers may share cores.
  std::optional<double> bound;

  double slowdown() const { return config->straggler().slowdown(); }
  const RunFigures* figures() const;  // of the first repeat; null: not known
};

// Cases that have all in common but who waits for whom and who is slow.
struct SyncPart {
  std::string title;
  std::string about;           // what is run, and who is slow: sentences
  bool replay = false;         // nothing is learned
  uint64_t batch_samples = 0;  // 0: not known
  std::vector<SyncCase> cases;

  // Null: there is none.
  const SyncCase* Find(const std::string& mode, const std::string& straggler) const;
  const SyncCase* Undisturbed(const std::string& mode) const;
  const SyncCase* UndisturbedBsp() const;
  // In the order of the cases.
  std::vector<std::string> Modes() const;
  std::vector<std::string> Stragglers() const;
};

// A part for every combination of the axes that set neither who waits for whom nor who is slow.
// Cases without a run that has ended are left out. `results` live as long.
std::vector<SyncPart> SyncPartsOf(const ExperimentResults& results);

// A line for each case: cells as text; the first line has the headings.
std::vector<std::vector<std::string>> SyncTable(const SyncPart& part);
// What the figures come to beside what could be expected, a sentence each.
std::vector<std::string> SyncFindings(const SyncPart& part);

}  // namespace tug

#endif  // TUG_EXPERIMENT_SYNC_RESULTS_H_
