// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_PLAN_PIPELINE_PARALLEL_H_
#define TUG_PLAN_PIPELINE_PARALLEL_H_

#include <cstdint>

#include "collective/schedules/cost.h"
#include "plan/model_shape.h"

namespace tug {

// Pipeline parallelism: p stages of L / p layers; a step's batch is split into m micro-batches that
// flow through them. A GPU has Psi / p parameters. Source: Huang et al. 2019 (GPipe); Narayanan et
// al. 2021 (Megatron-LM), section 2.2; the lectures' "Pipeline Parallelism (Inter-layer)". All
// functions are pure. REQUIRES: p, m >= 1.

// Time in which a stage waits for the pipeline to fill and drain, relative to its compute time: (p
// - 1) / m, for GPipe and 1F1B alike.
double BubbleFraction(uint32_t stages, uint64_t micro_batches);
// The same time relative to the whole step: (p - 1) / (m + p - 1).
double IdleShare(uint32_t stages, uint64_t micro_batches);

// Turns of the pipeline in which some stage computes, each way: m + p - 1. A stage's other work per
// micro-batch, such as tensor parallelism's all-reduces, costs a step as often.
uint64_t PipelineTurns(uint32_t stages, uint64_t micro_batches);

// Micro-batches whose activations the first stage holds at once under 1F1B: min(p, m). GPipe holds
// all m.
uint64_t MicroBatchesHeld(uint32_t stages, uint64_t micro_batches);

// Seconds of the messages between stages in a step, none of them hidden: LayerOutputBytes of a
// micro-batch of b samples in each turn in which some stage passes one on. Micro-batch i leaves
// stage j, except the last stage, after turn i + j: m + p - 2 turns forward and as many backward; 0
// for one stage.
double PipelineSeconds(const TransformerShape& shape, double samples, uint32_t stages,
                       uint64_t micro_batches, const LinkCost& link);

}  // namespace tug

#endif  // TUG_PLAN_PIPELINE_PARALLEL_H_
