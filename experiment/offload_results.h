#ifndef TUG_EXPERIMENT_OFFLOAD_RESULTS_H_
#define TUG_EXPERIMENT_OFFLOAD_RESULTS_H_

// What `tug experiment offload` found out, apart from how it is told (offload_text.h) and drawn
// (offload_report.h).

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "experiment/device_timeline.h"

namespace tug {

// Where the optimizer's state is, and what a step waits for.
//   plain       on the device, with the weights: no servers
//   offload     with servers in the host's memory; updates wait for the whole backward pass, and
//               weights come back in the order in which gradients left
//   overlapped  the same; a segment is updated when its gradient is there, and what the next
//               forward pass needs first comes back first
enum class OffloadKind { kPlain, kOffload, kOverlapped };

struct OffloadKindRow {
  OffloadKind kind;
  const char* name;
  const char* about;
};
// In the order of OffloadKind.
const std::array<OffloadKindRow, 3>& OffloadKinds();
// Errors: INVALID_ARGUMENT, naming what is known.
absl::StatusOr<OffloadKind> ParseOffloadKind(const std::string& text);

struct OffloadRun {
  OffloadKind kind = OffloadKind::kPlain;
  std::string device;  // what computed, for people
  DeviceTimeline timeline;
  std::vector<DeviceStep> steps;  // measured
  // The worker's waiting for weights, by its thread, to the length of its steps; none: no servers.
  std::optional<double> exposed;
  // Of weights and AdamW's state where the model is computed.
  std::optional<double> state_bytes;
  std::optional<double> loss;  // of the last step, before its update
  std::string error;           // that it ended with: there are no figures. Empty: none

  const OffloadKindRow& row() const { return OffloadKinds()[static_cast<size_t>(kind)]; }
  // Medians over the measured steps. NaN: nothing was measured.
  double StepSeconds() const;
  double BpBubbleSeconds() const;
  double FpBubbleSeconds() const;
  double OtherSeconds() const;
  // The shortest and longest step.
  std::pair<double, double> StepRange() const;
};

struct OffloadResults {
  std::string command;  // as it was called
  std::vector<std::pair<std::string, std::string>> settings;
  double tokens_per_step = 0;
  std::vector<OffloadRun> runs;  // in the order in which they ran

  // null: not run, or it failed.
  const OffloadRun* Find(OffloadKind kind) const;
  double TokensPerSecond(const OffloadRun& run) const {
    return tokens_per_step / run.StepSeconds();
  }
  // To the step of `plain`; none: that was not run.
  std::optional<double> OfPlain(const OffloadRun& run) const;
};

// Whether it was computed on what `plain` of the results was, the GPU or the CPU; if that is not
// there, on what the others were. Errors: FAILED_PRECONDITION, for people.
absl::Status CheckSameDevice(const OffloadResults& results, const OffloadRun& run);

// What `tug bench training --json` wrote. Errors: those of the file; INVALID_ARGUMENT.
absl::StatusOr<OffloadRun> ReadPlainRun(const std::string& path);

}  // namespace tug

#endif  // TUG_EXPERIMENT_OFFLOAD_RESULTS_H_
