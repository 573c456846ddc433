#ifndef TUG_EXPERIMENT_BAR_GROUP_H_
#define TUG_EXPERIMENT_BAR_GROUP_H_

// Bars one under another, in groups that have an axis each. Pure, thread-safe.

#include <string>
#include <vector>

namespace tug {

struct BarPart {
  double length = 0;
  std::string color;  // CSS; empty: hatched, as waiting is
  std::string title;  // that a pointer over it shows
};

// A line that crosses a bar, so far from its beginning: what it is to be compared with.
struct BarMark {
  double at = 0;
  const char* style = "bound";  // its class (report_page.cc)
};

struct Bar {
  std::string name;            // on its left
  std::vector<BarPart> parts;  // one behind the other
  std::string label;           // on its right
  std::vector<BarMark> marks;
};

// Parts of a bar that is a step: what is left of it, then its waiting for weights, which is within
// [0, length] whatever was measured. `name` and `label`: for titles.
std::vector<BarPart> StepParts(double length, double waits, const std::string& color,
                               const std::string& name, const std::string& label);

// A group with a title, a legend of the axis at its end, `axis_name`, and its bars, from `top`
// down; advances it. "" if nothing is above 0.
std::string BarGroupSvg(const std::string& title, const std::vector<Bar>& bars,
                        const std::string& axis_name, double& top);

}  // namespace tug

#endif  // TUG_EXPERIMENT_BAR_GROUP_H_
