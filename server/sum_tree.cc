#include "server/sum_tree.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "base/check.h"
#include "kernels/sum.h"

namespace tug {
namespace {

uint32_t LevelOf(uint32_t count) { return static_cast<uint32_t>(std::bit_width(count - 1)); }

}  // namespace

AlignedBuffer BufferPool::Take(size_t size_bytes) {
  for (auto it = spare_.rbegin(); it != spare_.rend(); ++it) {
    if (it->size_bytes() != size_bytes) continue;
    AlignedBuffer found = std::move(*it);
    spare_.erase(std::next(it).base());
    return found;
  }
  return AlignedBuffer(size_bytes);
}

SumTree::SumTree(uint32_t leaves, uint64_t elements, BufferPool& pool)
    : leaves_(leaves), elements_(elements), pool_(&pool), covered_(leaves, false) {
  TUG_CHECK(leaves >= 1);
}

SumTree::~SumTree() {
  for (Node& node : waiting_) pool_->Give(std::move(node.sum));
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

SumTree::Node SumTree::Promoted(Node node) const {
  const auto is_root = [&] { return node.index == 0 && (uint64_t{1} << node.level) >= leaves_; };
  const auto right_sibling_empty = [&] {
    return node.index % 2 == 0 && ((uint64_t{node.index} + 1) << node.level) >= leaves_;
  };
  while (!is_root() && right_sibling_empty()) {
    ++node.level;
    node.index /= 2;
  }
  return node;
}

std::optional<SumTree::Node> SumTree::TakeWaiting(uint32_t level, uint32_t index) {
  for (auto it = waiting_.begin(); it != waiting_.end(); ++it) {
    if (it->level != level || it->index != index) continue;
    Node found = std::move(*it);
    waiting_.erase(it);
    return found;
  }
  return std::nullopt;
}

void SumTree::Add(uint32_t first, uint32_t count, std::span<const float> data) {
  TUG_CHECK(IsNode(leaves_, first, count) && !Covers(first, count) && data.size() == elements_);
  std::fill_n(covered_.begin() + first, count, true);
  added_ += count;

  const uint32_t level = LevelOf(count);
  Node node = Promoted({level, first >> level, AlignedBuffer()});
  std::optional<Node> sibling = TakeWaiting(node.level, node.index ^ 1);
  bool finite = true;
  if (sibling.has_value()) {
    finite = kernels::AddAndCheck(data.data(), sibling->sum.floats().data(), data.size());
    node = {node.level + 1, node.index / 2, std::move(sibling->sum)};
  } else {
    node.sum = pool_->Take(elements_ * sizeof(float));
    finite = kernels::CopyAndCheck(data.data(), node.sum.floats().data(), data.size());
  }
  if (!finite) first_not_finite_ = std::min(first_not_finite_, first);
  Settle(std::move(node));
}

void SumTree::Settle(Node node) {
  node = Promoted(std::move(node));
  while (std::optional<Node> sibling = TakeWaiting(node.level, node.index ^ 1)) {
    kernels::AddAndCheck(node.sum.floats().data(), sibling->sum.floats().data(), elements_);
    pool_->Give(std::move(node.sum));
    node = Promoted({node.level + 1, node.index / 2, std::move(sibling->sum)});
  }
  waiting_.push_back(std::move(node));
}

std::span<const float> SumTree::sum() const {
  TUG_CHECK(complete() && waiting_.size() == 1);
  return waiting_.front().sum.floats();
}

void SumTree::Clear() {
  for (Node& node : waiting_) pool_->Give(std::move(node.sum));
  waiting_.clear();
  std::fill(covered_.begin(), covered_.end(), false);
  added_ = 0;
  first_not_finite_ = kNone;
}

}  // namespace tug
