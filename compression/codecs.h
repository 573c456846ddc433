#ifndef TUG_COMPRESSION_CODECS_H_
#define TUG_COMPRESSION_CODECS_H_

// The codecs that there are: one row each. A new one is a file, a row here and a case of
// PushCodecConfig.codec in proto/job.proto; conformance_test.cc runs over every row.

#include <cstdint>
#include <memory>
#include <span>

#include "compression/codec.h"
#include "proto/job.pb.h"

namespace tug {

struct CodecRow {
  PushCodecConfig::CodecCase id;  // also what a frame says: the number of the field
  const char* name;               // that of the field
  const char* paper;
  bool sparse;  // most elements decode to 0, and are not touched by DecodeTo::kAdd
  std::unique_ptr<const SegmentCodec> (*make)(const PushCodecConfig& config);
};

std::span<const CodecRow> Codecs();

// As `config`, all fields filled, says; null: FP32.
std::unique_ptr<const SegmentCodec> MakeCodec(const PushCodecConfig& config);

// Decodes what any of that id has encoded, whatever its settings; null if there is none.
const SegmentCodec* DecoderOf(uint32_t id);
const CodecRow* FindCodec(uint32_t id);

}  // namespace tug

#endif  // TUG_COMPRESSION_CODECS_H_
