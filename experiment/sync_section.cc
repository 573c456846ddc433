#include "experiment/sync_section.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace tug {
namespace {

SyncCase CaseOf(const JobConfig& config) {
  const SyncConfig& sync = config.sync();
  SyncCase mode{
      .name = "bsp", .policy = sync.policy(), .local_steps = std::max(1u, sync.local_steps())};
  switch (sync.policy()) {
    case SyncConfig::SSP:
      mode.staleness = sync.staleness();
      mode.name = absl::StrCat("ssp(", mode.staleness, ")");
      break;
    case SyncConfig::ASP:
      mode.name = "asp";
      break;
    case SyncConfig::BACKUP:
      mode.backups = sync.backups();
      mode.name = absl::StrCat("backup(", mode.backups, ")");
      break;
    default:
      if (mode.local_steps > 1) mode.name = absl::StrCat("local(", mode.local_steps, ")");
  }
  return mode;
}

StragglerKind StragglerOf(const JobConfig& config) {
  if (config.straggler().slowdown() > 1) return StragglerKind::kPersistent;
  if (config.straggler().pause_probability() > 0) return StragglerKind::kPauses;
  return StragglerKind::kNone;
}

bool IsOfSync(const PlannedAxis& axis) {
  for (const std::vector<std::string>& settings : axis.settings) {
    for (const std::string& setting : settings) {
      if (absl::StartsWith(setting, "sync.") || absl::StartsWith(setting, "straggler.")) {
        return true;
      }
    }
  }
  return false;
}

std::string TitleOf(const ExperimentPlan& plan, const PlannedCase& one) {
  std::vector<std::string> parts;
  for (size_t axis = 0; axis < plan.axes.size(); ++axis) {
    if (IsOfSync(plan.axes[axis])) continue;
    parts.push_back(
        absl::StrCat(plan.axes[axis].name, " ", plan.axes[axis].labels[one.values[axis]]));
  }
  return parts.empty() ? "Sync policies" : absl::StrJoin(parts, ", ");
}

SyncPart EmptyPart(const std::string& title, const JobConfig& config) {
  const bool replay = config.compute() == JobConfig::REPLAY;
  const uint64_t batch = replay ? uint64_t{config.replay().resolved_profile().batch()} *
                                      config.cluster().virtual_workers()
                                : config.train().global_batch();
  return {.title = title,
          .about = replay ? "A replay: workers sleep through a model's times, and exchange real "
                            "bytes. Of the first repeat."
                          : "A training. Of the first repeat.",
          .replay = replay,
          .virtual_workers = config.cluster().virtual_workers(),
          .batch_samples = std::max<uint64_t>(1, batch),
          .slow_virtual_worker = config.straggler().virtual_worker()};
}

}  // namespace

std::vector<SyncPart> SyncPartsOf(const ExperimentResults& results) {
  const ExperimentPlan& plan = results.plan;
  std::vector<SyncPart> parts;
  for (size_t i = 0; i < results.courses.size(); ++i) {
    const CaseCourse& course = results.courses[i];
    if (!course.figures.has_value()) continue;
    const std::string title = TitleOf(plan, plan.cases[i]);
    auto part = std::find_if(parts.begin(), parts.end(),
                             [&](const SyncPart& other) { return other.title == title; });
    if (part == parts.end()) part = parts.insert(parts.end(), EmptyPart(title, course.config));
    const double slowdown = course.config.straggler().slowdown();
    if (slowdown > 1) {
      part->slowdown = slowdown;
      part->slow_virtual_worker = course.config.straggler().virtual_worker();
    }
    part->runs.push_back({.mode = CaseOf(course.config),
                          .straggler = StragglerOf(course.config),
                          .warm_up = plan.cases[i].warm_up_steps,
                          .figures = *course.figures,
                          .timeline = course.timeline});
  }
  return parts;
}

}  // namespace tug
