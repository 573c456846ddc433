// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_COMPRESSION_CODECS_CODECS_H_
#define TUG_COMPRESSION_CODECS_CODECS_H_

// Table of codecs, one row each. A new codec needs a file, a row in codecs.cc and a case of
// PushCodecConfig.codec in proto/job.proto. conformance_test.cc runs over every row.

#include <cstdint>
#include <memory>
#include <span>

#include "compression/codec.h"
#include "proto/job.pb.h"

namespace tug {

struct CodecRow {
  PushCodecConfig::CodecCase id;  // field number; also the codec id of a frame
  const char* name;               // name of the field
  const char* paper;
  bool sparse;  // most elements decode to 0, and are not touched by DecodeTo::kAdd
  std::unique_ptr<const SegmentCodec> (*make)(const PushCodecConfig& config);
};

std::span<const CodecRow> Codecs();

// Codec that `config` (all fields filled) describes; null: FP32.
std::unique_ptr<const SegmentCodec> MakeCodec(const PushCodecConfig& config);

// Decoder for any settings of the codec with this id; null if there is none.
const SegmentCodec* DecoderOf(uint32_t id);
const CodecRow* FindCodec(uint32_t id);

}  // namespace tug

#endif  // TUG_COMPRESSION_CODECS_CODECS_H_
