// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_LAB_EXPERIMENT_PLAN_EXPERIMENT_TEXT_H_
#define TUG_LAB_EXPERIMENT_PLAN_EXPERIMENT_TEXT_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "google/protobuf/text_format.h"
#include "proto/experiment.pb.h"

namespace tug {

// A parsed experiment file, with the line of each of its fields. Thread-safe.
class ExperimentText {
 public:
  // A step of a path to a field: a field, and the index if it is repeated.
  struct Step {
    const char* field;
    int number = 0;
  };

  // `source`: name for messages. Errors: INVALID_ARGUMENT, one line, "source:line:column: what;
  // remedy", with the nearest name for an unknown field.
  static absl::StatusOr<ExperimentText> Parse(const std::string& text, const std::string& source);

  const Experiment& file() const { return file_; }
  const std::string& source() const { return source_; }
  // "source:line: `what`" for a field, or for the nearest enclosing field that the file has.
  absl::Status Error(const std::vector<Step>& path, const std::string& what) const;

 private:
  Experiment file_;
  std::string source_;
  std::unique_ptr<google::protobuf::TextFormat::ParseInfoTree> places_;
};

}  // namespace tug

#endif  // TUG_LAB_EXPERIMENT_PLAN_EXPERIMENT_TEXT_H_
