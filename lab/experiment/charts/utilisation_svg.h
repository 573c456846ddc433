// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_LAB_EXPERIMENT_CHARTS_UTILISATION_SVG_H_
#define TUG_LAB_EXPERIMENT_CHARTS_UTILISATION_SVG_H_

#include <string>
#include <vector>

#include "lab/experiment/results/device_timeline.h"

namespace tug {

struct DrawnDevice {
  std::string name;  // of the case
  std::string note;  // after it; may be empty
  const DeviceTimeline* timeline = nullptr;
};

// An <svg>: for each device its utilisation over time, with the mean over all steps dashed; below
// it, the device's activity (forward, backward, update) and its reasons for idling. All share one
// time axis, as long as the slowest device takes for `steps` steps; ends of steps are marked. Skips
// devices without steps; "" without any. Pure, thread-safe.
std::string UtilisationSvg(const std::vector<DrawnDevice>& devices, size_t steps);

}  // namespace tug

#endif  // TUG_LAB_EXPERIMENT_CHARTS_UTILISATION_SVG_H_
