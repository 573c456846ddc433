// SPDX-License-Identifier: Apache-2.0
#include "lab/recorded/recorded_run.h"

#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace tug {
namespace {

constexpr uint64_t kNotThere = kAnyVersion - 1;

using StepKey = std::pair<uint32_t, uint64_t>;  // virtual worker, clock

absl::Status CheckRecord(const OrderRecord& record) {
  if ((record.flags & OrderRecord::kInexact) == 0) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "version ", record.version, " of segment ", record.segment,
      " used weights of several versions that were not recorded, so the run cannot be recomputed"));
}

}  // namespace

size_t RecordedRun::update_count() const {
  size_t count = 0;
  for (const auto& of_segment : updates) count += of_segment.size();
  return count;
}

absl::StatusOr<RecordedRun> AssembleRun(std::span<const OrderLog> logs) {
  RecordedRun run;
  std::map<StepKey, size_t> number;
  for (const OrderLog& log : logs) {
    if (!log.complete) {
      return absl::FailedPreconditionError(
          absl::StrCat("the log of lane ", log.header.lane,
                       " has no end: the run was killed or is still running; only a run that ended "
                       "normally can be verified"));
    }
    if (log.header.start_version > 0) {
      return absl::FailedPreconditionError(
          absl::StrCat("the run continued from the checkpoint of step ", log.header.start_version,
                       ", which was written during steps of its virtual workers: only a run from "
                       "its first step on can be recomputed"));
    }
    run.virtual_workers = log.header.virtual_workers;
    run.updates.resize(log.header.segments);
    for (const OrderRecord& record : log.records) {
      RETURN_IF_ERROR(CheckRecord(record));
      number.emplace(StepKey{record.virtual_worker, record.clock}, 0);
    }
  }
  for (auto& [key, index] : number) {
    index = run.steps.size();
    run.steps.push_back(
        {key.first, key.second, std::vector<uint64_t>(run.updates.size(), kNotThere)});
  }
  for (const OrderLog& log : logs) {
    for (const OrderRecord& record : log.records) {
      std::vector<RecordedUpdate>& updates = run.updates[record.segment];
      const size_t step = number[{record.virtual_worker, record.clock}];
      uint64_t& weights_version = run.steps[step].weights_version[record.segment];
      if (record.version != updates.size() + 1 || weights_version != kNotThere ||
          record.weights_version >= record.version) {
        return absl::DataLossError(absl::StrCat("the log of lane ", log.header.lane, ": version ",
                                                record.version, " of segment ", record.segment,
                                                " does not follow the versions before it"));
      }
      const bool untouched = (record.flags & OrderRecord::kUntouched) != 0;
      weights_version = untouched ? kAnyVersion : record.weights_version;
      updates.push_back({step, record.weights_version, record.flags});
    }
  }
  for (const RecordedStep& step : run.steps) {
    for (uint32_t segment = 0; segment < step.weights_version.size(); ++segment) {
      if (step.weights_version[segment] != kNotThere) continue;
      return absl::DataLossError(absl::StrCat("the logs have no update of segment ", segment,
                                              " by virtual worker ", step.virtual_worker,
                                              " at step ", step.clock + 1));
    }
  }
  return run;
}

}  // namespace tug
