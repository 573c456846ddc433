// SPDX-License-Identifier: Apache-2.0
#include "server/pulls/weight_cache.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "blocks/weights_payload.h"

namespace tug {

KeptBytes KeptBytesOf(std::span<const uint32_t> lane_of_segment, std::span<const uint32_t> lanes,
                      Codec codec, const SegmentTable& table) {
  KeptBytes kept;
  for (uint32_t id = 0; id < table.size(); ++id) {
    if (std::find(lanes.begin(), lanes.end(), lane_of_segment[id]) == lanes.end()) continue;
    const uint64_t bytes = WeightsBytes(codec, table.segment(id).elements());
    kept.payloads += bytes;
    kept.buffers += SendBuffers::BufferBytes(bytes);
  }
  return kept;
}

WeightCache::WeightCache(Options options, const SegmentTable& table, Send send)
    : options_(std::move(options)),
      table_(table),
      send_(std::move(send)),
      buffers_(KeptBytesOf(options_.lane_of_segment, options_.lanes, options_.codec, table).buffers,
               options_.new_buffer),
      entries_(table.num_blocks()) {}

bool WeightCache::Keeps(uint32_t block, uint32_t first_segment, uint32_t segment_count) const {
  const uint32_t first = table_.id(block, first_segment);
  const uint32_t owner = options_.lane_of_segment[first];
  const std::vector<uint32_t>& lanes = options_.lanes;
  if (std::find(lanes.begin(), lanes.end(), owner) == lanes.end()) return false;
  const auto begin = options_.lane_of_segment.begin() + first;
  return std::all_of(begin, begin + segment_count, [&](uint32_t lane) { return lane == owner; });
}

bool WeightCache::CanAnswer(const WireHeader& pull) const {
  return pull.codec == options_.codec && pull.want == Want::kExact &&
         Keeps(pull.block, pull.first_segment, pull.segment_count);
}

bool WeightCache::IsOf(const Entry& entry, const WireHeader& header) {
  return entry.pull.first_segment == header.first_segment &&
         entry.pull.segment_count == header.segment_count && entry.pull.codec == header.codec &&
         entry.pull.clock == header.clock;
}

bool WeightCache::Overlap(const WireHeader& a, const WireHeader& b) {
  return a.first_segment < b.first_segment + b.segment_count &&
         b.first_segment < a.first_segment + a.segment_count;
}

const WeightCache::Entry* WeightCache::FindEntry(const WireHeader& header) const {
  const std::vector<Entry>& entries = entries_[header.block];
  const auto entry = std::find_if(entries.begin(), entries.end(),
                                  [&](const Entry& other) { return IsOf(other, header); });
  return entry == entries.end() ? nullptr : &*entry;
}

WeightCache::Entry* WeightCache::FindAsked(const WireHeader& answer) {
  if (answer.block >= entries_.size()) return nullptr;
  for (Entry& entry : entries_[answer.block]) {
    if (IsOf(entry, answer)) {
      const bool asked = !entry.held && answer.sender == LanePeer(Owner(entry.pull));
      return asked ? &entry : nullptr;
    }
  }
  return nullptr;
}

std::optional<Lease> WeightCache::Find(const WireHeader& pull) const {
  const Entry* const entry = FindEntry(pull);
  return entry != nullptr && entry->held ? std::optional(entry->payload) : std::nullopt;
}

// ---- requests ----

void WeightCache::Ask(const WireHeader& pull, absl::Time now) {
  if (FindEntry(pull) != nullptr) return;
  AskOwner(entries_[pull.block].emplace_back(Entry{.pull = pull}), now);
}

void WeightCache::AskOwner(Entry& entry, absl::Time now) {
  entry.due = now + options_.resend_after;
  entry.pull.sender = 0;  // this lane, filled in by the transport
  send_({LanePeer(Owner(entry.pull)), entry.pull, Lease()});
}

void WeightCache::OnTick(absl::Time now) {
  for (std::vector<Entry>& entries : entries_) {
    for (Entry& entry : entries) {
      if (!entry.held && now >= entry.due) AskOwner(entry, now);
    }
  }
}

// ---- answers ----

void WeightCache::ReportReceived(const WireHeader& weights) {
  if (weights.ack_id == 0) return;  // the answer holds no credit
  WireHeader header;
  header.kind = MessageKind::kWeightsReceived;
  header.job = options_.job;
  header.timeline = options_.timeline;
  header.view = options_.view;
  header.ack_id = weights.ack_id;
  send_({weights.sender, header, Lease()});
}

bool WeightCache::OnWeights(const Message& message) {
  const WireHeader& header = message.header;
  ReportReceived(header);
  if (FindAsked(header) == nullptr) return false;
  const uint32_t first = table_.id(header.block, header.first_segment);
  if (message.payload.size_bytes() !=
      WeightsBytes(header.codec, table_, first, header.segment_count)) {
    return false;
  }
  MakeRoomFor(header);
  Take(*FindAsked(header), message.payload);
  return true;
}

void WeightCache::MakeRoomFor(const WireHeader& weights) {
  std::erase_if(entries_[weights.block], [&](const Entry& entry) {
    if (!Overlap(entry.pull, weights) || IsOf(entry, weights)) return false;
    // The owner keeps the previous version, too.
    if (!entry.held) return entry.pull.clock + 2 <= weights.clock;
    if (entry.pull.clock > weights.clock) return false;
    held_bytes_ -= entry.payload.size_bytes();
    return true;
  });
}

void WeightCache::Take(Entry& entry, const Lease& payload) {
  SendBuffers::Payload kept = buffers_.Take(payload.size_bytes());
  std::memcpy(kept.bytes.data(), payload.bytes().data(), payload.size_bytes());
  entry.payload = std::move(kept.lease);
  entry.held = true;
  held_bytes_ += payload.size_bytes();
  peak_held_bytes_ = std::max(peak_held_bytes_, held_bytes_);
}

bool WeightCache::IsAskedOf(const Entry& entry, const WireHeader& refused) const {
  return !entry.held && entry.pull.first_segment == refused.first_segment &&
         entry.pull.segment_count == refused.segment_count && entry.pull.codec == refused.codec &&
         refused.sender == LanePeer(Owner(entry.pull));
}

void WeightCache::AskSoon(Entry& entry, absl::Time now) const {
  entry.due = std::min(entry.due, now + options_.resend_first);
}

void WeightCache::OnRefused(const WireHeader& header, absl::Time now) {
  if (header.block >= entries_.size()) return;
  std::vector<Entry>& entries = entries_[header.block];
  // The header names the owner's version, or 0, which is later than none, if the pull was of
  // another view.
  const size_t given_up = std::erase_if(entries, [&](const Entry& entry) {
    return IsAskedOf(entry, header) && entry.pull.clock < header.version;
  });
  if (given_up > 0) return;
  for (Entry& entry : entries) {
    if (IsAskedOf(entry, header)) AskSoon(entry, now);
  }
}

void WeightCache::OnFenced(const WireHeader& header, absl::Time now) {
  if (header.job != options_.job) return;
  if (header.kind == MessageKind::kWeights && header.timeline == options_.timeline) {
    return ReportReceived(header);
  }
  if (header.kind != MessageKind::kRefused || header.block >= entries_.size()) return;
  for (Entry& entry : entries_[header.block]) {
    if (!entry.held && header.sender == LanePeer(Owner(entry.pull))) AskSoon(entry, now);
  }
}

void WeightCache::SetView(uint32_t view) {
  options_.view = view;
  for (std::vector<Entry>& entries : entries_) entries.clear();
  held_bytes_ = 0;
}

}  // namespace tug
