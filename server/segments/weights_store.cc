// SPDX-License-Identifier: Apache-2.0
#include "server/segments/weights_store.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "blocks/runs.h"

namespace tug {
namespace {

template <typename T>
Lease LeaseOf(const std::shared_ptr<AlignedBuffer>& buffer, std::span<T> part) {
  return Lease(buffer, std::as_bytes(part));
}

}  // namespace

WeightsStore::WeightsStore(const SegmentTable& table, std::span<const uint32_t> owned,
                           Options options)
    : table_(table),
      options_(std::move(options)),
      encoded_as_(StoredAs(options_.pull_codec)),
      owned_(owned.begin(), owned.end()),
      run_of_segment_(table.size()),
      encoded_begin_(table.size()),
      changes_begin_(table.size()),
      send_buffers_(options_.keep_bytes, options_.new_buffer),
      shadow_maker_(options_.shadow) {
  TUG_CHECK(!shadows() || !options_.one_copy);
  for (size_t i = 0; i < owned.size(); ++i) {
    const uint32_t id = owned[i];
    const Segment& segment = table_.segment(id);
    const bool extends = i > 0 && owned[i - 1] + 1 == id && segment.index > 0;
    if (!extends) {
      runs_.emplace_back();
      runs_.back().begin = segment.begin;
    }
    Run& run = runs_.back();
    run.end = segment.end;
    ++run.segments;
    encoded_begin_[id] = run.encoded_bytes;
    run.encoded_bytes += WeightsBytes(encoded_as_, segment.elements());
    if (shadows()) {
      changes_begin_[id] = run.changes_bytes;
      run.changes_bytes += shadow_maker_.MaxChangesBytes(segment.elements());
    }
    run_of_segment_[id] = static_cast<uint32_t>(runs_.size() - 1);
  }
  const uint64_t start = options_.start_version;
  for (Run& run : runs_) {
    const size_t size_bytes = run.elements() * sizeof(float);
    const bool sent = !encodes() && !options_.one_copy;
    run.weights.at[start % 2] = NewCopy(sent ? Use::kSentWeights : Use::kWeights, size_bytes);
    run.weights.version[start % 2] = start;
    if (options_.one_copy) run.weights.at[(start + 1) % 2] = run.weights.at[start % 2];
    if (options_.keeps_m) run.m = options_.memory->New(Use::kState, size_bytes);
    if (options_.keeps_v) run.v = options_.memory->New(Use::kState, size_bytes);
    run.newest = start;
    run.at_newest = run.segments;
    MakeChanges(run, start);
  }
}

std::shared_ptr<AlignedBuffer> WeightsStore::NewCopy(Use use, size_t size_bytes) const {
  return std::make_shared<AlignedBuffer>(options_.memory->New(use, size_bytes));
}

void WeightsStore::MakeChanges(Run& run, uint64_t newest) const {
  if (!shadows()) return;
  for (const uint64_t version : {newest, newest + 1}) {
    run.changes.at[version % 2] = NewCopy(Use::kWeights, run.changes_bytes);
    run.changes.version[version % 2] = version;
  }
}

std::span<float> WeightsStore::weights(uint32_t segment, uint64_t version) {
  return Part(RunOf(segment).weights.at[version % 2]->floats(), segment);
}

std::span<float> WeightsStore::m(uint32_t segment) {
  return options_.keeps_m ? Part(RunOf(segment).m.floats(), segment) : std::span<float>();
}

std::span<float> WeightsStore::v(uint32_t segment) {
  return options_.keeps_v ? Part(RunOf(segment).v.floats(), segment) : std::span<float>();
}

Lease WeightsStore::LeaseWeights(uint32_t segment, uint64_t version) {
  const std::span<float> now = weights(segment, version);
  if (!options_.one_copy) return LeaseOf(RunOf(segment).weights.at[version % 2], now);
  auto copy = std::make_shared<AlignedBuffer>(now.size_bytes());
  std::copy(now.begin(), now.end(), copy->floats().begin());
  const std::span<const float> floats = std::as_const(*copy).floats();
  return Lease(std::move(copy), floats);
}

void WeightsStore::Start() {
  if (!encodes() || options_.one_copy) return;
  const uint64_t start = options_.start_version;
  for (Run& run : runs_) {
    run.encoded.at[start % 2] = NewCopy(Use::kSentWeights, run.encoded_bytes);
    run.encoded.version[start % 2] = start;
  }
  for (const uint32_t id : owned_) {
    EncodeWeights(encoded_as_, weights(id, start),
                  EncodedPart(*RunOf(id).encoded.at[start % 2], id));
  }
}

std::span<std::byte> WeightsStore::EncodedPart(AlignedBuffer& of_run, uint32_t segment) const {
  return {of_run.data() + encoded_begin_[segment],
          WeightsBytes(encoded_as_, table_.segment(segment).elements())};
}

std::span<std::byte> WeightsStore::ChangesPart(AlignedBuffer& of_run, uint32_t segment) const {
  return {of_run.data() + changes_begin_[segment],
          shadow_maker_.MaxChangesBytes(table_.segment(segment).elements())};
}

WeightsStore::Run* WeightsStore::FindRun(uint32_t first_segment, const Run& extent) {
  if (!std::binary_search(owned_.begin(), owned_.end(), first_segment)) return nullptr;
  Run& run = RunOf(first_segment);
  return run.begin == extent.begin && run.end == extent.end ? &run : nullptr;
}

bool WeightsStore::RecoverState(std::span<const HeldSegment> held, WeightsStore* before) {
  TUG_CHECK_EQ(held.size(), owned_.size());
  size_t first = 0;
  for (Run& run : runs_) {
    Run* const same = before == nullptr ? nullptr : before->FindRun(owned_[first], run);
    if (same != nullptr) {
      run = std::move(*same);
    } else if (!RecoverRun(run, first, held.subspan(first, run.segments))) {
      return false;
    }
    first += run.segments;
  }
  return true;
}

bool WeightsStore::RecoverRun(Run& run, size_t first, std::span<const HeldSegment> held) {
  const size_t size_bytes = run.elements() * sizeof(float);
  const std::shared_ptr<AlignedBuffer> unused = run.weights.at[options_.start_version % 2];
  uint64_t oldest = held[0].version;
  run.newest = oldest;
  bool all_previous = true;
  for (const HeldSegment& segment : held) {
    oldest = std::min(oldest, segment.version);
    run.newest = std::max(run.newest, segment.version);
    all_previous = all_previous && !segment.previous.empty();
  }
  const bool mixed = oldest != run.newest;
  const bool two = !options_.one_copy && (mixed || all_previous);
  if (!options_.one_copy && run.newest - oldest > 1) return false;
  // Indices of the newest and of the previous version.
  const size_t now = run.newest % 2, before = 1 - now;
  run.weights = {};
  run.encoded = {};
  MakeChanges(run, run.newest);
  run.weights.at[now] = unused;
  run.weights.version[now] = run.newest;
  if (options_.one_copy || (encodes() && mixed)) run.weights.at[before] = unused;
  if (two) {
    run.weights.version[before] = run.newest - 1;
    if (!encodes()) run.weights.at[before] = NewCopy(Use::kSentWeights, size_bytes);
  }
  if (encodes() && !options_.one_copy) {
    for (const size_t i : {now, before}) {
      if (i == before && !two) continue;
      run.encoded.at[i] = NewCopy(Use::kSentWeights, run.encoded_bytes);
      run.encoded.version[i] = i == now ? run.newest : run.newest - 1;
    }
  }
  run.at_newest = 0;
  for (size_t i = 0; i < held.size(); ++i) {
    const bool newest = held[i].version == run.newest;
    run.at_newest += newest ? 1 : 0;
    if (mixed && newest && !options_.one_copy && held[i].previous.empty()) return false;
    PutSegment(run, owned_[first + i], held[i], two && newest);
  }
  return true;
}

void WeightsStore::PutSegment(Run& run, uint32_t id, const HeldSegment& segment,
                              bool has_previous) {
  std::ranges::copy(segment.weights, weights(id, segment.version).begin());
  std::ranges::copy(segment.m, m(id).begin());
  std::ranges::copy(segment.v, v(id).begin());
  if (options_.one_copy) return;
  if (encodes()) {
    // A shadow cannot be computed from the weights; it has come with them.
    EncodeWeights(encoded_as_, shadows() ? segment.shadow : segment.weights,
                  EncodedPart(*run.encoded.at[segment.version % 2], id));
  }
  if (!has_previous) return;
  const size_t before = 1 - run.newest % 2;
  const std::span<std::byte> to =
      encodes() ? EncodedPart(*run.encoded.at[before], id)
                : std::as_writable_bytes(Part(run.weights.at[before]->floats(), id));
  std::memcpy(to.data(), segment.previous.data(), to.size_bytes());
}

HeldSegment WeightsStore::Held(uint32_t segment, uint64_t version) const {
  const Run& run = RunOf(segment);
  HeldSegment held;
  held.version = version;
  held.weights = Part(std::as_const(*run.weights.at[version % 2]).floats(), segment);
  if (options_.keeps_m) held.m = Part(run.m.floats(), segment);
  if (options_.keeps_v) held.v = Part(run.v.floats(), segment);
  if (shadows()) held.shadow = Part(std::as_const(**run.encoded.Find(version)).floats(), segment);
  if (options_.one_copy || version == 0) return held;
  const std::shared_ptr<AlignedBuffer>* const before =
      encodes() ? run.encoded.Find(version - 1) : run.weights.Find(version - 1);
  if (before == nullptr) return held;
  held.previous = encodes() ? std::as_bytes(EncodedPart(**before, segment))
                            : std::as_bytes(Part((*before)->floats(), segment));
  return held;
}

AlignedBuffer& WeightsStore::Writable(Copies& copies, uint64_t version, size_t size_bytes) {
  std::shared_ptr<AlignedBuffer>& copy = copies.at[version % 2];
  if (copy == nullptr || copies.version[version % 2] != version) {
    if (copy == nullptr || !IsOnlyOwner(copy)) copy = NewCopy(Use::kSentWeights, size_bytes);
    copies.version[version % 2] = version;
  }
  return *copy;
}

AlignedBuffer& WeightsStore::WritableInPlace(Copies& copies, uint64_t version, size_t size_bytes) {
  std::shared_ptr<AlignedBuffer>& copy = copies.at[version % 2];
  if (copy == nullptr || copies.version[version % 2] != version) {
    std::shared_ptr<AlignedBuffer>& current = copies.at[(version - 1) % 2];
    copy = nullptr;  // it may be `current`
    copy = IsOnlyOwner(current) ? current : NewCopy(Use::kWeights, size_bytes);
    copies.version[version % 2] = version;
  }
  return *copy;
}

WeightsStore::Update WeightsStore::BeginUpdate(uint32_t segment, uint64_t version) {
  Run& run = RunOf(segment);
  if (options_.one_copy) {
    const std::span<float> now = weights(segment, version);
    return {.weights_in = now, .weights_out = now, .m = m(segment), .v = v(segment)};
  }
  if (version + 1 > run.newest) {
    TUG_CHECK_EQ(run.at_newest, run.segments) << "segment " << segment;
    run.newest = version + 1;
    run.at_newest = 0;
  }
  ++run.at_newest;
  Update update;
  update.weights_in = weights(segment, version);
  update.m = m(segment);
  update.v = v(segment);
  const size_t size_bytes = run.elements() * sizeof(float);
  if (!encodes()) {
    update.weights_out = Part(Writable(run.weights, version + 1, size_bytes).floats(), segment);
    return update;
  }
  update.weights_out =
      Part(WritableInPlace(run.weights, version + 1, size_bytes).floats(), segment);
  update.encoded_out = EncodedPart(Writable(run.encoded, version + 1, run.encoded_bytes), segment);
  if (shadows()) {
    update.shadow_in = Part(std::as_const(**run.encoded.Find(version)).floats(), segment);
    update.changes_out =
        ChangesPart(Writable(run.changes, version + 1, run.changes_bytes), segment);
    update.segment = segment;
    update.version = version + 1;
  }
  if (options_.pull_codec == Codec::kBf16) {
    update.bf16_out = {reinterpret_cast<kernels::Bf16*>(update.encoded_out.data()),
                       update.weights_out.size()};
  }
  return update;
}

void WeightsStore::Encode(const Update& update) {
  if (update.encoded_out.empty()) return;
  if (!shadows()) return EncodeWeights(encoded_as_, update.weights_out, update.encoded_out);
  const std::span<float> shadow_out = {reinterpret_cast<float*>(update.encoded_out.data()),
                                       update.weights_out.size()};
  shadow_maker_.Make(table_.segment(update.segment), update.version, update.weights_out,
                     update.shadow_in, shadow_out, update.changes_out);
}

void WeightsStore::EndUpdate(const Update& update) {
  if (update.bf16_out.empty()) Encode(update);
}

void WeightsStore::CopyWeights(const Update& update) {
  if (update.weights_in.data() != update.weights_out.data()) {
    std::copy(update.weights_in.begin(), update.weights_in.end(), update.weights_out.begin());
  }
  Encode(update);
}

bool WeightsStore::RunIsAt(uint32_t segment, uint64_t version) const {
  const Run& run = RunOf(segment);
  return version < run.newest || (version == run.newest && run.at_newest == run.segments);
}

std::optional<Lease> WeightsStore::ReadRuns(std::span<const float> floats,
                                            std::span<const std::byte> list) {
  const std::optional<EncodedRuns> wanted = DecodeRuns(list, floats.size(), /*with_values=*/false);
  if (!wanted.has_value()) return std::nullopt;  // the requester has changed it in its own memory
  const uint64_t size_bytes = EncodedBytes(wanted->runs, /*with_values=*/true);
  SendBuffers::Payload payload = send_buffers_.Take(size_bytes);
  EncodeRuns(wanted->runs, floats, payload.bytes);
  return std::move(payload.lease);
}

std::span<const float> WeightsStore::Decoded(uint32_t first, uint32_t count, uint64_t elements,
                                             std::span<const std::byte> encoded) {
  decoded_.resize(elements);
  DecodeWeights(options_.pull_codec, table_, first, count, encoded, decoded_);
  return decoded_;
}

std::optional<uint64_t> WeightsStore::ChangesBytes(uint32_t first, uint32_t count,
                                                   uint64_t version) const {
  const std::shared_ptr<AlignedBuffer>* const copy = RunOf(first).changes.Find(version);
  if (copy == nullptr) return std::nullopt;
  uint64_t bytes = 0;
  for (uint32_t id = first; id < first + count; ++id) {
    const size_t of_segment =
        ChangesIn(ChangesPart(**copy, id), table_.segment(id).elements()).size();
    if (of_segment == 0) return std::nullopt;
    bytes += of_segment;
  }
  if (bytes >= WeightsBytes(Codec::kNone, table_, first, count)) return std::nullopt;
  return bytes;
}

Lease WeightsStore::ReadChanges(uint32_t first, uint32_t count, uint64_t version) {
  const std::optional<uint64_t> bytes = ChangesBytes(first, count, version);
  TUG_CHECK(bytes.has_value());
  AlignedBuffer& copy = **RunOf(first).changes.Find(version);
  SendBuffers::Payload payload = send_buffers_.Take(*bytes);
  std::span<std::byte> to = payload.bytes;
  for (uint32_t id = first; id < first + count; ++id) {
    const auto frame = ChangesIn(ChangesPart(copy, id), table_.segment(id).elements());
    std::memcpy(to.data(), frame.data(), frame.size());
    to = to.subspan(frame.size());
  }
  return std::move(payload.lease);
}

Lease WeightsStore::ReadCopy(uint32_t first, uint32_t count, std::span<const float> floats,
                             Codec codec) {
  SendBuffers::Payload payload = send_buffers_.Take(WeightsBytes(codec, table_, first, count));
  EncodeWeights(codec, table_, first, count, floats, payload.bytes);
  return std::move(payload.lease);
}

std::optional<Lease> WeightsStore::Read(uint32_t first, uint32_t count, uint64_t version,
                                        bool newest, Codec codec, std::span<const std::byte> runs) {
  const Run& run = RunOf(first);
  const uint64_t begin = table_.segment(first).begin - run.begin;
  const uint64_t elements = table_.segment(first + count - 1).end - table_.segment(first).begin;
  if (options_.one_copy) {
    const std::span<const float> now =
        std::as_const(*run.weights.at[0]).floats().subspan(begin, elements);
    if (codec != Codec::kRuns) return ReadCopy(first, count, now, codec);
    if (!encodes()) return ReadRuns(now, runs);
    const Lease encoded = ReadCopy(first, count, now, options_.pull_codec);
    return ReadRuns(Decoded(first, count, elements, encoded.bytes()), runs);
  }
  if (codec == Codec::kChanges) return ReadChanges(first, count, version);
  const bool encoded = encoded_as_ != Codec::kNone;
  if (encoded && (codec == options_.pull_codec || codec == Codec::kRuns)) {
    const std::shared_ptr<AlignedBuffer>* const copy = run.encoded.Find(version);
    if (copy == nullptr) return std::nullopt;
    const std::span<const std::byte> part = {
        (*copy)->data() + encoded_begin_[first],
        WeightsBytes(options_.pull_codec, table_, first, count)};
    if (codec == Codec::kRuns) return ReadRuns(Decoded(first, count, elements, part), runs);
    return LeaseOf(*copy, part);
  }
  // Weights updated in place already have a later version.
  if (encoded && !newest) return std::nullopt;
  const std::shared_ptr<AlignedBuffer>* const copy =
      (shadows() ? run.encoded : run.weights).Find(version);
  if (copy == nullptr) return std::nullopt;
  const std::span<const float> part = std::as_const(**copy).floats().subspan(begin, elements);
  if (codec == Codec::kRuns) return ReadRuns(part, runs);
  if (codec == Codec::kNone && !encoded) return LeaseOf(*copy, part);
  return ReadCopy(first, count, part, codec);
}

}  // namespace tug
