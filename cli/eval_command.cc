#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "cli/commands.h"
#include "cli/loaded_model.h"
#include "coordinator/run_folder.h"
#include "data/sampler.h"
#include "data/text_source.h"
#include "data/token_file.h"
#include "data/tokenizer.h"

namespace tug {
namespace {

constexpr uint32_t kBatch = 8;

struct EvalCommand {
  std::string from;
  std::string data;
  int threads = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
};

// Windows of context + 1 tokens, cut one behind the other.
struct Windows {
  uint64_t count = 0;
  // Windows first .. first + count - 1; tokens, targets [count, context].
  std::function<void(uint64_t first, uint32_t count, std::span<int32_t> tokens,
                     std::span<int32_t> targets)>
      fill;
};

struct EvalResult {
  double loss_sum = 0;
  uint64_t tokens = 0;
};

EvalResult Evaluate(LoadedModel& model, const Windows& windows) {
  const size_t context = model.config().model().context();
  std::vector<int32_t> tokens(kBatch * context), targets(kBatch * context);
  EvalResult result;
  for (uint64_t first = 0; first < windows.count; first += kBatch) {
    const auto count = static_cast<uint32_t>(std::min<uint64_t>(kBatch, windows.count - first));
    const std::span<int32_t> inputs = std::span(tokens).first(count * context);
    const std::span<int32_t> expected = std::span(targets).first(count * context);
    windows.fill(first, count, inputs, expected);
    MicroBatch batch;
    batch.samples = static_cast<int>(count);
    batch.tokens = inputs;
    batch.targets = expected;
    model.gpt().Start(batch);
    for (int block = 0; block < model.gpt().num_blocks(); ++block) model.gpt().Forward(block);
    result.loss_sum += model.gpt().loss_sum();
    result.tokens += count * context;
  }
  return result;
}

void Print(const LoadedModel& model, const std::string& what, const EvalResult& result) {
  const double loss = result.loss_sum / static_cast<double>(result.tokens);
  std::printf("%s, %s: loss %.6f, perplexity %.4f over %llu tokens\n",
              std::filesystem::path(model.folder()).filename().c_str(), what.c_str(), loss,
              std::exp(loss), static_cast<unsigned long long>(result.tokens));
}

// The validation split of the run that the checkpoint belongs to.
absl::Status EvaluateValidation(LoadedModel& model) {
  const std::filesystem::path run =
      std::filesystem::path(model.folder()).parent_path().parent_path();
  const absl::StatusOr<TokenFile> file = TokenFile::Open((run / kTokenFile).string());
  if (!file.ok() || file->info().fingerprint != model.config().data().resolved_fingerprint()) {
    return absl::NotFoundError(absl::StrCat("the tokens this model was trained on are not at ",
                                            (run / kTokenFile).string(),
                                            ": give a text with --data PATH"));
  }
  ASSIGN_OR_RETURN(const Sampler sampler, Sampler::Create(model.config(), *file));
  if (sampler.validation_windows() == 0) {
    return absl::FailedPreconditionError(
        "the job kept no validation split (data.validation_fraction 0): give a text with --data "
        "PATH");
  }
  Windows windows;
  windows.count = sampler.validation_windows();
  windows.fill = [&](uint64_t first, uint32_t count, std::span<int32_t> tokens,
                     std::span<int32_t> targets) {
    sampler.FillEvalBatch(/*eval_samples=*/0, first, count, tokens, targets);
  };
  Print(model, "validation split", Evaluate(model, windows));
  return absl::OkStatus();
}

absl::StatusOr<std::vector<int32_t>> EncodeText(const std::string& path,
                                                const Tokenizer& tokenizer) {
  ASSIGN_OR_RETURN(const TextSource source, TextSource::Open(path));
  std::vector<int32_t> text;
  RETURN_IF_ERROR(
      source.ForEachPiece([&](std::string_view piece) { return tokenizer.Cut(piece); },
                          [&](std::string_view piece, uint64_t offset_bytes) {
                            return tokenizer.Encode(piece, offset_bytes, text);
                          }));
  return text;
}

absl::Status EvaluateText(LoadedModel& model, const std::string& path) {
  ASSIGN_OR_RETURN(const std::unique_ptr<Tokenizer> tokenizer,
                   MakeTokenizer(model.config().data()));
  ASSIGN_OR_RETURN(const std::vector<int32_t> text, EncodeText(path, *tokenizer));
  const size_t context = model.config().model().context();
  if (text.size() <= context) {
    return absl::InvalidArgumentError(absl::StrCat(path, " has ", text.size(),
                                                   " tokens, but the model reads ", context + 1,
                                                   " at once: give a longer text"));
  }
  Windows windows;
  windows.count = (text.size() - 1) / context;
  windows.fill = [&](uint64_t first, uint32_t count, std::span<int32_t> tokens,
                     std::span<int32_t> targets) {
    const std::span<const int32_t> all(text);
    std::ranges::copy(all.subspan(first * context, count * context), tokens.begin());
    std::ranges::copy(all.subspan(first * context + 1, count * context), targets.begin());
  };
  Print(model, path, Evaluate(model, windows));
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
      "eval", "Measures the loss of a checkpoint on the whole validation split, or on a text");
  command
      ->add_option("--from", arguments->from,
                   "Run folder (its newest checkpoint), or folder of a checkpoint")
      ->type_name("PATH")
      ->required();
  command->add_option("--data", arguments->data, "Text (file or folder) to read whole instead")
      ->type_name("PATH");
  command->add_option("--threads", arguments->threads, "Compute threads; never changes the result")
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
  command->footer(
      "Examples:\n  tug eval --from runs/job-1\n  tug eval --from runs/job-1 --data other.txt");
  command->callback([arguments, &chosen] { chosen = [arguments] { return Eval(*arguments); }; });
}

}  // namespace tug
