#ifndef TUG_SERVER_SUM_TREE_H_
#define TUG_SERVER_SUM_TREE_H_

// Sums the contributions of S virtual workers to one segment along a fixed binary tree,
// (0+1)+(2+3)..., whatever order they arrive in: the result has the same bits for every order, and
// for every way of summing an aligned group beforehand (a group is a subtree). Nodes whose sibling
// lies wholly beyond S are promoted unchanged.
//
// How it works: a subtree that is complete waits in a buffer until its sibling is. Float addition
// commutes (it does not associate), so either sibling may be the accumulator, and an arriving
// message is added straight from its own memory.
//   1. Find the tree node that the arriving group is.
//   2. No sibling waiting: copy into a buffer and wait there.
//   3. Sibling waiting: add into the sibling's buffer; go up one level; while the sibling there
//      waits too, add the two.
// At most S/2 buffers, rounded up, hold sums at a time.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/lease.h"

namespace tug {

// Spare buffers of a lane, so that steady state allocates nothing. Not thread-safe.
class BufferPool {
 public:
  AlignedBuffer Take(size_t size_bytes);
  void Give(AlignedBuffer buffer) { spare_.push_back(std::move(buffer)); }

 private:
  std::vector<AlignedBuffer> spare_;
};

// Not thread-safe: owned by one lane.
class SumTree {
 public:
  static constexpr uint32_t kNone = 0xffffffffu;

  // REQUIRES: leaves >= 1; `pool` outlives the tree.
  SumTree(uint32_t leaves, uint64_t elements, BufferPool& pool);
  ~SumTree();
  SumTree(SumTree&&) = default;
  SumTree& operator=(SumTree&&) = delete;

  // Whether [first, first + count) is a subtree: what Add accepts.
  static bool IsNode(uint32_t leaves, uint32_t first, uint32_t count);
  // Whether any of the leaves has been added: a repeat.
  bool Covers(uint32_t first, uint32_t count) const;
  // Adds the sum of leaves [first, first + count). REQUIRES: IsNode, not Covers, data has
  // `elements`.
  void Add(uint32_t first, uint32_t count, std::span<const float> data);

  uint32_t added() const { return added_; }
  bool complete() const { return added_ == leaves_; }
  // REQUIRES: complete().
  std::span<const float> sum() const;
  // Smallest first leaf of an Add with an element that is not finite; kNone if all were.
  uint32_t first_not_finite() const { return first_not_finite_; }
  // Ready for the next clock; gives all buffers back.
  void Clear();

 private:
  struct Node {
    uint32_t level;
    uint32_t index;
    AlignedBuffer sum;
  };

  Node Promoted(Node node) const;
  std::optional<Node> TakeWaiting(uint32_t level, uint32_t index);
  // Raises the node until it is the root or its sibling is missing, then stores it.
  void Settle(Node node);

  const uint32_t leaves_;
  const uint64_t elements_;
  BufferPool* const pool_;
  std::vector<bool> covered_;
  uint32_t added_ = 0;
  uint32_t first_not_finite_ = kNone;
  std::vector<Node> waiting_;
};

}  // namespace tug

#endif  // TUG_SERVER_SUM_TREE_H_
