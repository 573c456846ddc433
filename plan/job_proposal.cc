// SPDX-License-Identifier: Apache-2.0
#include "plan/job_proposal.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "plan/model_shape.h"

namespace tug {
namespace {

constexpr uint32_t kByteSymbols = 256;
constexpr uint32_t kPieces = 8000;
constexpr double kBytesPerPiece = 4;
constexpr double kTrainingFraction = 0.9;
constexpr double kTokensPerParameter = 10;
constexpr double kFlopsPerParameter = 6;  // and token: forward and backward
constexpr uint64_t kEvaluations = 10;
constexpr uint64_t kMinSteps = 100;

struct Shape {
  uint32_t layers, width, heads, context, global_batch;
  double learning_rate;
};
constexpr Shape kShapes[] = {
    {2, 64, 2, 64, 16, 3e-3},   {4, 128, 4, 128, 16, 2e-3}, {4, 256, 4, 256, 16, 1e-3},
    {6, 384, 6, 256, 32, 1e-3}, {8, 512, 8, 512, 32, 8e-4}, {12, 768, 12, 1024, 64, 6e-4},
};

uint64_t ParametersOf(const Shape& shape, uint32_t symbols) {
  return DecoderParameters({.layers = shape.layers,
                            .width = shape.width,
                            .heads = shape.heads,
                            .context = shape.context,
                            .vocabulary = symbols});
}

// Rounded down to two digits.
uint64_t Round(double number) {
  const double unit = std::pow(10, std::max(0.0, std::floor(std::log10(number)) - 1));
  return static_cast<uint64_t>(std::floor(number / unit) * unit);
}

std::string Short(uint64_t number) {
  if (number >= 1'000'000) return absl::StrFormat("%.1f million", number / 1e6);
  return absl::StrFormat("%d thousand", number / 1000);
}

}  // namespace

JobProposal ProposeJob(const ProposalInput& input) {
  JobProposal proposal{.input = input};
  proposal.nodes = input.cores > 1 ? 2 : 1;
  proposal.pieces = input.text_bytes >= JobProposal::kPiecesFromBytes;
  const double tokens =
      static_cast<double>(input.text_bytes) / (proposal.pieces ? kBytesPerPiece : 1);
  const double flops = JobProposal::kCoreFlops * input.cores * input.minutes * 60;
  const Shape* chosen = nullptr;
  for (const Shape& shape : kShapes) {
    const uint64_t parameters = ParametersOf(shape, proposal.pieces ? kPieces : kByteSymbols);
    const auto n = static_cast<double>(parameters);
    const bool fits = kFlopsPerParameter * n * kTokensPerParameter * n <= flops && n <= tokens;
    if (chosen != nullptr && !fits) break;
    chosen = &shape;
    proposal.parameters = parameters;
  }
  proposal.layers = chosen->layers;
  proposal.width = chosen->width;
  proposal.heads = chosen->heads;
  proposal.context = chosen->context;
  proposal.global_batch = chosen->global_batch;
  proposal.learning_rate = chosen->learning_rate;
  const double trained = kTrainingFraction * tokens;
  const double affordable = flops / (kFlopsPerParameter * static_cast<double>(proposal.parameters));
  const double step_tokens = double{1} * proposal.context * proposal.global_batch;
  const double most = std::min(affordable, JobProposal::kMaxEpochs * trained);
  proposal.steps = std::max(kMinSteps, Round(most / step_tokens));
  proposal.epochs = static_cast<double>(proposal.steps) * step_tokens / trained;
  proposal.eval_interval = proposal.steps / kEvaluations;
  return proposal;
}

std::string JobFileText(const JobProposal& p) {
  const std::string path = absl::Utf8SafeCEscape(p.input.data_path);
  return absl::StrCat(
      "# A GPT trained on ", path, ".\n# Train it: tug train JOB. All fields: tug help job.\n",
      "name: \"", absl::Utf8SafeCEscape(p.input.name), "\"\n\n",
      absl::StrFormat("# Processes on this machine (%d %s). Results do not depend on the number of "
                      "servers.\ncluster { servers: %d workers: %d }\n\n",
                      p.input.cores, p.input.cores == 1 ? "core" : "cores", p.nodes, p.nodes),
      p.pieces ? "# The text, in pieces learned from it. The last tenth is kept for validation.\n"
               : "# The text, byte by byte. The last tenth is kept for validation.\n",
      "data { path: \"", path,
      "\" tokenizer: ", p.pieces ? absl::StrCat("SENTENCEPIECE pieces: ", kPieces) : "BYTE",
      " }\n\n",
      absl::StrFormat("# A decoder of %s parameters.\n"
                      "model { layers: %d width: %d heads: %d context: %d }\n\n",
                      Short(p.parameters), p.layers, p.width, p.heads, p.context),
      absl::StrFormat("# %d x %d tokens per step, %.2g epochs: sized for %g minutes at %.0f "
                      "GFLOP/s per core. Ends early once five\n"
                      "# evaluations in a row have not improved.\n"
                      "train { steps: %d global_batch: %d eval_interval: %d eval_samples: 256 "
                      "patience: 5 }\n\n",
                      p.global_batch, p.context, p.epochs, p.input.minutes,
                      JobProposal::kCoreFlops / 1e9, p.steps, p.global_batch, p.eval_interval),
      absl::StrFormat("# AdamW. The rate rises during the first steps, then falls along a "
                      "cosine.\noptimizer { learning_rate: %g }\n\n",
                      p.learning_rate),
      absl::StrFormat("# Checkpoints, in runs/NAME-1/checkpoints: tug train --resume continues "
                      "from the last one.\ncheckpoint { interval: %d }\n",
                      p.eval_interval));
}

}  // namespace tug
