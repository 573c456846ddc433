// SPDX-License-Identifier: Apache-2.0
#include "server/sums/lane_reduction.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "blocks/view_lanes.h"
#include "kernels/bf16.h"
#include "kernels/fp16.h"
#include "server/sums/reduction_schedule.h"

namespace tug {
namespace {

constexpr uint64_t AlignedBytes(uint64_t bytes) {
  return (bytes + AlignedBuffer::kAlignment - 1) / AlignedBuffer::kAlignment *
         AlignedBuffer::kAlignment;
}

void Narrow(ElementType type, std::span<const float> from, std::byte* to) {
  const auto n = static_cast<int64_t>(from.size());
  switch (type) {
    case ElementType::kFp32:
      std::copy(from.begin(), from.end(), reinterpret_cast<float*>(to));
      return;
    case ElementType::kBf16:
      return kernels::Bf16FromFloat(from.data(), reinterpret_cast<kernels::Bf16*>(to), n);
    case ElementType::kFp16:
      return kernels::Fp16FromFloat(from.data(), reinterpret_cast<kernels::Fp16*>(to), n);
  }
}

void Widen(ElementType type, const std::byte* from, std::span<float> to) {
  const auto n = static_cast<int64_t>(to.size());
  switch (type) {
    case ElementType::kFp32:
      return;  // in place
    case ElementType::kBf16:
      return kernels::FloatFromBf16(reinterpret_cast<const kernels::Bf16*>(from), to.data(), n);
    case ElementType::kFp16:
      return kernels::FloatFromFp16(reinterpret_cast<const kernels::Fp16*>(from), to.data(), n);
  }
}

// Leaves room for the trailer in the message of a part; otherwise each would be followed by a tiny
// one.
LaneReduction::Options WithRoomForTrailers(LaneReduction::Options options) {
  const ElementType type = ReductionType(options.collective);
  const auto world = static_cast<uint32_t>(options.group.peers.size());
  options.group.chunk_bytes += AlignedBytes(TrailerElements(type, world) * ElementBytes(type));
  return options;
}

}  // namespace

LaneReduction::LaneReduction(Options options, const SegmentTable& table, Sinks sinks)
    : options_(WithRoomForTrailers(std::move(options))),
      table_(table),
      sinks_(std::move(sinks)),
      type_(ReductionType(options_.collective)),
      trailer_elements_(TrailerElements(type_, static_cast<uint32_t>(options_.group.peers.size()))),
      group_(options_.group, sinks_.group),
      places_(table.size()),
      trailer_(trailer_elements_) {
  for (uint32_t block = table.num_blocks(); block-- > 0;) {
    const uint32_t first = table.first_of_block(block);
    for (uint32_t i = 0; i < table.segments_in_block(block); ++i) order_.push_back(first + i);
  }
}

bool LaneReduction::IsFor(MessageKind kind) {
  return kind == MessageKind::kElements || kind == MessageKind::kInCollective ||
         kind == MessageKind::kRankFailed || kind == MessageKind::kClearToSend;
}

// A block is large enough for its own allocation.
void LaneReduction::MakeBlock(uint32_t block) {
  const uint32_t first = table_.first_of_block(block);
  const uint32_t end = first + table_.segments_in_block(block);
  const auto elements = [&](uint32_t id) {
    return table_.segment(id).elements() + trailer_elements_;
  };
  const auto allocate = [&](size_t element_bytes, const SendBuffers::NewBuffer& new_buffer) {
    uint64_t bytes = 0;
    for (uint32_t id = first; id < end; ++id) bytes += AlignedBytes(elements(id) * element_bytes);
    buffer_bytes_ += bytes;
    return new_buffer ? new_buffer(bytes) : std::make_shared<AlignedBuffer>(bytes);
  };
  const auto buffer = allocate(ElementBytes(type_), sinks_.new_buffer);
  const bool in_place = type_ == ElementType::kFp32;
  const auto results = in_place ? buffer : allocate(sizeof(float), nullptr);
  uint64_t at = 0, result_at = 0;
  for (uint32_t id = first; id < end; ++id) {
    Place& place = places_[id];
    place.buffer = buffer;
    place.bytes = {buffer->data() + at, elements(id) * ElementBytes(type_)};
    place.result_buffer = results;
    place.result = {reinterpret_cast<float*>(results->data() + result_at), elements(id)};
    at += AlignedBytes(place.bytes.size());
    result_at += AlignedBytes(place.result.size_bytes());
  }
}

const CollectiveSchedule& LaneReduction::ScheduleOf(uint64_t bytes) {
  for (const SizedPlan& known : plans_) {
    if (known.bytes == bytes) return known.plan.schedule;
  }
  plans_.push_back(
      {bytes, PlanReduction(options_.collective, options_.group.rank, group_.world(), bytes)});
  return plans_.back().plan.schedule;
}

std::vector<std::string> LaneReduction::algorithms() const {
  std::vector<std::string> names;
  for (const SizedPlan& known : plans_) {
    if (std::ranges::count(names, known.plan.algorithm) == 0) names.push_back(known.plan.algorithm);
  }
  return names;
}

Lease LaneReduction::Offer(uint32_t segment, std::span<const float> sum, const SumFacts& facts,
                           absl::Time now) {
  Place& place = places_[segment];
  if (place.buffer == nullptr) MakeBlock(table_.segment(segment).block);
  TUG_CHECK(!place.offered && sum.size() + trailer_elements_ == place.result.size());
  Narrow(type_, sum, place.bytes.data());
  WriteTrailer(facts, type_, options_.group.rank, group_.world(), trailer_);
  Narrow(type_, trailer_, place.bytes.data() + sum.size() * ElementBytes(type_));
  place.offered = true;
  Start(now);
  return Lease(place.result_buffer, std::span<const float>(place.result.first(sum.size())));
}

void LaneReduction::Start(absl::Time now) {
  while (status_.ok() && places_[order_[next_]].offered) {
    const uint32_t segment = order_[next_];
    Place& place = places_[segment];
    const bool fits = under_way_.size() < kMaxInFlight &&
                      under_way_bytes_ + place.bytes.size() <= kMaxBytesInFlight;
    if (!fits && !under_way_.empty()) return;
    const absl::StatusOr<uint64_t> number =
        group_.Start(ScheduleOf(place.bytes.size()), {place.buffer, place.bytes}, type_, now);
    status_ = number.status();
    if (!number.ok()) return;
    under_way_.push_back({*number, segment});
    under_way_bytes_ += place.bytes.size();
    place.offered = false;
    next_ = (next_ + 1) % order_.size();
  }
}

std::vector<LaneReduction::UnderWay>::iterator LaneReduction::FindFinished() {
  return std::find_if(under_way_.begin(), under_way_.end(),
                      [this](const UnderWay& run) { return group_.finished(run.number); });
}

bool LaneReduction::HandBackOne(absl::Time now) {
  if (!status().ok()) return false;
  const auto finished = FindFinished();
  if (finished == under_way_.end()) return false;
  const uint32_t segment = finished->segment;
  under_way_bytes_ -= places_[segment].bytes.size();
  under_way_.erase(finished);
  Start(now);
  HandBack(segment);
  return true;
}

void LaneReduction::HandBack(uint32_t segment) {
  const Place& place = places_[segment];
  Widen(type_, place.bytes.data(), place.result);
  sinks_.reduced(
      {segment, ReadTrailer(type_, group_.world(), place.result.last(trailer_elements_))});
}

absl::Status LaneReduction::status() const {
  if (!group_.status().ok() && group_.failed_rank().has_value()) {
    return absl::Status(
        group_.status().code(),
        absl::StrCat("the all-reduce cannot continue without ", group_.Name(*group_.failed_rank()),
                     ": ", std::string(group_.status().message())));
  }
  return status_;
}

}  // namespace tug
