// SPDX-License-Identifier: Apache-2.0
#include "server/replication/copy_store.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "blocks/weights_payload.h"

namespace tug {
namespace {

template <typename T>
void CopyInto(std::span<const T> from, AlignedBuffer& to) {
  TUG_CHECK_EQ(from.size_bytes(), to.size_bytes());
  if (!from.empty()) std::memcpy(to.data(), from.data(), from.size_bytes());
}

CopyShape ShapeOf(const CopyStore::Options& options, const Optimizer& optimizer) {
  return {.clocks = options.counted_clocks,
          .has_m = optimizer.keeps_m(),
          .has_v = optimizer.keeps_v(),
          .has_shadow = options.pull_codec == Codec::kChanges,
          .has_previous = options.counted_clocks == 0,
          .previous = StoredAs(options.pull_codec)};
}

}  // namespace

CopyStore::CopyStore(Options options, const SegmentTable& table, std::span<const uint32_t> copied,
                     const Optimizer& optimizer)
    : options_(options),
      table_(table),
      optimizer_(optimizer),
      shape_(ShapeOf(options, optimizer)),
      copied_(copied.begin(), copied.end()),
      copies_(table.size()),
      shadow_maker_(options.shadow) {
  using Use = LaneMemory::Use;
  LaneMemory& memory = *options_.memory;
  for (const uint32_t id : copied_) {
    const uint64_t elements = table_.segment(id).elements();
    auto copy = std::make_unique<Copy>();
    copy->version = options_.start_version * std::max(1u, shape_.clocks);
    copy->weights = memory.New(Use::kWeights, elements * sizeof(float));
    if (shape_.has_previous)
      copy->previous = memory.New(Use::kWeights, WeightsBytes(shape_.previous, elements));
    if (shape_.has_shadow) copy->shadow = memory.New(Use::kWeights, elements * sizeof(float));
    if (shape_.has_m) copy->m = memory.New(Use::kState, elements * sizeof(float));
    if (shape_.has_v) copy->v = memory.New(Use::kState, elements * sizeof(float));
    copy->clocks.assign(shape_.clocks, options_.start_version);
    copies_[id] = std::move(copy);
  }
}

std::span<float> CopyStore::weights(uint32_t segment) { return copies_[segment]->weights.floats(); }
std::span<float> CopyStore::m(uint32_t segment) { return copies_[segment]->m.floats(); }
std::span<float> CopyStore::v(uint32_t segment) { return copies_[segment]->v.floats(); }

void CopyStore::SetClocks(uint32_t segment, uint64_t version, std::span<const uint64_t> clocks) {
  Copy& copy = *copies_[segment];
  TUG_CHECK_EQ(clocks.size(), copy.clocks.size());
  copy.version = version;
  copy.clocks.assign(clocks.begin(), clocks.end());
}

void CopyStore::Forget() {
  for (const uint32_t id : copied_) Forget(id);
}

void CopyStore::InheritFrom(CopyStore& before, uint32_t segment) {
  if (!before.has(segment)) return Forget(segment);
  copies_[segment] = std::move(before.copies_[segment]);
  copies_[segment]->follows = false;
}

void CopyStore::Set(uint32_t segment, const HeldSegment& held) {
  Copy& copy = *copies_[segment];
  copy.version = held.version;
  copy.has_previous = !held.previous.empty();
  CopyInto(held.weights, copy.weights);
  CopyInto(held.m, copy.m);
  CopyInto(held.v, copy.v);
  CopyInto(held.shadow, copy.shadow);
  copy.has_shadow = shape_.has_shadow;
  if (copy.has_previous) CopyInto(held.previous, copy.previous);
  copy.clocks.assign(held.clocks.begin(), held.clocks.end());
  copy.norm = held.norm;
}

std::optional<HeldSegment> CopyStore::Held(uint32_t segment) const {
  const Copy& copy = *copies_[segment];
  if (copy.version == kNoVersion) return std::nullopt;
  HeldSegment held{.version = copy.version,
                   .weights = copy.weights.floats(),
                   .m = copy.m.floats(),
                   .v = copy.v.floats(),
                   .previous = {},
                   .clocks = copy.clocks,
                   .norm = copy.norm};
  if (shadows()) held.shadow = copy.has_shadow ? copy.shadow.floats() : copy.weights.floats();
  if (copy.has_previous) held.previous = {copy.previous.data(), copy.previous.size_bytes()};
  return held;
}

UpdateSpans CopyStore::Turn(Copy& copy) const {
  copy.has_previous = shape_.has_previous;
  if (shadows()) {
    const bool had_shadow = std::exchange(copy.has_shadow, true);
    if (!had_shadow) CopyInto(std::as_const(copy.weights).floats(), copy.shadow);
    std::swap(copy.shadow, copy.previous);
    return {.weights_in = copy.weights.floats(), .weights_out = copy.weights.floats()};
  }
  if (!shape_.has_previous || options_.pull_codec != Codec::kNone) {
    const std::span<float> weights = copy.weights.floats();
    if (shape_.has_previous) {
      EncodeWeights(options_.pull_codec, weights,
                    {copy.previous.data(), copy.previous.size_bytes()});
    }
    return {.weights_in = weights, .weights_out = weights};
  }
  std::swap(copy.weights, copy.previous);
  return {.weights_in = std::as_const(copy.previous).floats(),
          .weights_out = copy.weights.floats()};
}

void CopyStore::MakeShadow(uint32_t segment, Copy& copy) {
  const Segment& place = table_.segment(segment);
  changes_.resize(std::max(changes_.size(), shadow_maker_.MaxChangesBytes(place.elements())));
  shadow_maker_.Make(place, copy.version + 1, copy.weights.floats(), copy.previous.floats(),
                     copy.shadow.floats(), changes_);
}

void CopyStore::Apply(uint32_t segment, Copy& copy, const SegmentUpdate& update) {
  UpdateSpans spans = Turn(copy);
  spans.gradient = update.gradient;
  spans.m = copy.m.floats();
  spans.v = copy.v.floats();
  if (update.skipped()) {
    if (spans.weights_in.data() != spans.weights_out.data()) {
      std::copy(spans.weights_in.begin(), spans.weights_in.end(), spans.weights_out.begin());
    }
  } else if (!options_.leave_out_update) {
    TUG_CHECK_EQ(update.gradient.size(), table_.segment(segment).elements());
    optimizer_.Update(update.step, spans);
  }
  if (shadows()) MakeShadow(segment, copy);
  copy.norm = update.norm;
  ++copy.version;
}

bool CopyStore::OnUpdate(uint32_t segment, uint64_t version, uint32_t virtual_worker,
                         std::span<const std::byte> payload) {
  Copy& copy = *copies_[segment];
  const std::optional<SegmentUpdate> update =
      ReadUpdatePayload(payload, table_.segment(segment).elements());
  if (!update.has_value()) return false;
  if (shape_.clocks > 0 && virtual_worker >= shape_.clocks) return false;
  if (copy.version == kNoVersion || version != copy.version) return true;
  Apply(segment, copy, *update);
  if (shape_.clocks > 0) ++copy.clocks[virtual_worker];
  copy.follows = true;
  return true;
}

bool CopyStore::OnCopy(uint32_t segment, uint64_t version, std::span<const std::byte> payload) {
  Copy& copy = *copies_[segment];
  std::optional<HeldSegment> held =
      ReadCopyPayload(payload, table_.segment(segment).elements(), shape_);
  if (!held.has_value() || version == kNoVersion) return false;
  if (copy.follows && version <= copy.version) return true;
  held->version = version;
  Set(segment, *held);
  copy.follows = true;
  return true;
}

}  // namespace tug
