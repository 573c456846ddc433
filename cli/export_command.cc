// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <memory>
#include <string>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "checkpoint/checkpoint.h"
#include "cli/loaded_model.h"
#include "huggingface/gpt2_export.h"
#include "process/commands.h"

namespace tug {
namespace {

struct ExportCommand {
  std::string from;
  std::string hf;
};

absl::Status Export(const ExportCommand& command) {
  ASSIGN_OR_RETURN(const FoundCheckpoint found, FindCheckpoint(command.from));
  if (found.manifest.config().compute() == JobConfig::REPLAY) {
    return absl::FailedPreconditionError(
        absl::StrCat(found.folder,
                     " was written by a replay (compute: REPLAY), which trains no model: pass a "
                     "checkpoint of a training run"));
  }
  ASSIGN_OR_RETURN(const CheckpointReader checkpoint, CheckpointReader::Open(found.folder));
  ASSIGN_OR_RETURN(const ExportedGpt2 exported, ExportGpt2(checkpoint, command.hf));
  std::printf("%s: GPT-2 of step %llu, %zu tensors, %.1f MB; tokenizer: %s\n", command.hf.c_str(),
              static_cast<unsigned long long>(checkpoint.manifest().version()), exported.tensors,
              static_cast<double>(exported.size_bytes) / 1e6, exported.tokenizer.c_str());
  return absl::OkStatus();
}

}  // namespace

void AddExportCommand(CLI::App& app, Command& chosen) {
  auto arguments = std::make_shared<ExportCommand>();
  CLI::App* command =
      app.add_subcommand("export", "Converts a checkpoint to a Hugging Face GPT-2 folder");
  AddFromOption(*command, arguments->from);
  command
      ->add_option("--hf", arguments->hf,
                   "Folder to write, in Hugging Face's GPT-2 format: config.json, "
                   "model.safetensors and the tokenizer's files; must be empty or not exist")
      ->type_name("DIR")
      ->required();
  command->footer(
      "Example:\n"
      "  tug export --from runs/job-1 --hf gpt2-of-job-1\n"
      "A new job can start from this folder: tug train JOB --init-from DIR");
  command->callback([arguments, &chosen] { chosen = [arguments] { return Export(*arguments); }; });
}

}  // namespace tug
