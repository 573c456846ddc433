// SPDX-License-Identifier: Apache-2.0
#include "server/replication/copy_payload.h"

#include <cstring>

#include "base/check.h"
#include "blocks/weights_payload.h"

namespace tug {
namespace {

// UpdateStep and NormEntry, 64 bytes.
struct UpdateRecord {
  static constexpr uint32_t kWeightDecay = 1;
  static constexpr uint32_t kSkipped = 2;

  uint64_t t = 0;
  double position = 0;
  float step_scale = 0;
  float gradient_scale = 0;
  uint32_t flags = 0;
  uint32_t reserved = 0;
  NormEntry norm;
  uint64_t reserved_too[2] = {0, 0};
};
static_assert(sizeof(UpdateRecord) == 64);

// Writes one part after another.
class Writer {
 public:
  explicit Writer(std::span<std::byte> out) : out_(out) {}
  template <typename T>
  void Put(std::span<const T> values) {
    if (values.empty()) return;
    std::memcpy(out_.data(), values.data(), values.size_bytes());
    out_ = out_.subspan(values.size_bytes());
  }
  bool full() const { return out_.empty(); }

 private:
  std::span<std::byte> out_;
};

// Reads one part after another. REQUIRES: the part exists.
class Reader {
 public:
  explicit Reader(std::span<const std::byte> in) : in_(in) {}
  template <typename T>
  std::span<const T> Take(uint64_t count) {
    const std::span<const std::byte> part = in_.first(count * sizeof(T));
    in_ = in_.subspan(part.size());
    return {reinterpret_cast<const T*>(part.data()), count};
  }
  std::span<const std::byte> rest() const { return in_; }

 private:
  std::span<const std::byte> in_;
};

}  // namespace

uint64_t UpdatePayloadBytes(const SegmentUpdate& update) {
  return sizeof(UpdateRecord) + update.gradient.size_bytes();
}

void WriteUpdatePayload(const SegmentUpdate& update, std::span<std::byte> out) {
  const UpdateRecord record{.t = update.step.t,
                            .position = update.step.position,
                            .step_scale = update.step.step_scale,
                            .gradient_scale = update.step.gradient_scale,
                            .flags = (update.step.weight_decay ? UpdateRecord::kWeightDecay : 0) |
                                     (update.skipped() ? UpdateRecord::kSkipped : 0),
                            .norm = update.norm};
  Writer writer(out);
  writer.Put(std::span(&record, 1));
  writer.Put(update.gradient);
  TUG_CHECK(writer.full());
}

std::optional<SegmentUpdate> ReadUpdatePayload(std::span<const std::byte> payload,
                                               uint64_t elements) {
  UpdateRecord record;
  if (payload.size() < sizeof(record)) return std::nullopt;
  std::memcpy(&record, payload.data(), sizeof(record));
  const uint64_t expected = (record.flags & UpdateRecord::kSkipped) != 0 ? 0 : elements;
  if (payload.size() != sizeof(record) + expected * sizeof(float)) return std::nullopt;
  Reader reader(payload.subspan(sizeof(record)));
  return SegmentUpdate{.step = {.t = record.t,
                                .position = record.position,
                                .step_scale = record.step_scale,
                                .weight_decay = (record.flags & UpdateRecord::kWeightDecay) != 0,
                                .gradient_scale = record.gradient_scale},
                       .norm = record.norm,
                       .gradient = reader.Take<float>(expected)};
}

uint64_t CopyPayloadBytes(const HeldSegment& segment) {
  return segment.clocks.size_bytes() + sizeof(NormEntry) + segment.weights.size_bytes() +
         segment.m.size_bytes() + segment.v.size_bytes() + segment.shadow.size_bytes() +
         segment.previous.size_bytes();
}

void WriteCopyPayload(const HeldSegment& segment, std::span<std::byte> out) {
  Writer writer(out);
  writer.Put(segment.clocks);
  writer.Put(std::span(&segment.norm, 1));
  writer.Put(segment.weights);
  writer.Put(segment.m);
  writer.Put(segment.v);
  writer.Put(segment.shadow);
  writer.Put(segment.previous);
  TUG_CHECK(writer.full());
}

std::optional<HeldSegment> ReadCopyPayload(std::span<const std::byte> payload, uint64_t elements,
                                           const CopyShape& shape) {
  const uint64_t vectors =
      1 + (shape.has_m ? 1 : 0) + (shape.has_v ? 1 : 0) + (shape.has_shadow ? 1 : 0);
  const uint64_t least =
      shape.clocks * sizeof(uint64_t) + sizeof(NormEntry) + vectors * elements * sizeof(float);
  const uint64_t previous = shape.has_previous ? WeightsBytes(shape.previous, elements) : 0;
  if (payload.size() != least && payload.size() != least + previous) return std::nullopt;
  Reader reader(payload);
  HeldSegment segment;
  segment.clocks = reader.Take<uint64_t>(shape.clocks);
  segment.norm = reader.Take<NormEntry>(1)[0];
  segment.weights = reader.Take<float>(elements);
  if (shape.has_m) segment.m = reader.Take<float>(elements);
  if (shape.has_v) segment.v = reader.Take<float>(elements);
  if (shape.has_shadow) segment.shadow = reader.Take<float>(elements);
  segment.previous = reader.rest();
  return segment;
}

}  // namespace tug
