#ifndef TUG_EXPERIMENT_EXPERIMENT_AXES_H_
#define TUG_EXPERIMENT_EXPERIMENT_AXES_H_

// What an experiment file varies, and which combinations of it are run. Pure.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "experiment/experiment_text.h"
#include "proto/experiment.pb.h"
#include "proto/job.pb.h"

namespace tug {

inline constexpr size_t kMostAxes = 8;

struct PlannedAxis {
  std::string name;
  std::vector<std::string> labels;
  std::vector<std::vector<std::string>> settings;  // by label
};

// Whether a value of the axis sets something that begins so: "comm.scheduler=", "straggler.".
bool SetsAny(const PlannedAxis& axis, std::span<const char* const> beginnings);

// Letters, digits, '-', '_', and some.
bool IsExperimentName(const std::string& text);

// Whether a setting is of where jobs run: "place.testbed.link=1gbit".
bool IsSettingOfPlace(const std::string& setting);
// "path.to.field=value", into the job or the place. Errors: INVALID_ARGUMENT, with the nearest
// field there is; also for `seed`, which repeats set.
absl::Status ApplySetting(const std::string& setting, JobConfig& job, Place& place);

// Not thread-safe.
class ExperimentAxes {
 public:
  // `text` lives as long.
  explicit ExperimentAxes(const ExperimentText& text) : text_(text), file_(text.file()) {}

  // Axes, each of their settings by itself, and what `exclude`, `only`, `baseline` and `when` name.
  // Errors: INVALID_ARGUMENT, naming the line.
  absl::Status Read();

  const std::vector<PlannedAxis>& axes() const { return axes_; }
  // Errors: INVALID_ARGUMENT, with the axes there are; `path`: of the field that names it.
  absl::StatusOr<size_t> FindAxis(const std::vector<ExperimentText::Step>& path,
                                  const std::string& name) const;
  // Whether a combination, the label of each axis, is neither excluded nor left out.
  bool IsRun(const std::vector<size_t>& values) const;
  // All settings of a combination: of its values, then of the conditions that hold.
  std::vector<std::string> SettingsOf(const std::vector<size_t>& values) const;
  // Warm-up steps of a combination, where a condition that holds has some.
  std::optional<uint64_t> WarmUpOf(const std::vector<size_t>& values) const;

 private:
  using Path = std::vector<ExperimentText::Step>;

  absl::Status TakeAxis(int number);
  absl::Status TakeValue(int axis, const Path& path, const std::string& label,
                         std::vector<std::string> settings, PlannedAxis& to);
  absl::Status CheckCombinations() const;
  // Index of the axis, and of the label.
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

#endif  // TUG_EXPERIMENT_EXPERIMENT_AXES_H_
