// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_LAB_EXPERIMENT_PLAN_EXPERIMENT_AXES_H_
#define TUG_LAB_EXPERIMENT_PLAN_EXPERIMENT_AXES_H_

// The axes of an experiment file, and the combinations of their values that are run. Pure.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lab/experiment/plan/experiment_text.h"
#include "proto/experiment.pb.h"
#include "proto/job.pb.h"

namespace tug {

inline constexpr size_t kMaxAxes = 8;

struct PlannedAxis {
  std::string name;
  std::vector<std::string> labels;
  std::vector<std::string> titles;  // labels as pages show them: "FIFO (WFBP)" for FIFO
  std::vector<std::vector<std::string>> settings;  // by label
};

// Name of an axis on pages, with the unit that the end of its name states: "partition (bytes)" for
// partition_bytes.
std::string AxisHeading(const PlannedAxis& axis);

// Whether a value of the axis has a setting with one of these prefixes: "comm.scheduler=",
// "straggler.".
bool SetsAny(const PlannedAxis& axis, std::span<const char* const> beginnings);

// Whether the text is not empty and has only letters, digits, '-' and '_'.
bool IsExperimentName(const std::string& text);

// Whether a setting applies to the place of jobs: "place.testbed.link=1gbit".
bool IsSettingOfPlace(const std::string& setting);
// Applies "path.to.field=value" to the job or the place. Errors: INVALID_ARGUMENT, with the nearest
// existing field; also for `seed`, which repeats set.
absl::Status ApplySetting(const std::string& setting, JobConfig& job, Place& place);

// Not thread-safe.
class ExperimentAxes {
 public:
  // REQUIRES: `text` outlives this object.
  explicit ExperimentAxes(const ExperimentText& text) : text_(text), file_(text.file()) {}

  // Reads and checks the axes, each of their settings alone, and the values that `exclude`, `only`,
  // `baseline` and `when` name. Errors: INVALID_ARGUMENT, naming the line.
  absl::Status Read();

  const std::vector<PlannedAxis>& axes() const { return axes_; }
  // Index of an axis. Errors: INVALID_ARGUMENT, with the existing axes; `path`: of the field that
  // names it.
  absl::StatusOr<size_t> FindAxis(const std::vector<ExperimentText::Step>& path,
                                  const std::string& name) const;
  // Whether a combination, given by the index of its label on each axis, is run: not excluded, and
  // allowed by `only`.
  bool IsRun(const std::vector<size_t>& values) const;
  // All settings of a combination: those of its values, then those of the conditions that hold.
  std::vector<std::string> SettingsOf(const std::vector<size_t>& values) const;
  // Warm-up steps of a combination, if a condition that holds sets them.
  std::optional<uint64_t> WarmUpOf(const std::vector<size_t>& values) const;

 private:
  using Path = std::vector<ExperimentText::Step>;

  absl::Status TakeAxis(int number);
  absl::Status TakeValue(int axis, const Path& path, const std::string& label,
                         std::vector<std::string> settings, PlannedAxis& to);
  absl::Status CheckCombinations() const;
  // Index of the axis; index of the label.
  absl::StatusOr<std::pair<size_t, size_t>> FindValue(const Path& path,
                                                      const std::string& where) const;
  using Where = google::protobuf::RepeatedPtrField<std::string>;
  absl::Status CheckWhere(const Path& path, const Where& where) const;
  bool Matches(const Where& where, const std::vector<size_t>& values) const;

  const ExperimentText& text_;
  const Experiment& file_;
  std::vector<PlannedAxis> axes_;
};

}  // namespace tug

#endif  // TUG_LAB_EXPERIMENT_PLAN_EXPERIMENT_AXES_H_
