#include "cli/plan_presets.h"

namespace tug {
namespace {

// "GPU HBM Content During Training", "How many GPUs do we need?"; the shape is Brown et al. 2020's.
// 1,024 GPUs are those of Narayanan et al. 2021, who trained such a model.
PlanPreset Gpt3() {
  PlanOptions options;
  options.parameters = 175e9;
  options.layers = 96;
  options.width = 12288;
  options.heads = 96;
  options.context = 2048;
  options.vocabulary = 50257;
  options.gpus = 1024;
  options.tokens = 300e9;
  options.days = 30;
  options.batch_tokens = 3.2e6;
  return {.name = "gpt3",
          .description = "GPT-3 175B, 300 billion tokens",
          .options = options,
          .lectures = {{"parameters", "350 GB"},
                       {"gradients", "350 GB"},
                       {"master weights", "700 GB"},
                       {"m", "700 GB"},
                       {"v", "700 GB"},
                       {"GPUs for the deadline", "800"}}};
}

// "ZeRO optimization: an overview": "HBM usage with DP degree 64".
PlanPreset SevenAndAHalfBillion() {
  PlanOptions options;
  options.parameters = 7.5e9;
  options.gpus = 64;
  return {.name = "7.5b",
          .description = "ZeRO's example, 7.5 billion parameters on 64 GPUs",
          .options = options,
          .lectures = {{"data parallel", "120 GB"},
                       {"ZeRO-1", "31.4 GB"},
                       {"ZeRO-2", "16.6 GB"},
                       {"ZeRO-3", "1.9 GB"}}};
}

// The table of "a 10B parameter LLM", which estimates activations and buffers. (It writes
// "2 * (10B * 2 bytes)" of the optimizer's states; its 80 GB are 2 * (10B * 4 bytes).)
PlanPreset TenBillion() {
  PlanOptions options;
  options.parameters = 10e9;
  options.activations_gb = 20;
  options.buffers_gb = 10;
  return {.name = "10b",
          .description =
              "10 billion parameters in mixed precision, with 20 GB of activations and "
              "10 GB of buffers",
          .options = options,
          .lectures = {{"parameters", "20 GB"},
                       {"gradients", "20 GB"},
                       {"master weights", "40 GB"},
                       {"m", "80 GB with v"},
                       {"v", "80 GB with m"},
                       {"activations", "~20 GB"},
                       {"buffers", "~10 GB"},
                       {"total", "190 GB (~176 GiB)"}}};
}

}  // namespace

std::vector<PlanPreset> PlanPresets() { return {Gpt3(), SevenAndAHalfBillion(), TenBillion()}; }

}  // namespace tug
