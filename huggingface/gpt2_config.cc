// SPDX-License-Identifier: Apache-2.0
#include "huggingface/gpt2_config.h"

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "base/files/text_file.h"
#include "base/status_macros.h"

namespace tug {
namespace {

using Json = nlohmann::json;

constexpr uint64_t kFileLimitBytes = 1 << 20;
constexpr double kEpsilon = 1e-5;  // of LayerNorm (kernels/layernorm.h)

// A config.json with its path, for errors, and the defaults of GPT2Config.
class Config {
 public:
  Config(std::string path, Json json) : path_(std::move(path)), json_(std::move(json)) {}

  absl::Status Bad(const std::string& field, const std::string& what) const {
    const auto found = json_.find(field);
    const std::string value = found == json_.end() ? "missing" : Text(*found);
    return absl::FailedPreconditionError(
        absl::StrCat(path_, ": ", field, " is ", value, ", but ", what));
  }

  // Whether a field exists and is not null.
  bool Has(const char* field) const { return json_.contains(field) && !json_.at(field).is_null(); }

  absl::StatusOr<uint32_t> Size(const char* field) const {
    const auto found = json_.find(field);
    if (found == json_.end() || !found->is_number_unsigned() || found->get<uint64_t>() == 0 ||
        found->get<uint64_t>() > 1'000'000'000) {
      return Bad(
          field,
          "it must be a number from 1 to 1000000000; pass a folder with GPT-2's config.json");
    }
    return found->get<uint32_t>();
  }

  absl::Status Expect(const char* field, const Json& value, const Json& fallback) const {
    if (json_.value(field, fallback) == value) return absl::OkStatus();
    return Bad(field, absl::StrCat("tug supports only ", Text(value), ": choose another model"));
  }

  Json Get(const char* field, const Json& fallback) const { return json_.value(field, fallback); }

 private:
  static std::string Text(const Json& value) {
    if (value.is_structured()) return "a list or object";
    return value.dump(-1, ' ', true, Json::error_handler_t::replace).substr(0, 100);
  }

  const std::string path_;
  const Json json_;
};

absl::StatusOr<ModelConfig::Activation> ReadActivation(const Config& config) {
  const Json name = config.Get("activation_function", "gelu_new");
  for (const char* tanh : {"gelu_new", "gelu_pytorch_tanh", "gelu_fast", "gelu_python_tanh"}) {
    if (name == tanh) return ModelConfig::GELU;  // all name the same function
  }
  if (name == "relu") return ModelConfig::RELU;
  return config.Bad(
      "activation_function",
      "tug supports only gelu_new (GELU in its tanh form) and relu: choose another model");
}

}  // namespace

absl::StatusOr<ModelConfig> ReadHfConfig(const std::string& folder) {
  const std::string path = absl::StrCat(folder, "/", kHfConfigFile);
  ASSIGN_OR_RETURN(const std::string text, ReadTextFile(path, kFileLimitBytes));
  Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, " is not a JSON object; pass a folder with GPT-2's config.json"));
  }
  const Config config(path, std::move(json));
  RETURN_IF_ERROR(config.Expect("model_type", "gpt2", "gpt2"));
  RETURN_IF_ERROR(config.Expect("layer_norm_epsilon", kEpsilon, kEpsilon));
  RETURN_IF_ERROR(config.Expect("scale_attn_weights", true, true));
  RETURN_IF_ERROR(config.Expect("scale_attn_by_inverse_layer_idx", false, false));
  RETURN_IF_ERROR(config.Expect("add_cross_attention", false, false));
  ModelConfig model;
  model.set_family(ModelConfig::DECODER);
  model.set_norm(ModelConfig::PRE);
  model.set_bias(true);
  ASSIGN_OR_RETURN(const ModelConfig::Activation activation, ReadActivation(config));
  model.set_activation(activation);
  ASSIGN_OR_RETURN(const uint32_t layers, config.Size("n_layer"));
  ASSIGN_OR_RETURN(const uint32_t width, config.Size("n_embd"));
  ASSIGN_OR_RETURN(const uint32_t heads, config.Size("n_head"));
  ASSIGN_OR_RETURN(const uint32_t context,
                   config.Size(config.Has("n_positions") ? "n_positions" : "n_ctx"));
  ASSIGN_OR_RETURN(const uint32_t vocabulary, config.Size("vocab_size"));
  model.set_layers(layers);
  model.set_width(width);
  model.set_heads(heads);
  model.set_context(context);
  model.set_vocabulary(vocabulary);
  model.set_mlp_width(4 * width);
  if (config.Has("n_inner")) {
    ASSIGN_OR_RETURN(const uint32_t inner, config.Size("n_inner"));
    model.set_mlp_width(inner);
  }
  model.set_tied_head(config.Get("tie_word_embeddings", true) != Json(false));
  return model;
}

absl::Status CheckHfCanHold(const ModelConfig& config) {
  const auto refuse = [](const char* field, const char* value) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the model has ", field, " = ", value,
        ", which GPT-2's format cannot hold: export needs family DECODER, norm PRE and "
        "bias true"));
  };
  if (config.external()) return refuse("model.external", "true");
  if (config.family() != ModelConfig::DECODER) {
    return refuse("model.family", ModelConfig::Family_Name(config.family()).c_str());
  }
  if (config.norm() != ModelConfig::PRE) {
    return refuse("model.norm", ModelConfig::NormPlace_Name(config.norm()).c_str());
  }
  if (!config.bias()) return refuse("model.bias", "false");
  return absl::OkStatus();
}

std::string HfConfigJson(const ModelConfig& config, int64_t symbols,
                         std::optional<int32_t> end_of_text) {
  nlohmann::ordered_json json;
  json["architectures"] = {"GPT2LMHeadModel"};
  json["model_type"] = "gpt2";
  json["vocab_size"] = symbols;
  json["n_positions"] = config.context();
  json["n_ctx"] = config.context();
  json["n_embd"] = config.width();
  json["n_layer"] = config.layers();
  json["n_head"] = config.heads();
  if (config.mlp_width() == 4 * config.width()) {
    json["n_inner"] = nullptr;
  } else {
    json["n_inner"] = config.mlp_width();
  }
  json["activation_function"] = config.activation() == ModelConfig::RELU ? "relu" : "gelu_new";
  json["layer_norm_epsilon"] = kEpsilon;
  for (const char* field : {"resid_pdrop", "embd_pdrop", "attn_pdrop"}) {
    json[field] = config.dropout();
  }
  json["tie_word_embeddings"] = config.tied_head();
  for (const char* field : {"bos_token_id", "eos_token_id"}) {
    if (end_of_text.has_value()) {
      json[field] = *end_of_text;
    } else {
      json[field] = nullptr;
    }
  }
  json["torch_dtype"] = "float32";
  return json.dump(2) + "\n";
}

}  // namespace tug
