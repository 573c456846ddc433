#ifndef TUG_EXPERIMENT_UTILISATION_SVG_H_
#define TUG_EXPERIMENT_UTILISATION_SVG_H_

#include <string>
#include <vector>

#include "experiment/device_timeline.h"

namespace tug {

struct DrawnDevice {
  std::string name;  // of the case
  std::string note;  // behind it; may be empty
  const DeviceTimeline* timeline = nullptr;
};

// An <svg>: for each of them the device's utilisation over time, its mean over all steps dashed,
// and beneath what it was at (forward, backward, update) and what it stood still for. One time axis
// for all, as long as the slowest takes for `steps` steps; ends of steps are marked. Those without
// steps are left out; "" without any. Pure, thread-safe.
std::string UtilisationSvg(const std::vector<DrawnDevice>& devices, size_t steps);
// What has which colour, HTML.
std::string UtilisationLegend();

}  // namespace tug

#endif  // TUG_EXPERIMENT_UTILISATION_SVG_H_
