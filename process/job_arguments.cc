// SPDX-License-Identifier: Apache-2.0
#include "process/job_arguments.h"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "CLI/CLI.hpp"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/files/text_file.h"
#include "base/status_macros.h"
#include "config/job_config.h"

namespace tug {
namespace {

constexpr uint64_t kTracedSteps = 20;  // for --trace

// "A..B" with 1 <= A <= B.
std::optional<std::pair<uint64_t, uint64_t>> ParseSteps(const std::string& text) {
  const std::vector<std::string> ends = absl::StrSplit(text, "..");
  uint64_t first = 0, last = 0;
  if (ends.size() != 2 || !absl::SimpleAtoi(ends[0], &first) || !absl::SimpleAtoi(ends[1], &last) ||
      first < 1 || first > last) {
    return std::nullopt;
  }
  return std::pair(first, last);
}

std::string CheckSteps(const std::string& text) {
  if (ParseSteps(text).has_value()) return "";
  return absl::StrCat("'", text, "' is not a range of steps: write A..B, e.g. 10..29");
}

}  // namespace

void JobArguments::AddTo(CLI::App& command, bool required) {
  command.add_option("JOB", job_file, "Job file (text form of JobConfig, see proto/job.proto)")
      ->required(required);
  command
      .add_option("--set", overrides,
                  "Override a field of the job file: path.to.field=value; may be given many times")
      ->type_name("PATH=VALUE")
      ->allow_extra_args(false);
  CLI::Option* from_checkpoint = command.add_option(
      "--resume", resume,
      "Continue from the newest checkpoint of a run folder, or from a checkpoint folder");
  from_checkpoint->type_name("PATH");
  command
      .add_option("--init-from", init_from,
                  "Start with the weights of a Hugging Face GPT-2 folder, a run or a checkpoint, "
                  "and a new optimizer state (sets train.init_from)")
      ->type_name("DIR")
      ->excludes(from_checkpoint);
  command.add_option("--run-dir", run_dir, "Folder of the run [runs/<name>-<n>, the first free n]")
      ->type_name("DIR");
  command.add_flag("--trace", trace,
                   "Record a timeline of steps 10 to 29 of the run, over all workers and servers, "
                   "in RUN/trace.json (for ui.perfetto.dev); sets trace.steps");
  command
      .add_option("--trace-steps", trace_steps,
                  "Record these steps instead, counted from 1 in each run, also in a resumed one")
      ->type_name("A..B")
      ->check(CheckSteps);
}

std::vector<std::string> JobArguments::Overrides() const {
  std::vector<std::string> all;
  if (const auto steps = ParseSteps(trace_steps)) {
    all.push_back(absl::StrCat("trace.first_step=", steps->first));
    all.push_back(absl::StrCat("trace.steps=", steps->second - steps->first + 1));
  } else if (trace) {
    all.push_back(absl::StrCat("trace.steps=", kTracedSteps));
  }
  all.insert(all.end(), overrides.begin(), overrides.end());  // --set takes precedence over --trace
  if (!init_from.empty()) all.push_back("train.init_from=" + init_from);
  return all;
}

std::vector<std::string> JobArguments::WordsToResume() const {
  std::error_code error;
  const bool stays = std::filesystem::is_regular_file(job_file, error);
  std::vector<std::string> words = SetWords(overrides);
  if (stays) words.insert(words.begin(), job_file);
  return words;
}

std::vector<std::string> SetWords(const std::vector<std::string>& overrides) {
  std::vector<std::string> words;
  for (const std::string& override_text : overrides) {
    words.insert(words.end(), {"--set", override_text});
  }
  return words;
}

absl::StatusOr<std::string> ReadJobFile(const std::string& job_file) {
  return ReadTextFile(job_file, kJobFileLimitBytes);
}

absl::StatusOr<JobConfig> ParseJobToStart(const std::string& text, const std::string& job_file,
                                          const std::vector<std::string>& overrides) {
  ASSIGN_OR_RETURN(JobConfig config, ParseJobConfig(text, job_file, overrides));
  if (!config.model().external()) return config;
  return absl::FailedPreconditionError(absl::StrCat(
      job_file,
      " has model.external = true: its workers are external programs, which tug cannot start; "
      "start `tug coordinator ",
      job_file, "`, `tug server --coordinator HOST:PORT` and your programs (docs/c_api.md)"));
}

void CoordinatorArguments::AddTo(CLI::App& command) {
  CLI::Option* by_run = command.add_option("RUN", run, "Run folder of the job");
  command.add_option("--coordinator", address, "Address of its coordinator instead")
      ->type_name("HOST:PORT")
      ->excludes(by_run);
  keys.AddTo(command);
}

}  // namespace tug
