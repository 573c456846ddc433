// SPDX-License-Identifier: Apache-2.0
#include "coordinator/observe/step_columns.h"

#include <functional>
#include <type_traits>

namespace tug {
namespace {

using enum StepColumn::Omitted;
using Row = StepRow;
using Step = StepMetrics;

// Reads a field, or calls a method, of the row or of its metrics.
template <auto kMember>
std::variant<double, uint64_t> Get(const StepRow& row) {
  if constexpr (std::is_invocable_v<decltype(kMember), const StepRow&>) {
    return std::invoke(kMember, row);
  } else {
    return std::invoke(kMember, row.metrics);
  }
}

constexpr StepColumn kColumns[] = {
    {"at_seconds", 3, true, "", kNever, "since the coordinator began", Get<&Row::at_seconds>},
    {"loss", 4, true, "train/loss", kInReplays, "mean over targets", Get<&Step::loss>},
    {"learning_rate", 5, false, "train/learning_rate", kInReplays, "by the schedule",
     Get<&Row::learning_rate>},
    {"tokens", 6, true, "", kNever, "without padding; in a replay, samples", Get<&Step::tokens>},
    {"seconds", 7, true, "speed/step_seconds", kNever,
     "of the slowest worker; under SSP and ASP, mean over reports", Get<&Step::seconds>},
    {"tokens_per_second", 8, true, "speed/tokens_per_second", kNever, "`tokens` / `seconds`",
     Get<&Step::tokens_per_second>},
    {"wait_seconds", 10, true, "speed/wait_seconds", kNever, "of the worker that waited longest",
     Get<&Step::wait_seconds>},
    {"pushed_bytes", 17, true, "bytes/pushed", kNever, "sum over workers",
     Get<&Step::pushed_bytes>},
    {"pulled_bytes", 18, true, "bytes/pulled", kNever, "sum over workers",
     Get<&Step::pulled_bytes>},
    {"compute_seconds", 9, true, "speed/compute_seconds", kNever,
     "forward and backward; of the worker that computed longest", Get<&Step::compute_seconds>},
    {"communication_seconds", 11, true, "", kNever,
     "with a push or pull open; of the worker with most", Get<&Step::communication_seconds>},
    {"overlap", 12, true, "speed/overlap", kNever,
     "fraction of communication hidden by computation; of the worker that hid least",
     Get<&Step::overlap>},
    {"mean_seconds", 13, true, "", kNever, "step time, mean over workers",
     Get<&Step::mean_seconds>},
    {"mean_wait_seconds", 14, true, "", kNever, "mean over workers", Get<&Step::mean_wait_seconds>},
    {"straggle_seconds", 15, true, "", kUnlessPositive,
     "artificial delay (`straggler`); of the worker with most", Get<&Step::straggle_seconds>},
    {"skipped", 16, true, "", kUnlessPositive,
     "virtual workers that skipped the step because they were behind (BACKUP)",
     Get<&Step::skipped>},
    {"staleness", 19, false, "sync/staleness", kNever,
     "mean over the updates that servers counted between their two newest reports",
     Get<&Row::staleness>},
    {"residual_norm", 20, false, "norm/residual", kUnlessPositive,
     "with error feedback: norm of a worker's residual, root mean square over virtual workers",
     Get<&Step::residual_norm>},
};

}  // namespace

std::span<const StepColumn> StepColumns() { return kColumns; }

}  // namespace tug
