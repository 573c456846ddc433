#include <algorithm>
#include <cstdio>
#include <memory>
#include <span>
#include <thread>
#include <vector>

#include "base/status_macros.h"
#include "cli/commands.h"
#include "cli/line_answer.h"
#include "cli/loaded_model.h"
#include "cli/token_picker.h"
#include "data/tokenizer.h"

namespace tug {
namespace {

struct SampleCommand {
  std::string from;
  std::string prompt;
  uint64_t tokens = 300;
  PickOptions pick;
};

// Text has to begin with something: a new line, or, if the model has never seen one, its first
// symbol.
absl::StatusOr<std::vector<int32_t>> Beginning(const Tokenizer& tokenizer,
                                               const std::string& prompt) {
  if (!prompt.empty()) return tokenizer.Encode(prompt);
  const absl::StatusOr<std::vector<int32_t>> line = tokenizer.Encode("\n");
  return line.ok() ? *line : std::vector<int32_t>{0};
}

absl::Status Sample(const SampleCommand& command) {
  const int threads = std::max(1u, std::thread::hardware_concurrency());
  ASSIGN_OR_RETURN(const std::unique_ptr<LoadedModel> model,
                   LoadedModel::Load(command.from, threads, 1));
  ASSIGN_OR_RETURN(const std::unique_ptr<Tokenizer> tokenizer,
                   MakeTokenizer(model->config().data()));
  if (model->config().model().family() != ModelConfig::DECODER) {
    ASSIGN_OR_RETURN(const std::string answer, AnswerTo(*model, *tokenizer, command.prompt));
    std::printf("%s\n", answer.c_str());
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(std::vector<int32_t> text, Beginning(*tokenizer, command.prompt));
  std::printf("%s", command.prompt.c_str());

  const size_t context = model->config().model().context();
  const uint32_t symbols = tokenizer->symbols();
  std::vector<float> logits(std::max(symbols, model->config().model().vocabulary()));
  for (uint64_t i = 0; i < command.tokens; ++i) {
    const std::span<const int32_t> seen(text);
    model->model().Logits(seen.last(std::min(context, seen.size())), logits);
    const int32_t next = PickToken(std::span(logits).first(symbols), command.pick, i);
    text.push_back(next);
    ASSIGN_OR_RETURN(const std::string piece, tokenizer->Decode(std::span(&next, 1)));
    std::fwrite(piece.data(), 1, piece.size(), stdout);
    std::fflush(stdout);
  }
  std::printf("\n");
  return absl::OkStatus();
}

}  // namespace

void AddSampleCommand(CLI::App& app, Command& chosen) {
  auto arguments = std::make_shared<SampleCommand>();
  CLI::App* command = app.add_subcommand("sample", "Writes text with the weights of a checkpoint");
  command
      ->add_option("--from", arguments->from,
                   "Run folder (its newest checkpoint), or folder of a checkpoint")
      ->type_name("PATH")
      ->required();
  command
      ->add_option("--prompt", arguments->prompt,
                   "Beginning of the text; of a model of lines, the line to label or to answer")
      ->type_name("TEXT");
  command->add_option("--tokens", arguments->tokens, "Tokens to write")
      ->check(CLI::Range(uint64_t{1}, uint64_t{10'000'000}))
      ->capture_default_str();
  command
      ->add_option(
          "--temperature", arguments->pick.temperature,
          "Below 1 bolder than the model believes, above 1 wilder; 0: always the likeliest token")
      ->check(CLI::Range(0.0, 100.0))
      ->capture_default_str();
  command
      ->add_option("--top-k", arguments->pick.top_k,
                   "Choose among so many likeliest tokens; 0: among all")
      ->capture_default_str();
  command->add_option("--seed", arguments->pick.seed, "Same seed, same text")
      ->capture_default_str();
  command->footer(
      "Examples:\n"
      "  tug sample --from runs/job-1\n"
      "  tug sample --from runs/job-1/checkpoints/step-00000500 --prompt \"In the beginning\" "
      "--tokens 500");
  command->callback([arguments, &chosen] { chosen = [arguments] { return Sample(*arguments); }; });
}

}  // namespace tug
