#ifndef TUG_CLI_EXPERIMENT_COMPRESSION_H_
#define TUG_CLI_EXPERIMENT_COMPRESSION_H_

// `tug experiment compression`: the same training with several codecs, on links of several rates.
//
//   1. Plan (compression_plan.h): the jobs of both parts, links and learning.
//   2. Run them one after the other; with hosts, those of a link on a testbed with links of its
//      rate.
//   3. After each job write what is known: report.html, compression.json, compression.md.
//
// An interrupt ends the job that runs, and the experiment with it.

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "cli/commands.h"
#include "cli/compression_plan.h"

namespace tug {

absl::Status RunCompressionExperiment(const CompressionArguments& arguments);

void AddExperimentCompression(CLI::App& experiment, Command& chosen);

}  // namespace tug

#endif  // TUG_CLI_EXPERIMENT_COMPRESSION_H_
