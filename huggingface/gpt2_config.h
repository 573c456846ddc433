#ifndef TUG_HUGGINGFACE_GPT2_CONFIG_H_
#define TUG_HUGGINGFACE_GPT2_CONFIG_H_

// config.json of Hugging Face's GPT-2 (transformers, GPT2Config) and our ModelConfig. Pure or only
// reading; thread-safe.

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/job.pb.h"

namespace tug {

inline constexpr char kHfConfigFile[] = "config.json";
inline constexpr char kHfWeightsFile[] = "model.safetensors";

// The model that `folder` holds: family, norm, activation, mlp_width, layers, width, heads,
// context, tied_head, bias and vocabulary are set, and no more. Errors, with file and remedy:
// missing, not JSON, another architecture than GPT-2, something of it that we do not compute.
absl::StatusOr<ModelConfig> ReadHfConfig(const std::string& folder);

// Errors: FAILED_PRECONDITION, naming the first field of a model that GPT-2's format cannot hold.
absl::Status CheckHfCanHold(const ModelConfig& config);

// The contents of config.json. `config` has all fields filled and can be held; `symbols`: rows of
// the embedding; `end_of_text`: its token, if the tokenizer has one.
std::string HfConfigJson(const ModelConfig& config, int64_t symbols,
                         std::optional<int32_t> end_of_text);

}  // namespace tug

#endif  // TUG_HUGGINGFACE_GPT2_CONFIG_H_
