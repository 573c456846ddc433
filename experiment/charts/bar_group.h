// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_EXPERIMENT_CHARTS_BAR_GROUP_H_
#define TUG_EXPERIMENT_CHARTS_BAR_GROUP_H_

// Horizontal bars in groups, with one axis per group. Pure, thread-safe.

#include <string>
#include <vector>

namespace tug {

struct BarPart {
  double length = 0;
  std::string color;  // CSS; empty: hatched, which marks waiting
  std::string title;  // tooltip
};

// A reference line across a bar, `at` from its beginning.
struct BarMark {
  double at = 0;
  const char* style = "bound";  // CSS class (report_page.cc)
};

struct Bar {
  std::string name;            // shown on its left
  std::vector<BarPart> parts;  // in order
  std::string label;           // shown on its right
  std::vector<BarMark> marks;
};

// Parts of a bar that stands for a step: the time without waits, then the wait for weights, clamped
// to [0, length]. `name` and `label`: for tooltips.
std::vector<BarPart> StepParts(double length, double waits, const std::string& color,
                               const std::string& name, const std::string& label);

// Draws a group from `top` down: title, bars, and an axis with `axis_name` at its end. Advances
// `top`. "" if no bar is above 0.
std::string BarGroupSvg(const std::string& title, const std::vector<Bar>& bars,
                        const std::string& axis_name, double& top);

}  // namespace tug

#endif  // TUG_EXPERIMENT_CHARTS_BAR_GROUP_H_
