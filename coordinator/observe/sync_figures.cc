// SPDX-License-Identifier: Apache-2.0
#include "coordinator/observe/sync_figures.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "config/sync_mode.h"
#include "coordinator/observe/progress_line.h"

namespace tug {

double SyncFigures::MeanStaleness() const {
  double sum = 0, count = 0;
  for (size_t t = 0; t < staleness.size(); ++t) {
    sum += static_cast<double>(t) * static_cast<double>(staleness[t]);
    count += static_cast<double>(staleness[t]);
  }
  return count == 0 ? 0 : sum / count;
}

uint64_t SyncFigures::MostStaleness() const {
  size_t most = staleness.size();
  while (most > 0 && staleness[most - 1] == 0) --most;
  return most == 0 ? 0 : most - 1;
}

SyncFigures SyncFiguresOf(const StatusReply& status) {
  SyncFigures figures;
  for (const NodeStatus& node : status.nodes()) {
    const NodeCounters& counters = node.counters();
    figures.updates += counters.updates();
    figures.dropped_pushes += counters.dropped_pushes();
    const auto entries = static_cast<size_t>(counters.staleness_size());
    if (entries > figures.staleness.size()) figures.staleness.resize(entries);
    for (size_t t = 0; t < entries; ++t) {
      figures.staleness[t] += counters.staleness(static_cast<int>(t));
    }
  }
  return figures;
}

std::string SyncText(const SyncConfig& config, const SyncFigures& figures) {
  const SyncMode& mode = SyncModeOf(config.policy());
  const bool is_stale = StalenessBound(config).has_value();
  if (!is_stale && !mode.skips_steps) return "";
  std::string text = absl::StrCat("sync: ", SyncName(config), ": ", WithThousands(figures.updates),
                                  " segment updates");
  if (is_stale) {
    const bool exact = figures.MostStaleness() < SyncFigures::kMaxCounted;
    absl::StrAppendFormat(&text, ", staleness: mean %s%.2f, maximum %d%s", exact ? "" : "at least ",
                          figures.MeanStaleness(), figures.MostStaleness(),
                          exact ? "" : " or more");
  }
  if (mode.skips_steps) {
    absl::StrAppend(&text, ", ", WithThousands(figures.dropped_pushes), " late pushes dropped");
  }
  return text;
}

}  // namespace tug
