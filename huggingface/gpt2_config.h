// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_HUGGINGFACE_GPT2_CONFIG_H_
#define TUG_HUGGINGFACE_GPT2_CONFIG_H_

// Converts between config.json of Hugging Face's GPT-2 (transformers, GPT2Config) and ModelConfig.
// Pure, or reads files only; thread-safe.

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/job.pb.h"

namespace tug {

inline constexpr char kHfConfigFile[] = "config.json";
inline constexpr char kHfWeightsFile[] = "model.safetensors";

// Reads the model in `folder`. Sets only family, norm, activation, mlp_width, layers, width, heads,
// context, tied_head, bias and vocabulary. Errors, with file and remedy: missing file, not JSON,
// not GPT-2's architecture, or a variant of it that is not supported.
absl::StatusOr<ModelConfig> ReadHfConfig(const std::string& folder);

// Errors: FAILED_PRECONDITION, naming the first field that GPT-2's format cannot represent.
absl::Status CheckHfCanHold(const ModelConfig& config);

// Contents of config.json. REQUIRES: `config` has all defaults filled in and passes CheckHfCanHold.
// `symbols`: rows of the embedding; `end_of_text`: its token, if the tokenizer has one.
std::string HfConfigJson(const ModelConfig& config, int64_t symbols,
                         std::optional<int32_t> end_of_text);

}  // namespace tug

#endif  // TUG_HUGGINGFACE_GPT2_CONFIG_H_
