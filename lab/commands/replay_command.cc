// SPDX-License-Identifier: Apache-2.0
// tug replay: computes a recorded run of asynchronous training again, to the same bits.

#include <cstdio>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/cpu/cpu_affinity.h"
#include "base/cpu/thread_pool.h"
#include "base/standard_error.h"
#include "base/status_macros.h"
#include "base/time_source.h"
#include "blocks/segment_table.h"
#include "checkpoint/checkpoint.h"
#include "cli/lab_program.h"
#include "coordinator/observe/run_folder.h"
#include "data/sampler.h"
#include "data/token_file.h"
#include "lab/lab_commands.h"
#include "lab/recorded/checkpoint_values.h"
#include "lab/recorded/gradients.h"
#include "lab/recorded/recorded_run.h"
#include "lab/recorded/reexecution.h"
#include "server/sync/order_log.h"

namespace tug {
namespace {

constexpr absl::Duration kProgressInterval = absl::Seconds(2);

struct ReplayCommand {
  std::string run;
  int threads = ReadCpuBudget().usable;
};

absl::StatusOr<std::optional<TokenFile>> OpenTokens(const std::string& run,
                                                    const JobConfig& config) {
  if (config.data().random().samples() > 0) return std::optional<TokenFile>();
  const std::string path = absl::StrCat(run, "/", kTokenFile);
  ASSIGN_OR_RETURN(TokenFile file, TokenFile::Open(path));
  if (file.info().fingerprint == config.data().resolved_fingerprint()) {
    return std::optional<TokenFile>(std::move(file));
  }
  return absl::DataLossError(absl::StrCat(
      path, " does not hold the text of the training run: the run cannot be replayed"));
}

absl::Status CheckFits(const RecordedRun& recorded, const JobConfig& config,
                       const SegmentTable& table, const std::string& run) {
  if (recorded.virtual_workers == config.cluster().virtual_workers() &&
      recorded.updates.size() == table.size()) {
    return absl::OkStatus();
  }
  return absl::DataLossError(absl::StrCat(run, "/order has ", recorded.virtual_workers,
                                          " virtual workers and ", recorded.updates.size(),
                                          " segments, but its checkpoint has ",
                                          config.cluster().virtual_workers(), " and ", table.size(),
                                          ": they belong to different jobs"));
}

// Progress: on a terminal in one line, otherwise a line now and then.
class ProgressSays {
 public:
  explicit ProgressSays(size_t all) : all_(all) {}
  ~ProgressSays() {
    if (said_ && terminal_) WriteStandardError("\n");
  }
  void operator()(size_t updates) {
    const absl::Time now = SteadyNow();
    if (now < next_) return;
    next_ = now + kProgressInterval;
    said_ = true;
    const std::string text = absl::StrCat("replay: ", updates, " of ", all_, " updates");
    WriteStandardError(terminal_ ? absl::StrCat("\r", text) : absl::StrCat(text, "\n"));
  }

 private:
  const size_t all_;
  const bool terminal_ = StandardErrorIsTerminal();
  absl::Time next_ = SteadyNow() + kProgressInterval;
  bool said_ = false;
};

absl::Status Replay(const ReplayCommand& command) {
  ASSIGN_OR_RETURN(const std::vector<OrderLog> logs, ReadOrderLogs(command.run));
  ASSIGN_OR_RETURN(const RecordedRun recorded, AssembleRun(logs));
  ASSIGN_OR_RETURN(const FoundCheckpoint found, FindCheckpoint(command.run));
  ASSIGN_OR_RETURN(const CheckpointReader checkpoint, CheckpointReader::Open(found.folder));
  const JobConfig& config = found.manifest.config();
  const BlockTable& blocks = found.manifest.blocks();
  ASSIGN_OR_RETURN(const SegmentTable table,
                   SegmentTable::Create(blocks, config.comm().segment_elements()));
  RETURN_IF_ERROR(CheckFits(recorded, config, table, command.run));
  ASSIGN_OR_RETURN(const std::optional<TokenFile> tokens, OpenTokens(command.run, config));
  ASSIGN_OR_RETURN(const std::unique_ptr<Sampler> sampler,
                   MakeSampler(config, tokens.has_value() ? &*tokens : nullptr));
  ASSIGN_OR_RETURN(std::vector<std::vector<float>> start, StartWeights(config, blocks, table));
  ThreadPool pool(command.threads);
  ASSIGN_OR_RETURN(const std::unique_ptr<Gradients> gradients,
                   Gradients::Create(config, table, *sampler, pool));
  Reexecution reexecution(config, table, recorded, std::move(start),
                          [&](uint32_t virtual_worker, uint64_t clock,
                              std::span<const std::span<const float>> weights) {
                            return gradients->Compute(virtual_worker, clock, weights);
                          });
  {
    ProgressSays progress(recorded.update_count());
    RETURN_IF_ERROR(reexecution.Run(std::ref(progress)));
  }
  ASSIGN_OR_RETURN(const std::optional<Difference> difference,
                   FirstDifference(checkpoint, blocks, table, reexecution));
  const std::string what = absl::StrFormat("%d updates of %d virtual workers",
                                           recorded.update_count(), recorded.virtual_workers);
  if (difference.has_value()) {
    return absl::DataLossError(
        absl::StrCat(what, ": bits differ from ", found.folder, ": ", DifferenceText(*difference)));
  }
  std::printf("%s: same bits as %s\n", what.c_str(), found.folder.c_str());
  return absl::OkStatus();
}

}  // namespace

void AddReplayCommand(CLI::App& app, Command& chosen) {
  auto arguments = std::make_shared<ReplayCommand>();
  CLI::App* command = app.add_subcommand(kReplayCommand.name, kReplayCommand.summary);
  command
      ->add_option("RUN", arguments->run,
                   "Run folder of a job with sync.record: ORDER that ended without a failure")
      ->required();
  command->add_option("--threads", arguments->threads, "Compute threads; never changes the result")
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
  command->footer(
      "Exit code 0: same bits as the run's last checkpoint; 1: different bits, with the first "
      "difference.\nNot to be confused with `compute: REPLAY`, a job whose workers sleep through a "
      "model's times (tug help job).\n"
      "Examples:\n"
      "  tug train job.textproto --run-dir runs/asp --set sync.policy=ASP --set "
      "sync.record=ORDER\n"
      "  tug replay runs/asp");
  command->callback([arguments, &chosen] { chosen = [arguments] { return Replay(*arguments); }; });
}

}  // namespace tug
