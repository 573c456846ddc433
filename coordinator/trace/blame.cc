// SPDX-License-Identifier: Apache-2.0
#include "coordinator/trace/blame.h"

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/median.h"
#include "proto/process_name.h"

namespace tug {
namespace {

constexpr size_t kNamed = 4;  // rows named in a line

using PartKey = std::pair<PathWork, std::string>;

double Seconds(int64_t ns) { return static_cast<double>(ns) * 1e-9; }

bool IsOfWorker(const std::string& who) { return ProcessIndexOf(kWorkerRole, who).has_value(); }

std::string Percent(double part) { return absl::StrFormat("%.0f%%", 100 * part); }

// The worker with the largest share of a chain by its own work; empty: none.
std::string MostBlamed(const std::map<std::string, double>& seconds_of_worker) {
  const auto seconds = [](const auto& entry) { return entry.second; };
  const auto most = std::ranges::max_element(seconds_of_worker, {}, seconds);
  return most == seconds_of_worker.end() || most->second <= 0 ? "" : most->first;
}

struct Totals {
  std::map<PartKey, std::vector<double>> parts;  // by step, of those that have it
  std::map<PartKey, double> seconds;
  std::map<PartKey, uint64_t> largest;
  std::map<std::string, BlamedWorker> workers;
  double all_seconds = 0;
};

void AddStep(const StepPath& path, Totals& totals) {
  const double seconds = Seconds(path.end_ns - path.begin_ns);
  const std::vector<PathShare> shares = SharesOf(path);
  std::map<std::string, double> of_worker;
  for (const PathShare& share : shares) {
    const PartKey key(share.what, share.who);
    totals.seconds[key] += share.seconds;
    totals.parts[key].push_back(share.seconds / seconds);
    const bool own = share.what != PathWork::kUnexplained && share.what != PathWork::kWait;
    if (own && IsOfWorker(share.who)) of_worker[share.who] += share.seconds;
  }
  totals.all_seconds += seconds;
  if (!shares.empty()) ++totals.largest[{shares.front().what, shares.front().who}];
  for (const auto& [worker, own_seconds] : of_worker) totals.workers[worker].part += own_seconds;
  const std::string most = MostBlamed(of_worker);
  if (!most.empty()) ++totals.workers[most].steps;
}

}  // namespace

std::vector<PathShare> SharesOf(const StepPath& path) {
  std::map<PartKey, double> seconds;
  for (const PathPart& part : path.parts) {
    seconds[{part.what, part.who}] += Seconds(part.end_ns - part.begin_ns);
  }
  std::vector<PathShare> shares;
  for (const auto& [key, sum] : seconds) shares.push_back({key.first, key.second, sum});
  std::ranges::stable_sort(shares, std::greater(), &PathShare::seconds);
  return shares;
}

Blame BlameOf(const std::vector<StepPath>& paths) {
  Blame blame{.steps = paths.size()};
  if (paths.empty()) return blame;
  Totals totals;
  for (const StepPath& path : paths) AddStep(path, totals);
  blame.step_seconds = totals.all_seconds / static_cast<double>(paths.size());
  for (auto& [key, parts] : totals.parts) {
    parts.resize(paths.size());  // the other steps have none of it
    const auto [least, most] = std::minmax_element(parts.begin(), parts.end());
    const double part = totals.seconds[key] / totals.all_seconds;
    if (key.first == PathWork::kUnexplained) blame.unexplained_part += part;
    blame.rows.push_back({.what = key.first,
                          .who = key.second,
                          .part = part,
                          .median_part = Median(parts),
                          .least_part = *least,
                          .most_part = *most,
                          .steps = totals.largest[key]});
  }
  std::ranges::stable_sort(blame.rows, std::greater(), &BlameRow::part);
  for (auto& [who, worker] : totals.workers) {
    if (worker.steps == 0) continue;
    blame.workers.push_back({who, worker.part / totals.all_seconds, worker.steps});
  }
  std::ranges::stable_sort(blame.workers, std::greater(), &BlamedWorker::steps);
  return blame;
}

std::string BlameText(PathWork what, const std::string& who) {
  const char* name = kPathWorkNames[static_cast<size_t>(what)];
  if (absl::StartsWith(who, "link ")) return absl::StrCat(who, " (", name, ")");
  return absl::StrCat(who, " ", name);
}

std::vector<std::string> BlameLines(const Blame& blame) {
  if (blame.steps == 0) return {};
  std::string parts, steps, workers;
  double rest = 1;
  for (size_t i = 0; i < std::min(kNamed, blame.rows.size()); ++i) {
    const BlameRow& row = blame.rows[i];
    absl::StrAppend(&parts, i == 0 ? "" : ", ", BlameText(row.what, row.who), " ",
                    Percent(row.part));
    rest -= row.part;
  }
  if (const size_t others = blame.rows.size() - std::min(kNamed, blame.rows.size()); others > 0) {
    absl::StrAppend(&parts, ", ", others,
                    others == 1 ? " smaller part " : " smaller parts, together ", Percent(rest));
  }
  std::vector<BlameRow> largest = blame.rows;
  std::ranges::stable_sort(largest, std::greater(), &BlameRow::steps);
  for (size_t i = 0; i < std::min(kNamed, largest.size()) && largest[i].steps > 0; ++i) {
    absl::StrAppend(&steps, i == 0 ? "" : ", ", BlameText(largest[i].what, largest[i].who), " in ",
                    largest[i].steps);
  }
  for (size_t i = 0; i < std::min(kNamed, blame.workers.size()); ++i) {
    absl::StrAppend(&workers, i == 0 ? "" : ", ", blame.workers[i].who, " in ",
                    blame.workers[i].steps);
  }
  return {absl::StrFormat("critical path of %d steps, %.1f ms each: %s", blame.steps,
                          blame.step_seconds * 1e3, parts),
          absl::StrFormat("largest part of a step, in %d steps: %s", blame.steps, steps),
          absl::StrFormat("worker with the largest part, in %d steps: %s; not explained: %.1f%%",
                          blame.steps, workers.empty() ? "none" : workers,
                          100 * blame.unexplained_part)};
}

}  // namespace tug
