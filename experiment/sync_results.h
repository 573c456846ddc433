#ifndef TUG_EXPERIMENT_SYNC_RESULTS_H_
#define TUG_EXPERIMENT_SYNC_RESULTS_H_

// What `tug experiment sync` found out, apart from how it is drawn (sync_report.h). Functions are
// pure and thread-safe.
//
// Speed is in batches a second: a batch is `batch_samples`, what all virtual workers take together
// in one optimizer step. So a job step of local(16) is 16 batches, and one of backup(1) is a batch,
// a part of which was taken for nothing.

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "experiment/run_figures.h"
#include "experiment/worker_timeline.h"
#include "nlohmann/json.hpp"
#include "proto/job.pb.h"

namespace tug {

// Who waits for whom, and what is exchanged how often, as the experiment names it.
struct SyncCase {
  std::string name;  // "ssp(4)", "local(16)"
  SyncConfig::Policy policy = SyncConfig::BSP;
  uint32_t staleness = 0;    // of SSP
  uint32_t backups = 0;      // of BACKUP
  uint32_t local_steps = 1;  // of local(H), under BSP

  friend bool operator==(const SyncCase&, const SyncCase&) = default;
};

// "bsp", "ssp(4)", "asp", "backup(1)", "local(16)"; the number also as ":4", which shells leave
// alone. Errors: INVALID_ARGUMENT, naming what is known.
absl::StatusOr<SyncCase> ParseSyncCase(const std::string& text);

enum class StragglerKind { kNone, kPersistent, kPauses };
// "none", "persistent", "pauses".
const char* NameOf(StragglerKind straggler);
absl::StatusOr<StragglerKind> ParseStraggler(const std::string& text);

struct SyncRun {
  SyncCase mode;
  StragglerKind straggler = StragglerKind::kNone;
  uint64_t warm_up = 0;  // job steps that are no part of its speed
  RunFigures figures;
  std::vector<WorkerTimeline> timeline;  // may be empty

  double BatchesPerSecond() const;
  // Of the model: job steps, or pushes where each is an update.
  double UpdatesPerSecond(uint32_t virtual_workers) const;
  // Part of all workers' time in steps that was spent waiting for weights.
  double WaitShare() const;
  double WaitShareOfMost() const;  // of the worker that waited most
};

// One job under every mode and straggler.
struct SyncPart {
  std::string title;
  std::string about;    // what it is, a sentence
  bool replay = false;  // nothing is learned
  uint32_t virtual_workers = 1;
  uint64_t batch_samples = 1;
  uint32_t slow_virtual_worker = 0;
  double slowdown = 1;  // of the persistent straggler
  std::vector<SyncRun> runs;

  const SyncRun* Find(const SyncCase& mode, StragglerKind straggler) const;
  const SyncRun* FindBsp(StragglerKind straggler) const;
  // Speed as a multiple of undisturbed bsp's; of the same mode's undisturbed. None: not run.
  std::optional<double> OfBsp(const SyncRun& run) const;
  std::optional<double> OfItself(const SyncRun& run) const;
  // What a mode can keep of its undisturbed speed beside a persistent straggler, if exchange took
  // no time, f times slower and one of S: 1 / f where all wait for it, (S - 1 + 1 / f) / S where
  // nobody does, 1 where updates close without it. None: for other stragglers, and where nothing is
  // replayed, so that workers may share cores.
  std::optional<double> Bound(const SyncRun& run) const;
  // Speed as a part of the straggler's own, at which it would run if it never waited. None: as
  // Bound.
  std::optional<double> OfStragglersPace(const SyncRun& run) const;
  // Samples that went into updates by the end of a job step.
  double SamplesAt(const SyncRun& run, uint64_t step) const;
};

struct SyncResults {
  std::string command;  // as it was called
  std::vector<std::pair<std::string, std::string>> settings;
  std::vector<SyncPart> parts;
};

// A line for each run: cells as text; the first line has the headings.
std::vector<std::vector<std::string>> ResultsTable(const SyncPart& part);
// What the figures come to beside what could be expected, a sentence each.
std::vector<std::string> Findings(const SyncPart& part);
// Titles, tables and findings of all parts, as Markdown.
std::string ResultsMarkdown(const SyncResults& results);
// All figures, also of each step; no timelines.
nlohmann::ordered_json ResultsJson(const SyncResults& results);

}  // namespace tug

#endif  // TUG_EXPERIMENT_SYNC_RESULTS_H_
