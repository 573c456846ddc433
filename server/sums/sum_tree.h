// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_SERVER_SUMS_SUM_TREE_H_
#define TUG_SERVER_SUMS_SUM_TREE_H_

// Sums the contributions of S virtual workers to one segment along a fixed binary tree,
// (0+1)+(2+3)..., whatever order they arrive in: the result has the same bits for every order, and
// for every way of summing an aligned group beforehand (a group is a subtree). Nodes whose sibling
// lies entirely beyond S are promoted unchanged; in a partial sum (Seal), so are those whose
// sibling is empty.
//
// A complete subtree waits until its sibling is complete. Float addition commutes (it is not
// associative), so either sibling may be the accumulator, if its memory is writable.
//   1. Find the tree node of the arriving group.
//   2. No sibling waits: wait, as received. A large message waits where it arrived, without a copy;
//      an encoded one (compression/codecs/frames.h) stays encoded. One in a sender's memory that
//      does not stay there is copied.
//   3. A sibling waits: add into whichever of the two is FP32 in the lane's own memory, or else
//      into a buffer of the pool; go up one level; while a sibling waits there, add the two. An
//      encoded node is decoded while it is added, so a sparse one touches only the elements it
//      contains. Of two encoded ones one is decoded first; next to FP32 none is, so that a zero
//      that a sparse node omits is never added to -0, which would make +0.
//   4. If the whole sum is one encoded node, it is decoded at the end.
//
// Memory: a node waits either in the lane's own memory (a buffer, or a message received into it,
// counted as a whole segment even if encoded) or, at no cost, in a sender's. OwnAfter predicts the
// number of the former.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/memory/buffer_pool.h"
#include "base/memory/lease.h"
#include "compression/codecs/frames.h"
#include "server/sums/leaf_set.h"

namespace tug {

// A segment's part of an arriving push.
struct Contribution {
  Lease payload;         // FP32 elements, or the encoding of a frame
  uint8_t codec = 0;     // as Frame::codec; 0: FP32
  bool finite = true;    // as Frame::finite
  bool writable = true;  // the lane's own memory, without other readers (Home::kReceiver)
  bool stays = true;     // unless writable: unchanged until the sum is cleared
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
  // Adds the sum of leaves [first, first + count). REQUIRES: IsNode, not Covers, a known codec;
  // FP32 has `elements`.
  void Add(uint32_t first, uint32_t count, Contribution contribution);

  uint32_t added() const { return added_; }
  // Whether no more leaves can be added.
  bool complete() const { return sealed_ || added_ == leaves_; }
  // Completes the sum with the leaves so far, along the same tree. REQUIRES: at least one.
  void Seal();
  // Number of leaves in [0, first) that have not been added.
  uint32_t MissingBefore(uint32_t first) const;
  // Waiting nodes in the lane's own memory: now, and after Add of a contribution that is `own`
  // (writable, or copied since it does not stay). An encoded contribution of all leaves counts as
  // one in any case, since it is decoded at once. REQUIRES: as Add.
  uint32_t own_nodes() const { return own_nodes_; }
  uint32_t OwnAfter(uint32_t first, uint32_t count, bool own) const;
  uint64_t size_bytes() const { return elements_ * sizeof(float); }

  // The sum in place; valid until Clear or Replace. REQUIRES: complete().
  std::span<const float> sum() const;
  // Replaces the sum by another one, which may still be incomplete; releases the old one's memory.
  // first_not_finite() is unchanged until SetNotFinite. REQUIRES: complete(); as many elements.
  void Replace(Lease sum);
  void SetNotFinite(uint32_t first) { first_not_finite_ = first; }
  // Smallest first leaf of an Add with an element that is not finite, or that cannot be decoded;
  // kNone: none. The sum is unusable then. Encoded contributions count once they are decoded, so
  // all do once complete().
  uint32_t first_not_finite() const { return first_not_finite_; }
  // Prepares for the next clock; releases all memory.
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
    Frame frame;            // FP32, or still encoded
    float* sum = nullptr;   // its elements, if writable
    uint32_t leaf = kNone;  // first leaf, until checked to be finite; kNone for sums
    Lease message;          // its memory: `message` or `buffer`
    bool held = false;      // `message` is counted in the pool
    AlignedBuffer buffer;

    bool encoded() const { return frame.codec != 0; }
    bool own() const { return held || buffer.size_bytes() > 0; }
    const float* floats() const { return reinterpret_cast<const float*>(frame.encoding.data()); }
  };

  Position PositionOf(uint32_t first, uint32_t count) const;
  Position Promoted(Position at) const;
  std::optional<Node> TakeWaiting(Position at);
  void Put(Node node);
  // The contribution as received.
  Node Arrived(uint32_t first, Contribution contribution);
  // Moves an arrived node to where it may wait, and checks it if it is FP32. `copied`: not in
  // place.
  Node Waiting(Node arrived, bool copied);
  // Adds two siblings, in the lane's own memory. REQUIRES: `a` has been checked if it is FP32.
  Node Join(Node a, Node b);
  // The node as FP32, in the lane's own memory.
  Node Decoded(Node node);
  void AddTo(Node& accumulator, Node& node);
  Node Buffered(uint64_t buffer_bytes);
  // Records whether the node is finite.
  void Look(Node& node, bool finite);
  void JoinLevel(uint32_t level);
  void DecodeSum();
  void Release(Node& node);

  const uint32_t leaves_;
  const uint64_t elements_;
  BufferPool* const pool_;
  LeafSet covered_;
  uint32_t added_ = 0;
  bool sealed_ = false;
  uint32_t own_nodes_ = 0;
  uint32_t first_not_finite_ = kNone;
  std::vector<Node> waiting_;
};

}  // namespace tug

#endif  // TUG_SERVER_SUMS_SUM_TREE_H_
