#include "server/sum_tree.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "base/check.h"
#include "kernels/bf16.h"
#include "kernels/sum.h"

namespace tug {
namespace {

// Smaller messages are copied: a part of a message keeps the whole of what it arrived in.
constexpr uint64_t kLeastHeldBytes = 32 << 10;
// Elements that stay in the nearest cache between a check and an addition.
constexpr uint64_t kChunk = 4096;

uint32_t LevelOf(uint32_t count) { return static_cast<uint32_t>(std::bit_width(count - 1)); }

const kernels::Bf16* Halves(const Contribution& contribution) {
  return reinterpret_cast<const kernels::Bf16*>(contribution.payload.bytes().data());
}

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
    : leaves_(leaves), elements_(elements), pool_(&pool), covered_(leaves, false) {
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

bool SumTree::Covers(uint32_t first, uint32_t count) const {
  return std::any_of(covered_.begin() + first, covered_.begin() + first + count,
                     [](bool covered) { return covered; });
}

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
    if (sibling->own != nullptr) --after;
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
    if (found.own != nullptr) --own_nodes_;
    return found;
  }
  return std::nullopt;
}

void SumTree::Put(Node node) {
  if (node.own != nullptr) ++own_nodes_;
  waiting_.push_back(std::move(node));
}

void SumTree::Add(uint32_t first, uint32_t count, Contribution contribution) {
  TUG_CHECK(IsNode(leaves_, first, count) && !Covers(first, count) && !sealed_);
  TUG_CHECK_EQ(contribution.payload.size_bytes(),
               elements_ * (contribution.bf16 ? sizeof(kernels::Bf16) : sizeof(float)));
  std::fill_n(covered_.begin() + first, count, true);
  added_ += count;

  bool finite = true;
  Node node;
  Position at = PositionOf(first, count);
  if (std::optional<Node> sibling = TakeWaiting(at.sibling())) {
    node = Join(*std::move(sibling), std::move(contribution), finite);
    at = Promoted(at.parent());
  } else {
    node = Wait(std::move(contribution), finite);
  }
  if (!finite) first_not_finite_ = std::min(first_not_finite_, first);
  // Only a joined node, whose memory is our own, can find a sibling here.
  while (std::optional<Node> sibling = TakeWaiting(at.sibling())) {
    kernels::AddAndCheck(sibling->data, node.own, static_cast<int64_t>(elements_));
    Release(*sibling);
    at = Promoted(at.parent());
  }
  node.at = at;
  Put(std::move(node));
}

bool SumTree::MayHold(const Contribution& contribution) const {
  return !contribution.writable || leaves_ == 1 ||
         contribution.payload.size_bytes() >= kLeastHeldBytes;
}

SumTree::Node SumTree::Wait(Contribution contribution, bool& finite) {
  const auto n = static_cast<int64_t>(elements_);
  if (contribution.bf16) {
    Node node = Buffered();
    finite = kernels::CopyAndCheckBf16(Halves(contribution), node.own, n);
    return node;
  }
  const float* const data = contribution.payload.floats().data();
  if (MayHold(contribution)) {
    finite = kernels::AllFinite(data, n);
    return Held(std::move(contribution));
  }
  Node node = Buffered();
  finite = kernels::CopyAndCheck(data, node.own, n);
  return node;
}

SumTree::Node SumTree::Join(Node sibling, Contribution contribution, bool& finite) {
  const auto n = static_cast<int64_t>(elements_);
  if (contribution.bf16) {
    if (sibling.own != nullptr) {
      finite = kernels::AddAndCheckBf16(Halves(contribution), sibling.own, n);
      return sibling;
    }
    Node sum = Buffered();
    finite = kernels::CopyAndCheckBf16(Halves(contribution), sum.own, n);
    kernels::AddAndCheck(sibling.data, sum.own, n);
    return sum;
  }
  const float* const data = contribution.payload.floats().data();
  if (sibling.own != nullptr) {
    finite = kernels::AddAndCheck(data, sibling.own, n);
    return sibling;
  }
  if (contribution.writable && MayHold(contribution)) {
    Node sum = Held(std::move(contribution));
    finite = AddToChecked(sibling.data, sum.own, elements_);
    return sum;
  }
  Node sum = Buffered();
  finite = kernels::SumAndCheck(sibling.data, data, sum.own, n);
  return sum;
}

SumTree::Node SumTree::Held(Contribution contribution) {
  Node node;
  node.data = contribution.payload.floats().data();
  if (contribution.writable) {
    node.own = const_cast<float*>(node.data);  // Message::WritableFloats
    pool_->Hold(size_bytes());
  }
  node.message = std::move(contribution.payload);
  return node;
}

SumTree::Node SumTree::Buffered() {
  Node node;
  node.buffer = pool_->Take(size_bytes());
  node.own = node.buffer.floats().data();
  node.data = node.own;
  return node;
}

void SumTree::Release(Node& node) {
  if (node.buffer.size_bytes() > 0) {
    pool_->Give(std::move(node.buffer));
  } else if (node.own != nullptr) {
    node.message = Lease();
    pool_->Release(size_bytes());
  }
}

uint32_t SumTree::MissingBefore(uint32_t first) const {
  return static_cast<uint32_t>(std::count(covered_.begin(), covered_.begin() + first, false));
}

void SumTree::Seal() {
  TUG_CHECK_GT(added_, 0u);
  sealed_ = true;
  for (uint32_t level = 0; waiting_.size() > 1; ++level) JoinLevel(level);
}

// Nodes of the level meet their sibling, if that has come; else they take their parent's place.
void SumTree::JoinLevel(uint32_t level) {
  for (size_t i = 0; i < waiting_.size();) {
    if (waiting_[i].at.level != level) {
      ++i;
      continue;
    }
    const Position at = waiting_[i].at;
    Node node = *TakeWaiting(at);  // moves another one to i
    if (std::optional<Node> sibling = TakeWaiting(at.sibling())) {
      if (node.own == nullptr) std::swap(node, *sibling);
      if (node.own == nullptr) {
        Node sum = Buffered();
        kernels::SumAndCheck(node.data, sibling->data, sum.own, static_cast<int64_t>(elements_));
        node = std::move(sum);
      } else {
        kernels::AddAndCheck(sibling->data, node.own, static_cast<int64_t>(elements_));
      }
      Release(*sibling);
    }
    node.at = at.parent();
    Put(std::move(node));
  }
}

std::span<const float> SumTree::sum() const {
  TUG_CHECK(complete() && waiting_.size() == 1);
  return {waiting_.front().data, elements_};
}

void SumTree::Clear() {
  for (Node& node : waiting_) Release(node);
  waiting_.clear();
  std::fill(covered_.begin(), covered_.end(), false);
  added_ = 0;
  sealed_ = false;
  own_nodes_ = 0;
  first_not_finite_ = kNone;
}

}  // namespace tug
