// SPDX-License-Identifier: Apache-2.0
#include "lab/experiment/run/experiment_source.h"

#include <filesystem>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/files/text_file.h"
#include "base/status_macros.h"
#include "config/job_config.h"
#include "lab/experiment/plan/nearest_name.h"
#include "lab/experiment/run/built_in_experiments.h"

namespace tug {

absl::StatusOr<ExperimentSource> ReadExperimentSource(const ExperimentFileArguments& a) {
  ExperimentSource source{.name = a.file,
                          .made_up_text_path = "text.txt",  // until the folder is known
                          .settings = a.settings,
                          .repeats = a.repeats};
  std::error_code error;
  if (const auto text = BuiltInExperiment(a.file);
      text && !std::filesystem::is_regular_file(a.file, error)) {
    source.text = *text;
    source.name = absl::StrCat(a.file, ".textproto");
    return source;
  }
  absl::StatusOr<std::string> text = ReadTextFile(a.file, kExperimentFileLimitBytes);
  if (!text.ok()) {
    const std::vector<std::string> names = BuiltInExperimentNames();
    return absl::Status(text.status().code(),
                        absl::StrCat(text.status().message(), "; built-in experiments: ",
                                     absl::StrJoin(names, ", "), DidYouMean(a.file, names)));
  }
  source.text = *std::move(text);
  ASSIGN_OR_RETURN(source.job_name, JobFileOf(source.text, source.name));
  if (source.job_name.empty()) return source;
  source.job_name = (std::filesystem::path(a.file).parent_path() / source.job_name).string();
  ASSIGN_OR_RETURN(source.job_text, ReadTextFile(source.job_name, kJobFileLimitBytes));
  return source;
}

}  // namespace tug
