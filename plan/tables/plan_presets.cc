// SPDX-License-Identifier: Apache-2.0
#include "plan/tables/plan_presets.h"

namespace tug {

const std::vector<PlanPreset>& PlanPresets() {
  static const auto* const presets = new std::vector<PlanPreset>{
      // "GPU HBM Content During Training", "How many GPUs do we need?"; the shape is from Brown et
      // al. 2020, the 1,024 GPUs from Narayanan et al. 2021, who trained such a model.
      {.name = "gpt3",
       .description = "GPT-3 175B, 300 billion tokens",
       .arguments = {{"--parameters", "175e9"},
                     {"--layers", "96"},
                     {"--width", "12288"},
                     {"--heads", "96"},
                     {"--context", "2048"},
                     {"--vocabulary", "50257"},
                     {"--gpus", "1024"},
                     {"--tokens", "300e9"},
                     {"--days", "30"},
                     {"--batch-tokens", "3.2e6"}},
       .lectures = {{"parameters", "350 GB"},
                    {"gradients", "350 GB"},
                    {"master weights", "700 GB"},
                    {"m", "700 GB"},
                    {"v", "700 GB"},
                    {"GPUs for the deadline", "800"}}},
      // "ZeRO optimization: an overview": "HBM usage with DP degree 64".
      {.name = "7.5b",
       .description = "ZeRO's example, 7.5 billion parameters on 64 GPUs",
       .arguments = {{"--parameters", "7.5e9"}, {"--gpus", "64"}},
       .lectures = {{"data parallel", "120 GB"},
                    {"ZeRO-1", "31.4 GB"},
                    {"ZeRO-2", "16.6 GB"},
                    {"ZeRO-3", "1.9 GB"}}},
      // The table of "a 10B parameter LLM", which estimates activations and buffers. (For the
      // optimizer's states it says "2 * (10B * 2 bytes)"; its 80 GB are 2 * (10B * 4 bytes).)
      {.name = "10b",
       .description = "10 billion parameters, 20 GB of activations, 10 GB of buffers",
       .arguments = {{"--parameters", "10e9"}, {"--activations-gb", "20"}, {"--buffers-gb", "10"}},
       .lectures = {{"parameters", "20 GB"},
                    {"gradients", "20 GB"},
                    {"master weights", "40 GB"},
                    {"m", "80 GB with v"},
                    {"v", "80 GB with m"},
                    {"activations", "~20 GB"},
                    {"buffers", "~10 GB"},
                    {"total", "190 GB (~176 GiB)"}}}};
  return *presets;
}

}  // namespace tug
