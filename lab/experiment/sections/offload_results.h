// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_LAB_EXPERIMENT_SECTIONS_OFFLOAD_RESULTS_H_
#define TUG_LAB_EXPERIMENT_SECTIONS_OFFLOAD_RESULTS_H_

// Results of `tug experiment offload`, independent of their text (offload_text.h) and drawing
// (offload_report.h).

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lab/experiment/results/device_timeline.h"

namespace tug {

// Where the optimizer's state is, and what a step waits for.
//   plain       on the device, with the weights; no servers
//   offload     in host memory, in servers; updates wait for the whole backward pass, and weights
//               return in the order in which gradients left
//   overlapped  in host memory, in servers; a segment is updated when its gradient arrives, and the
//               weights that the next forward pass needs first return first
enum class OffloadKind { kPlain, kOffload, kOverlapped };

struct OffloadKindRow {
  OffloadKind kind;
  const char* name;
  const char* about;
};
// In the order of OffloadKind.
const std::array<OffloadKindRow, 3>& OffloadKinds();
// Errors: INVALID_ARGUMENT, naming the known ones.
absl::StatusOr<OffloadKind> ParseOffloadKind(const std::string& text);

struct OffloadRun {
  OffloadKind kind = OffloadKind::kPlain;
  std::string device;  // that computed; for display
  DeviceTimeline timeline;
  std::vector<DeviceStep> steps;  // measured steps
  // Part of its steps that the worker's thread waited for weights; none: no servers.
  std::optional<double> exposed;
  // Bytes of weights and AdamW's state where the model is computed.
  std::optional<double> state_bytes;
  std::optional<double> loss;  // of the last step, before its update
  std::string error;           // why it failed, with no figures; empty: success

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
  std::string command;  // as typed
  std::vector<std::pair<std::string, std::string>> settings;
  double tokens_per_step = 0;
  std::vector<OffloadRun> runs;  // in the order of execution

  // Null: not run, or failed.
  const OffloadRun* Find(OffloadKind kind) const;
  double TokensPerSecond(const OffloadRun& run) const {
    return tokens_per_step / run.StepSeconds();
  }
  // Step time relative to that of `plain`; none: it was not run.
  std::optional<double> OfPlain(const OffloadRun& run) const;
};

// Whether a run was computed on the same device, GPU or CPU, as `plain` or, if that is missing, as
// the others. Errors: FAILED_PRECONDITION, user-facing.
absl::Status CheckSameDevice(const OffloadResults& results, const OffloadRun& run);

// Reads what `tug bench training --json` wrote. Errors: those of the file; INVALID_ARGUMENT.
absl::StatusOr<OffloadRun> ReadPlainRun(const std::string& path);

}  // namespace tug

#endif  // TUG_LAB_EXPERIMENT_SECTIONS_OFFLOAD_RESULTS_H_
