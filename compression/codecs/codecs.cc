// SPDX-License-Identifier: Apache-2.0
#include "compression/codecs/codecs.h"

#include <vector>

#include "compression/dense/bf16.h"
#include "compression/dense/fp16.h"
#include "compression/dense/int4.h"
#include "compression/dense/int8.h"
#include "compression/dense/natural.h"
#include "compression/dense/one_bit.h"
#include "compression/dense/qsgd.h"
#include "compression/dense/tern_grad.h"
#include "compression/low_rank/power_sgd.h"
#include "compression/sparse/dgc.h"
#include "compression/sparse/random_k.h"
#include "compression/sparse/top_k.h"
#include "compression/sparse/top_k_int8.h"

namespace tug {
namespace {

template <typename T>
std::unique_ptr<const SegmentCodec> Make(const PushCodecConfig& config) {
  if constexpr (std::is_default_constructible_v<T>) {
    return std::make_unique<T>();
  } else {
    return std::make_unique<T>(config);
  }
}

constexpr CodecRow kCodecs[] = {
    // id, name, paper, sparse, make
    {PushCodecConfig::kBf16, "bf16", "-", false, Make<Bf16Codec>},
    {PushCodecConfig::kFp16, "fp16", "Micikevicius et al. 2018", false, Make<Fp16Codec>},
    {PushCodecConfig::kInt8, "int8", "Dettmers 2016; Wang et al. 2023", false, Make<Int8Codec>},
    {PushCodecConfig::kOneBit, "one_bit", "Seide et al. 2014; Karimireddy et al. 2019", false,
     Make<OneBitCodec>},
    {PushCodecConfig::kTopK, "top_k", "Aji and Heafield 2017", true, Make<TopKCodec>},
    {PushCodecConfig::kRandomK, "random_k", "Stich et al. 2018", true, Make<RandomKCodec>},
    {PushCodecConfig::kTopKInt8, "top_k_int8", "Aji and Heafield 2017", true, Make<TopKInt8Codec>},
    {PushCodecConfig::kInt4, "int4", "Dettmers et al. 2022", false, Make<Int4Codec>},
    {PushCodecConfig::kQsgd, "qsgd", "Alistarh et al. 2017", false, Make<QsgdSegmentCodec>},
    {PushCodecConfig::kTernGrad, "tern_grad", "Wen et al. 2017", false, Make<TernGradCodec>},
    {PushCodecConfig::kNatural, "natural", "Horvath et al. 2022", false, Make<NaturalCodec>},
    {PushCodecConfig::kDgc, "dgc", "Lin et al. 2018", true, Make<DgcSegmentCodec>},
    {PushCodecConfig::kPowerSgd, "power_sgd", "Vogels et al. 2019", false,
     Make<PowerSgdSegmentCodec>},
};

// Decoders by id.
std::vector<std::unique_ptr<const SegmentCodec>> MakeDecoders() {
  std::vector<std::unique_ptr<const SegmentCodec>> decoders;
  for (const CodecRow& row : kCodecs) {
    if (decoders.size() <= row.id) decoders.resize(row.id + 1);
    decoders[row.id] = row.make(PushCodecConfig());
  }
  return decoders;
}

}  // namespace

std::span<const CodecRow> Codecs() { return kCodecs; }

const CodecRow* FindCodec(uint32_t id) {
  for (const CodecRow& row : kCodecs) {
    if (row.id == id) return &row;
  }
  return nullptr;
}

std::unique_ptr<const SegmentCodec> MakeCodec(const PushCodecConfig& config) {
  const CodecRow* row = FindCodec(config.codec_case());
  return row == nullptr ? nullptr : row->make(config);
}

const SegmentCodec* DecoderOf(uint32_t id) {
  static const std::vector<std::unique_ptr<const SegmentCodec>>& decoders =
      *new std::vector<std::unique_ptr<const SegmentCodec>>(MakeDecoders());
  return id < decoders.size() ? decoders[id].get() : nullptr;
}

}  // namespace tug
