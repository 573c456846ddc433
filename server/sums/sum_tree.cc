// SPDX-License-Identifier: Apache-2.0
#include "server/sums/sum_tree.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "kernels/sum.h"

namespace tug {
namespace {

// Smaller messages are copied: a part of a message keeps all of it in memory.
constexpr uint64_t kMinHeldBytes = 32 << 10;
// Elements that stay in the nearest cache between a check and an addition.
constexpr uint64_t kChunk = 4096;

uint32_t LevelOf(uint32_t count) { return static_cast<uint32_t>(std::bit_width(count - 1)); }

// acc += src. Returns whether acc was finite before.
bool AddToChecked(const float* src, float* acc, uint64_t n) {
  bool finite = true;
  for (uint64_t i = 0; i < n; i += kChunk) {
    const auto chunk = static_cast<int64_t>(std::min(kChunk, n - i));
    finite = kernels::AllFinite(acc + i, chunk) && finite;
    kernels::AddAndCheck(src + i, acc + i, chunk);
  }
  return finite;
}

}  // namespace

SumTree::SumTree(uint32_t leaves, uint64_t elements, BufferPool& pool)
    : leaves_(leaves), elements_(elements), pool_(&pool), covered_(leaves) {
  TUG_CHECK(leaves >= 1);
}

SumTree::~SumTree() {
  for (Node& node : waiting_) Release(node);
}

bool SumTree::IsNode(uint32_t leaves, uint32_t first, uint32_t count) {
  if (count == 0 || first >= leaves || count > leaves - first) return false;
  const uint64_t width = uint64_t{1} << LevelOf(count);
  return first % width == 0 && count == std::min<uint64_t>(width, leaves - first);
}

bool SumTree::Covers(uint32_t first, uint32_t count) const { return covered_.HasAny(first, count); }

SumTree::Position SumTree::Promoted(Position at) const {
  const auto is_root = [&] { return at.index == 0 && (uint64_t{1} << at.level) >= leaves_; };
  const auto right_sibling_empty = [&] {
    return at.index % 2 == 0 && ((uint64_t{at.index} + 1) << at.level) >= leaves_;
  };
  while (!is_root() && right_sibling_empty()) at = at.parent();
  return at;
}

SumTree::Position SumTree::PositionOf(uint32_t first, uint32_t count) const {
  const uint32_t level = LevelOf(count);
  return Promoted({level, first >> level});
}

uint32_t SumTree::OwnAfter(uint32_t first, uint32_t count, bool own) const {
  uint32_t after = own_nodes_;
  Position at = PositionOf(first, count);
  while (true) {
    const auto sibling = std::find_if(waiting_.begin(), waiting_.end(),
                                      [&](const Node& node) { return node.at == at.sibling(); });
    if (sibling == waiting_.end()) return after + (own ? 1 : 0);
    if (sibling->own()) --after;
    own = true;
    at = Promoted(at.parent());
  }
}

std::optional<SumTree::Node> SumTree::TakeWaiting(Position at) {
  for (Node& node : waiting_) {
    if (node.at != at) continue;
    Node found = std::move(node);
    if (&node != &waiting_.back()) node = std::move(waiting_.back());
    waiting_.pop_back();
    if (found.own()) --own_nodes_;
    return found;
  }
  return std::nullopt;
}

void SumTree::Put(Node node) {
  if (node.own()) ++own_nodes_;
  waiting_.push_back(std::move(node));
}

void SumTree::Add(uint32_t first, uint32_t count, Contribution contribution) {
  TUG_CHECK(IsNode(leaves_, first, count) && !Covers(first, count) && !sealed_);
  TUG_CHECK(contribution.codec != 0 || contribution.payload.size_bytes() == size_bytes());
  covered_.Add(first, count);
  added_ += count;

  const bool copied = contribution.writable || !contribution.stays;
  Node node = Arrived(first, std::move(contribution));
  Position at = PositionOf(first, count);
  std::optional<Node> sibling = TakeWaiting(at.sibling());
  if (!sibling.has_value()) node = Waiting(std::move(node), copied);
  for (; sibling.has_value(); sibling = TakeWaiting(at.sibling())) {
    node = Join(*std::move(sibling), std::move(node));
    at = Promoted(at.parent());
  }
  node.at = at;
  Put(std::move(node));
  if (added_ == leaves_) DecodeSum();
}

SumTree::Node SumTree::Arrived(uint32_t first, Contribution contribution) {
  Node node;
  node.frame = {contribution.codec, contribution.finite, contribution.payload.bytes()};
  node.leaf = first;
  node.message = std::move(contribution.payload);
  const bool fits_buffer = node.frame.encoding.size() <= size_bytes();
  node.held =
      contribution.writable && (leaves_ == 1 || size_bytes() >= kMinHeldBytes || !fits_buffer);
  if (!node.held) return node;
  if (!node.encoded()) node.sum = const_cast<float*>(node.floats());  // Message::WritableFloats
  pool_->Hold(size_bytes());
  return node;
}

SumTree::Node SumTree::Waiting(Node arrived, bool copied) {
  const auto n = static_cast<int64_t>(elements_);
  const std::span<const std::byte> bytes = arrived.frame.encoding;
  if (!copied || arrived.held) {
    if (!arrived.encoded()) Look(arrived, kernels::AllFinite(arrived.floats(), n));
    return arrived;
  }
  if (!arrived.encoded()) return Decoded(std::move(arrived));
  Node copy = Buffered(std::max<uint64_t>(size_bytes(), bytes.size()));
  if (!bytes.empty()) std::memcpy(copy.buffer.data(), bytes.data(), bytes.size());
  copy.frame = {arrived.frame.codec, arrived.frame.finite, {copy.buffer.data(), bytes.size()}};
  copy.sum = nullptr;
  copy.leaf = arrived.leaf;
  return copy;
}

SumTree::Node SumTree::Join(Node a, Node b) {
  if (a.sum == nullptr && (b.sum != nullptr || a.encoded())) std::swap(a, b);
  if (a.sum == nullptr && !a.encoded() && !b.encoded()) {
    Node sum = Buffered(size_bytes());
    const auto n = static_cast<int64_t>(elements_);
    Look(b, kernels::SumAndCheck(a.floats(), b.floats(), sum.sum, n));
    return sum;
  }
  if (a.sum == nullptr) a = Decoded(std::move(a));
  AddTo(a, b);
  Release(b);
  return a;
}

SumTree::Node SumTree::Decoded(Node node) {
  Node decoded = Buffered(size_bytes());
  const std::span<float> elements(decoded.sum, elements_);
  const bool finite = DecodeFrame(node.frame, DecodeTo::kStore, elements);
  if (node.encoded() && !finite) std::fill(elements.begin(), elements.end(), 0.0f);
  Look(node, finite);
  decoded.at = node.at;
  Release(node);
  return decoded;
}

void SumTree::AddTo(Node& accumulator, Node& node) {
  const auto n = static_cast<int64_t>(elements_);
  if (accumulator.leaf != kNone && !node.encoded()) {
    return Look(accumulator, AddToChecked(node.floats(), accumulator.sum, elements_));
  }
  if (accumulator.leaf != kNone) Look(accumulator, kernels::AllFinite(accumulator.sum, n));
  Look(node, DecodeFrame(node.frame, DecodeTo::kAdd, {accumulator.sum, elements_}));
}

SumTree::Node SumTree::Buffered(uint64_t buffer_bytes) {
  Node node;
  node.buffer = pool_->Take(buffer_bytes);
  node.frame.encoding = {node.buffer.data(), size_bytes()};
  node.sum = node.buffer.floats().data();
  return node;
}

void SumTree::Look(Node& node, bool finite) {
  if (!finite) first_not_finite_ = std::min(first_not_finite_, node.leaf);
  node.leaf = kNone;
}

void SumTree::Release(Node& node) {
  if (node.buffer.size_bytes() > 0) {
    pool_->Give(std::move(node.buffer));
  } else if (node.held) {
    node.message = Lease();
    pool_->Release(size_bytes());
  }
}

uint32_t SumTree::MissingBefore(uint32_t first) const { return first - covered_.Count(0, first); }

void SumTree::Seal() {
  TUG_CHECK_GT(added_, 0u);
  sealed_ = true;
  for (uint32_t level = 0; waiting_.size() > 1; ++level) JoinLevel(level);
  DecodeSum();
}

// Joins each node of the level with its sibling, or moves it to its parent's position.
void SumTree::JoinLevel(uint32_t level) {
  for (size_t i = 0; i < waiting_.size();) {
    if (waiting_[i].at.level != level) {
      ++i;
      continue;
    }
    const Position at = waiting_[i].at;
    Node node = *TakeWaiting(at);  // moves another node to i
    if (std::optional<Node> sibling = TakeWaiting(at.sibling())) {
      node = Join(std::move(node), *std::move(sibling));
    }
    node.at = at.parent();
    Put(std::move(node));
  }
}

void SumTree::DecodeSum() {
  if (!waiting_.front().encoded()) return;
  Put(Decoded(*TakeWaiting(waiting_.front().at)));
}

std::span<const float> SumTree::sum() const {
  TUG_CHECK(complete() && waiting_.size() == 1);
  return {waiting_.front().floats(), elements_};
}

void SumTree::Replace(Lease sum) {
  TUG_CHECK(complete() && sum.size_bytes() == size_bytes());
  for (Node& node : waiting_) Release(node);
  waiting_.clear();
  own_nodes_ = 0;
  Node node;
  node.frame.encoding = sum.bytes();
  node.message = std::move(sum);
  waiting_.push_back(std::move(node));
}

void SumTree::Clear() {
  for (Node& node : waiting_) Release(node);
  waiting_.clear();
  covered_.Clear();
  added_ = 0;
  sealed_ = false;
  own_nodes_ = 0;
  first_not_finite_ = kNone;
}

}  // namespace tug
