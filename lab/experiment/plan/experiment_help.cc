// SPDX-License-Identifier: Apache-2.0
#include "lab/experiment/plan/experiment_help.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "lab/experiment/measures/measure.h"
#include "lab/experiment/plan/experiment_proto_text.h"

namespace tug {

std::string ExperimentHelp() {
  const std::string text = kExperimentProtoText;
  std::string help = absl::StrCat(text.substr(0, text.find("syntax =")),
                                  text.substr(text.find("message Experiment")), "\nMeasures:\n");
  for (const Measure& measure : Measures()) {
    absl::StrAppendFormat(&help, "  %-20s %s%s%s\n", measure.name, measure.meaning,
                          *measure.unit == 0 ? "" : ", ", measure.unit);
  }
  return help;
}

}  // namespace tug
