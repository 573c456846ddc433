#ifndef TUG_SERVER_SUM_TREE_H_
#define TUG_SERVER_SUM_TREE_H_

// Sums the contributions of S virtual workers to one segment along a fixed binary tree,
// (0+1)+(2+3)..., whatever order they arrive in: the result has the same bits for every order, and
// for every way of summing an aligned group beforehand (a group is a subtree). Nodes whose sibling
// lies wholly beyond S are promoted unchanged; in a sum of some of them (Seal), so are those whose
// sibling has nothing in it.
//
// How it works: a subtree that is complete waits until its sibling is. Float addition commutes (it
// does not associate), so either sibling may be the accumulator: the one whose memory may be
// written.
//   1. Find the tree node that the arriving group is.
//   2. No sibling waiting: wait. A message waits where it arrived, not copied, if it is large; bf16
//      is widened into a buffer of the pool.
//   3. Sibling waiting: add into whichever of the two lies in memory of our own, or, where both lie
//      in senders' memory, into a buffer; go up one level; while the sibling there waits too, add
//      the two.
//
// Memory: a node waits either in our own memory (a buffer, or a message received into it) or, at no
// cost, in a sender's. OwnAfter foretells how many of the former there will be.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/lease.h"
#include "server/buffer_pool.h"

namespace tug {

// A segment's part of an arriving push.
struct Contribution {
  Lease payload;         // FP32 elements, or bf16 ones
  bool bf16 = false;     // then the payload is only read
  bool writable = true;  // our own memory, read by nobody else (Home::kReceiver)

  // Whether a node made of it alone lies in our own memory.
  bool own() const { return bf16 || writable; }
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
  // Adds the sum of leaves [first, first + count). REQUIRES: IsNode, not Covers, the payload has
  // `elements`.
  void Add(uint32_t first, uint32_t count, Contribution contribution);

  uint32_t added() const { return added_; }
  // Whether nothing is to be added any more.
  bool complete() const { return sealed_ || added_ == leaves_; }
  // Makes it complete with what is there: the sum of these leaves, along the same tree. REQUIRES:
  // something was added.
  void Seal();
  // Leaves in [0, first) that have not been added.
  uint32_t MissingBefore(uint32_t first) const;
  // Waiting nodes in our own memory: now, and after Add. REQUIRES: as Add.
  uint32_t own_nodes() const { return own_nodes_; }
  uint32_t OwnAfter(uint32_t first, uint32_t count, bool own) const;
  uint64_t size_bytes() const { return elements_ * sizeof(float); }

  // Wherever it lies; valid until Clear. REQUIRES: complete().
  std::span<const float> sum() const;
  // Smallest first leaf of an Add with an element that is not finite; kNone if all were.
  uint32_t first_not_finite() const { return first_not_finite_; }
  // Ready for the next clock; gives all memory back.
  void Clear();

 private:
  struct Position {
    uint32_t level = 0;
    uint32_t index = 0;

    Position sibling() const { return {level, index ^ 1}; }
    Position parent() const { return {level + 1, index / 2}; }
    friend bool operator==(const Position&, const Position&) = default;
  };
  struct Node {
    Position at;
    const float* data = nullptr;
    float* own = nullptr;  // `data` if that is our own memory
    Lease message;         // what it lies in: this,
    AlignedBuffer buffer;  // or this
  };

  Position PositionOf(uint32_t first, uint32_t count) const;
  Position Promoted(Position at) const;
  std::optional<Node> TakeWaiting(Position at);
  void Put(Node node);
  bool MayHold(const Contribution& contribution) const;
  // The contribution alone as a node. `finite` here and below: whether the contribution is.
  Node Wait(Contribution contribution, bool& finite);
  // The contribution and its sibling added up, in our own memory.
  Node Join(Node sibling, Contribution contribution, bool& finite);
  Node Held(Contribution contribution);
  Node Buffered();
  void JoinLevel(uint32_t level);
  void Release(Node& node);

  const uint32_t leaves_;
  const uint64_t elements_;
  BufferPool* const pool_;
  std::vector<bool> covered_;
  uint32_t added_ = 0;
  bool sealed_ = false;
  uint32_t own_nodes_ = 0;
  uint32_t first_not_finite_ = kNone;
  std::vector<Node> waiting_;
};

}  // namespace tug

#endif  // TUG_SERVER_SUM_TREE_H_
