// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "base/cpu/cpu_affinity.h"
#include "base/files/file.h"
#include "base/files/replace_file.h"
#include "base/files/shell_word.h"
#include "base/status_macros.h"
#include "config/job_config.h"
#include "coordinator/observe/progress_line.h"
#include "data/source/text_source.h"
#include "plan/job_proposal.h"
#include "process/commands.h"
#include "process/log_format.h"

namespace tug {
namespace {

struct NewArguments {
  std::string name;
  std::string data;
  std::string out;
  double minutes = 10;
};

absl::Status New(const NewArguments& arguments) {
  if (arguments.name.find('/') != std::string::npos) {
    return absl::InvalidArgumentError(
        absl::StrCat("NAME '", arguments.name,
                     "' contains a slash: pass a name without one, and the path with --out"));
  }
  const std::string path =
      arguments.out.empty() ? absl::StrCat(arguments.name, ".textproto") : arguments.out;
  std::error_code error;
  if (std::filesystem::exists(path, error)) {
    return absl::AlreadyExistsError(
        absl::StrCat(path, " exists: delete it, or write another file with --out FILE"));
  }
  ASSIGN_OR_RETURN(const TextSource text, TextSource::Open(arguments.data));
  ASSIGN_OR_RETURN(const uint64_t text_bytes, text.MeasureText());
  const JobProposal proposal = ProposeJob({.name = arguments.name,
                                           .data_path = AbsolutePath(arguments.data),
                                           .text_bytes = text_bytes,
                                           .cores = static_cast<uint32_t>(ReadCpuBudget().usable),
                                           .minutes = arguments.minutes});
  const std::string job = JobFileText(proposal);
  RETURN_IF_ERROR(ParseJobConfig(job, path, {}).status());
  RETURN_IF_ERROR(WriteFile(path, job));
  Tell(absl::StrCat("wrote ", path, ": ", WithThousands(proposal.parameters), " parameters, ",
                    WithThousands(proposal.steps),
                    " steps; train with: ", ShellCommand({"tug", "train", path})));
  return absl::OkStatus();
}

}  // namespace

void AddNewCommand(CLI::App& app, Command& chosen) {
  auto arguments = std::make_shared<NewArguments>();
  CLI::App* command = app.add_subcommand(
      "new", "Writes a commented job file for a text, this machine and a training time");
  command->add_option("NAME", arguments->name, "Name of the job")->required();
  command
      ->add_option("--data", arguments->data,
                   "Text file or folder: plain, gzip, Zstandard, JSON lines (docs/texts.md)")
      ->type_name("PATH")
      ->required();
  command->add_option("--minutes", arguments->minutes, "Training time on this machine, in minutes")
      ->check(CLI::Range(0.1, 100000.0))
      ->capture_default_str();
  command->add_option("--out", arguments->out, "File to write [NAME.textproto]")->type_name("FILE");
  command->footer("Example:\n  tug new mine --data my_text.txt && tug train mine.textproto");
  command->callback([arguments, &chosen] { chosen = [arguments] { return New(*arguments); }; });
}

}  // namespace tug
