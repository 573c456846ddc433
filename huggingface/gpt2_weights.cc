// SPDX-License-Identifier: Apache-2.0
#include "huggingface/gpt2_weights.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "huggingface/gpt2_config.h"
#include "model/layout.h"

namespace tug {
namespace {

constexpr char kPrefix[] = "transformer.";
constexpr char kHead[] = "lm_head.weight";
constexpr char kEmbedding[] = "wte.weight";

// IEEE 754 binary16.
float WidenHalf(uint16_t bits) {
  const uint32_t sign = uint32_t{bits & 0x8000u} << 16;
  const uint32_t exponent = (bits >> 10) & 0x1F;
  const uint32_t mantissa = bits & 0x3FF;
  if (exponent == 0) {  // zero or subnormal: exact in FP32
    const float value = std::ldexp(static_cast<float>(mantissa), -24);
    return sign != 0 ? -value : value;
  }
  const uint32_t wide = exponent == 0x1F ? 0xFF : exponent + 127 - 15;
  return std::bit_cast<float>(sign | wide << 23 | mantissa << 13);
}

float WidenBf16(uint16_t bits) { return std::bit_cast<float>(uint32_t{bits} << 16); }

template <float (*Widen)(uint16_t)>
void CopyWidened(const std::byte* from, std::span<float> out) {
  for (size_t i = 0; i < out.size(); ++i) {
    uint16_t bits;
    std::memcpy(&bits, from + i * sizeof(bits), sizeof(bits));
    out[i] = Widen(bits);
  }
}

void Copy(const TensorView& tensor, uint64_t first, std::span<float> out) {
  if (tensor.dtype == "F32") {
    std::memcpy(out.data(), tensor.bytes.data() + first * sizeof(float), out.size_bytes());
  } else if (tensor.dtype == "F16") {
    CopyWidened<WidenHalf>(tensor.bytes.data() + first * 2, out);
  } else {
    CopyWidened<WidenBf16>(tensor.bytes.data() + first * 2, out);
  }
}

bool IsReadable(const TensorView& tensor) {
  return tensor.dtype == "F32" || tensor.dtype == "F16" || tensor.dtype == "BF16";
}

bool HasEqualValues(const TensorView& a, const TensorView& b) {
  if (a.shape != b.shape) return false;
  if (a.dtype == b.dtype) return std::ranges::equal(a.bytes, b.bytes);
  if (!IsReadable(a) || !IsReadable(b)) return false;
  uint64_t elements = 1;
  for (const uint64_t extent : a.shape) elements *= extent;
  std::vector<float> of_a, of_b;
  constexpr uint64_t kChunk = 1 << 16;
  for (uint64_t begin = 0; begin < elements; begin += kChunk) {
    of_a.resize(std::min(kChunk, elements - begin));
    of_b.resize(of_a.size());
    Copy(a, begin, of_a);
    Copy(b, begin, of_b);
    if (of_a != of_b) return false;
  }
  return true;
}

// Attention masks such as "h.3.attn.bias", saved by older versions of transformers.
bool IsMask(const std::string& tensor) {
  return tensor.ends_with(".attn.bias") || tensor.ends_with(".attn.masked_bias");
}

std::string ShapeText(const auto& shape) {
  return absl::StrCat("[", absl::StrJoin(shape, ","), "]");
}

}  // namespace

std::string HfName(const std::string& tensor) {
  return tensor == kHead ? tensor : absl::StrCat("transformer.", tensor);
}

Gpt2Weights::Gpt2Weights(SafetensorsReader file, ModelConfig config)
    : file_(std::move(file)), config_(std::move(config)) {}

absl::Status Gpt2Weights::IndexTensors() {
  for (size_t i = 0; i < file_.tensors().size(); ++i) {
    std::string name = file_.tensors()[i].name;
    if (name.starts_with(kPrefix)) name.erase(0, std::string_view(kPrefix).size());
    if (index_.emplace(name, i).second) continue;
    return absl::FailedPreconditionError(absl::StrCat(file_.path(), " has both ", name, " and ",
                                                      kPrefix, name, ": remove one of them"));
  }
  return absl::OkStatus();
}

void Gpt2Weights::ResolveHead() {
  if (!config_.tied_head() || Find(kHead) == nullptr) return;
  if (Find(kEmbedding) == nullptr) {
    index_[kEmbedding] = index_[kHead];
  } else if (!HasEqualValues(*Find(kHead), *Find(kEmbedding))) {
    config_.set_tied_head(false);
    has_unexpected_head_ = true;
  }
}

absl::StatusOr<Gpt2Weights> Gpt2Weights::Open(const std::string& folder) {
  ASSIGN_OR_RETURN(ModelConfig config, ReadHfConfig(folder));
  const std::string path = absl::StrCat(folder, "/", kHfWeightsFile);
  std::error_code error;
  if (!std::filesystem::exists(path, error)) {
    return absl::NotFoundError(
        absl::StrCat(path,
                     " is missing: pass a folder with all weights in this one file "
                     "(pytorch_model.bin and sharded files are not supported)"));
  }
  ASSIGN_OR_RETURN(SafetensorsReader file, SafetensorsReader::Open(path, TensorTypes::kAny));
  Gpt2Weights weights(std::move(file), std::move(config));
  RETURN_IF_ERROR(weights.IndexTensors());
  weights.ResolveHead();
  return weights;
}

const TensorView* Gpt2Weights::Find(const std::string& tensor) const {
  const auto found = index_.find(tensor);
  return found == index_.end() ? nullptr : &file_.tensors()[found->second];
}

absl::Status Gpt2Weights::Check(const BlockTable& blocks) const {
  for (const BlockSpec& block : blocks.blocks()) {
    for (const TensorSpec& tensor : block.tensors()) {
      const TensorView* view = Find(tensor.name());
      if (view == nullptr) {
        return absl::FailedPreconditionError(
            absl::StrCat(file_.path(), " has no tensor ", HfName(tensor.name()),
                         tensor.name() == kHead ? ": if the head is tied to the embedding, set "
                                                  "tie_word_embeddings to true in its config.json"
                                                : ": it does not match its config.json"));
      }
      std::vector<uint64_t> wanted(tensor.shape().begin(), tensor.shape().end());
      if (tensor.name() == "wpe.weight" && view->shape.size() == 2) {
        wanted[0] = std::max(wanted[0], view->shape[0]);
      }
      if (view->shape != wanted) {
        return absl::FailedPreconditionError(absl::StrCat(
            file_.path(), ": ", view->name, " has the shape ", ShapeText(view->shape), ", not ",
            ShapeText(tensor.shape()), ": it does not match its config.json"));
      }
      if (!IsReadable(*view)) {
        return absl::FailedPreconditionError(
            absl::StrCat(file_.path(), ": ", view->name, " has type ", view->dtype,
                         ": convert the weights to F32, F16 or BF16"));
      }
    }
  }
  return absl::OkStatus();
}

std::vector<std::string> Gpt2Weights::Unused(const BlockTable& blocks) const {
  std::set<std::string> used;
  for (const BlockSpec& block : blocks.blocks()) {
    for (const TensorSpec& tensor : block.tensors()) used.insert(tensor.name());
  }
  if (config_.tied_head()) used.insert(kHead);
  std::vector<std::string> unused;
  for (const auto& [name, index] : index_) {
    if (used.contains(name) || IsMask(name)) continue;
    const TensorView& tensor = file_.tensors()[index];
    unused.push_back(absl::StrCat(tensor.name, " (", tensor.dtype, ")"));
  }
  return unused;
}

void Gpt2Weights::ReadRange(const BlockSpec& block, uint64_t begin, uint64_t end,
                            std::span<float> out) const {
  TUG_CHECK_EQ(out.size(), end - begin);
  uint64_t tensor_begin = 0;  // offset in the block
  for (const TensorSpec& tensor : block.tensors()) {
    const uint64_t tensor_end = tensor_begin + ElementCount(tensor);
    const uint64_t first = std::max(begin, tensor_begin);
    const uint64_t last = std::min(end, tensor_end);
    if (first < last) {
      const TensorView* view = Find(tensor.name());
      TUG_CHECK(view != nullptr) << tensor.name();
      Copy(*view, first - tensor_begin, out.subspan(first - begin, last - first));
    }
    tensor_begin = tensor_end;
  }
}

}  // namespace tug
