// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <system_error>

#include "CLI/CLI.hpp"
#include "absl/cleanup/cleanup.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/cpu/cpu_affinity.h"
#include "base/files/file.h"
#include "base/status_macros.h"
#include "cli/loaded_model.h"
#include "coordinator/observe/run_folder.h"
#include "data/sampler.h"
#include "data/token_file.h"
#include "model/job_model.h"
#include "process/commands.h"

namespace tug {
namespace {

constexpr uint32_t kBatch = 8;

namespace fs = std::filesystem;

struct EvalCommand {
  std::string from;
  std::string data;
  int threads = ReadCpuBudget().usable;
};

LossSums Evaluate(Model& model, const Sampler& sampler) {
  SampleBatch samples;
  LossSums total;
  const uint64_t all = sampler.validation_samples();
  for (uint64_t first = 0; first < all; first += kBatch) {
    const auto count = static_cast<uint32_t>(std::min<uint64_t>(kBatch, all - first));
    sampler.FillEval(/*eval_samples=*/0, first, count, samples);
    model.Start(MicroBatchOf(samples));
    for (int block = 0; block < model.num_blocks(); ++block) model.Forward(block);
    const LossSums sums = model.losses();
    total.loss += sums.loss;
    total.targets += sums.targets;
    total.correct += sums.correct;
  }
  return total;
}

void Print(const LoadedModel& loaded, const std::string& what, const LossSums& sums) {
  const bool classes = loaded.config().model().family() == ModelConfig::ENCODER;
  const double loss = sums.loss / static_cast<double>(sums.targets);
  std::string text = absl::StrFormat("%s, %s: loss %.6f",
                                     fs::path(loaded.folder()).filename().string(), what, loss);
  if (!classes) absl::StrAppendFormat(&text, ", perplexity %.4f", std::exp(loss));
  absl::StrAppendFormat(
      &text, ", accuracy %.2f%% over %d %s",
      100.0 * static_cast<double>(sums.correct) / static_cast<double>(sums.targets), sums.targets,
      classes ? "samples" : "tokens");
  std::printf("%s\n", text.c_str());
}

// Opens the tokens of the checkpoint's run.
absl::StatusOr<TokenFile> OpenTokensOfRun(const LoadedModel& loaded) {
  const fs::path run = fs::path(loaded.folder()).parent_path().parent_path();
  absl::StatusOr<TokenFile> file = TokenFile::Open((run / kTokenFile).string());
  if (file.ok() && file->info().fingerprint == loaded.config().data().resolved_fingerprint()) {
    return file;
  }
  return absl::NotFoundError(
      absl::StrCat("the token file of the training run is missing or changed (",
                   (run / kTokenFile).string(), "): pass a text with --data PATH"));
}

absl::Status EvaluateValidation(LoadedModel& loaded) {
  std::optional<TokenFile> file;
  if (loaded.config().data().random().samples() == 0) {
    ASSIGN_OR_RETURN(file, OpenTokensOfRun(loaded));
  }
  ASSIGN_OR_RETURN(const std::unique_ptr<Sampler> sampler,
                   MakeSampler(loaded.config(), file.has_value() ? &*file : nullptr));
  if (sampler->validation_samples() == 0) {
    return absl::FailedPreconditionError(
        "the job has no validation split (data.validation_fraction is 0): pass a text with --data "
        "PATH");
  }
  Print(loaded, "validation split", Evaluate(loaded.model(), *sampler));
  return absl::OkStatus();
}

// Encodes a text, which may exceed memory. The token file is already deleted on return and only
// mapped, so nothing is left behind however the evaluation ends.
absl::StatusOr<TokenFile> EncodeText(const DataConfig& data, TextForm form) {
  std::error_code error;
  const fs::path temporary = fs::temp_directory_path(error);
  if (error) {
    return absl::NotFoundError("no folder for temporary files: set TMPDIR to an existing folder");
  }
  std::string folder = (temporary / "tug-eval-XXXXXX").string();
  const auto choice = [&folder](const absl::Status& status) {
    if (!absl::StrContains(status.message(), folder)) return status;
    return absl::Status(status.code(), absl::StrCat(status.message(), " (TMPDIR)"));
  };
  if (::mkdtemp(folder.data()) == nullptr) {
    return choice(FileError(errno, "make the folder", folder));
  }
  const absl::Cleanup remove = [&folder] {
    std::error_code ignored;
    fs::remove_all(folder, ignored);
  };
  const std::string path = folder + "/tokens.bin";
  RETURN_IF_ERROR(choice(PrepareTokenFile(data, path, form).status()));
  return TokenFile::Open(path);
}

absl::Status EvaluateText(LoadedModel& loaded, const std::string& path) {
  JobConfig config = loaded.config();
  if (config.data().random().samples() > 0) {
    return absl::FailedPreconditionError("the model was trained on random tokens: omit --data");
  }
  config.mutable_data()->set_path(path);
  ASSIGN_OR_RETURN(const TokenFile file, EncodeText(config.data(), TextFormOf(config.model())));
  ASSIGN_OR_RETURN(const std::unique_ptr<Sampler> sampler,
                   MakeSampler(config, &file, Split::kAllValidation));
  Print(loaded, path, Evaluate(loaded.model(), *sampler));
  return absl::OkStatus();
}

absl::Status Eval(const EvalCommand& command) {
  ASSIGN_OR_RETURN(const std::unique_ptr<LoadedModel> model,
                   LoadedModel::Load(command.from, command.threads, kBatch));
  return command.data.empty() ? EvaluateValidation(*model) : EvaluateText(*model, command.data);
}

}  // namespace

void AddEvalCommand(CLI::App& app, Command& chosen) {
  auto arguments = std::make_shared<EvalCommand>();
  CLI::App* command = app.add_subcommand(
      "eval", "Measures loss and accuracy of a checkpoint on the validation split, or on a text");
  AddFromOption(*command, arguments->from);
  command
      ->add_option("--data", arguments->data,
                   "Score this text (file or folder) instead, of the kind the model was trained "
                   "on: every token except the first; TMPDIR holds its tokens during the run")
      ->type_name("PATH");
  command->add_option("--threads", arguments->threads, "Compute threads; never changes the result")
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
  command->footer(
      "The validation split is scored as in the last evaluation of the job: running text in "
      "complete windows of model.context tokens, without the remainder at its end.\n"
      "Examples:\n  tug eval --from runs/job-1\n  tug eval --from runs/job-1 --data other.txt");
  command->callback([arguments, &chosen] { chosen = [arguments] { return Eval(*arguments); }; });
}

}  // namespace tug
