// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <cstdio>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_format.h"
#include "base/cpu/cpu_affinity.h"
#include "base/standard_error.h"
#include "base/status_macros.h"
#include "cli/line_answer.h"
#include "cli/loaded_model.h"
#include "cli/token_picker.h"
#include "cli/token_text.h"
#include "data/text/tokenizer.h"
#include "model/transformer/generator.h"
#include "process/commands.h"
#include "process/standard_streams.h"

namespace tug {
namespace {

struct SampleCommand {
  std::string from;
  std::string prompt;
  uint64_t tokens = 300;
  PickOptions pick;
  bool stats = false;
};

// Text must begin with something: a new line, or, if the model has never seen one, its first
// symbol.
absl::StatusOr<std::vector<int32_t>> Beginning(const Tokenizer& tokenizer,
                                               const std::string& prompt) {
  if (!prompt.empty()) return tokenizer.Encode(prompt);
  const absl::StatusOr<std::vector<int32_t>> line = tokenizer.Encode("\n");
  return line.ok() ? *line : std::vector<int32_t>{0};
}

absl::Status Show(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  return FlushResults();
}

class Stopwatch {
 public:
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

void ShowRate(const char* what, uint64_t tokens, double seconds) {
  PrintLineToStderr(absl::StrFormat("%s %d tokens in %.3f s (%.1f tokens/s)", what, tokens, seconds,
                                    static_cast<double>(tokens) / seconds));
}

absl::Status WriteText(const SampleCommand& command, LoadedModel& model,
                       const Tokenizer& tokenizer) {
  const JobConfig& config = model.config();
  ASSIGN_OR_RETURN(const std::unique_ptr<Generator> generator,
                   Generator::Create(config.model(), config.data().resolved_symbols(),
                                     model.weights(), model.pool()));
  ASSIGN_OR_RETURN(const std::vector<int32_t> beginning, Beginning(tokenizer, command.prompt));
  TokenText text(tokenizer);
  RETURN_IF_ERROR(text.Begin(beginning));
  RETURN_IF_ERROR(Show(command.prompt));

  const Stopwatch reading;
  std::span<const float> logits = generator->Append(beginning);
  const double reading_seconds = reading.seconds();
  const Stopwatch writing;
  for (uint64_t i = 0; i < command.tokens; ++i) {
    // Vocabulary entries beyond the tokenizer's symbols have no text.
    const int32_t next = PickToken(logits.first(tokenizer.symbols()), command.pick, i);
    ASSIGN_OR_RETURN(const std::string piece, text.Add(next));
    RETURN_IF_ERROR(Show(piece));
    logits = generator->Append(std::span(&next, 1));
  }
  RETURN_IF_ERROR(Show(text.Finish() + "\n"));
  if (command.stats) {
    ShowRate("read", beginning.size(), reading_seconds);
    ShowRate("wrote", command.tokens, writing.seconds());
  }
  return absl::OkStatus();
}

absl::Status Sample(const SampleCommand& command) {
  ASSIGN_OR_RETURN(const std::unique_ptr<LoadedModel> model,
                   LoadedModel::Load(command.from, ReadCpuBudget().usable, 1));
  ASSIGN_OR_RETURN(const std::unique_ptr<Tokenizer> tokenizer,
                   MakeTokenizer(model->config().data()));
  if (model->config().model().family() == ModelConfig::DECODER) {
    return WriteText(command, *model, *tokenizer);
  }
  ASSIGN_OR_RETURN(const std::string answer, AnswerTo(*model, *tokenizer, command.prompt));
  return Show(answer + "\n");
}

}  // namespace

void AddSampleCommand(CLI::App& app, Command& chosen) {
  auto arguments = std::make_shared<SampleCommand>();
  CLI::App* command = app.add_subcommand("sample", "Writes text with the weights of a checkpoint");
  AddFromOption(*command, arguments->from);
  command
      ->add_option("--prompt", arguments->prompt,
                   "Start of the text; its last model.context tokens are read. For a model of "
                   "lines: the line to label or to answer")
      ->type_name("TEXT");
  command->add_option("--tokens", arguments->tokens, "Tokens to write")
      ->check(CLI::Range(uint64_t{1}, uint64_t{10'000'000}))
      ->capture_default_str();
  command
      ->add_option("--temperature", arguments->pick.temperature,
                   "Below 1: more predictable; above 1: more random; 0: always the likeliest token")
      ->check(CLI::Range(0.0, 100.0))
      ->capture_default_str();
  command
      ->add_option("--top-k", arguments->pick.top_k,
                   "Choose among this number of likeliest tokens; 0: all")
      ->capture_default_str();
  command
      ->add_option("--top-p", arguments->pick.top_p,
                   "Nucleus sampling: choose among the smallest set of tokens that reaches this "
                   "probability; 1: all")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  command->add_option("--seed", arguments->pick.seed, "Same seed, same text")
      ->capture_default_str();
  command->add_flag("--stats", arguments->stats,
                    "At the end, print to stderr how fast text was read and written");
  command->footer(
      "Examples:\n"
      "  tug sample --from runs/job-1\n"
      "  tug sample --from runs/job-1/checkpoints/step-00000500 --prompt \"In the beginning\" "
      "--tokens 500");
  command->callback([arguments, &chosen] { chosen = [arguments] { return Sample(*arguments); }; });
}

}  // namespace tug
