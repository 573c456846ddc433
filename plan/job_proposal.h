// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_PLAN_JOB_PROPOSAL_H_
#define TUG_PLAN_JOB_PROPOSAL_H_

// Proposes a first job for a text and a machine (`tug new`): a decoder whose training fits a time
// budget. Pure.

#include <cstdint>
#include <string>

namespace tug {

struct ProposalInput {
  std::string name;
  std::string data_path;  // absolute
  uint64_t text_bytes = 0;
  uint32_t cores = 1;
  double minutes = 10;
};

// Rules:
//   tokenizer   BYTE; SENTENCEPIECE, with about 4 bytes a token, from kPiecesFromBytes on
//   model       the largest of a list that is trained with 10 tokens per parameter within the
//               time, at 6 N operations per token, and has at most one parameter per token of the
//               text. Hoffmann et al. 2022 recommend 20 tokens per parameter: a run that is
//               extended gains more from the larger model.
//   steps       as many as the time allows, at most kMaxEpochs of the text
//   processes   two servers and two workers; one of each on one core
struct JobProposal {
  static constexpr double kCoreFlops = 40e9;  // assumed FP32 rate of a core
  static constexpr uint64_t kPiecesFromBytes = 8'000'000;
  static constexpr double kMaxEpochs = 40;

  ProposalInput input;
  uint32_t nodes = 1;  // servers, and workers
  bool pieces = false;
  uint32_t layers = 0, width = 0, heads = 0, context = 0;
  uint32_t global_batch = 0;
  uint64_t parameters = 0;
  uint64_t steps = 0;
  double epochs = 0;  // of the training split
  uint64_t eval_interval = 0;
  double learning_rate = 0;
};

JobProposal ProposeJob(const ProposalInput& input);

// A commented job file.
std::string JobFileText(const JobProposal& proposal);

}  // namespace tug

#endif  // TUG_PLAN_JOB_PROPOSAL_H_
