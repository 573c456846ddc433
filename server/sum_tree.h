#ifndef TUG_SERVER_SUM_TREE_H_
#define TUG_SERVER_SUM_TREE_H_

// Sums the contributions of S virtual workers to one segment along a fixed binary tree,
// (0+1)+(2+3)..., whatever order they arrive in: the result has the same bits for every order, and
// for every way of summing an aligned group beforehand (a group is a subtree). Nodes whose sibling
// lies wholly beyond S are promoted unchanged; in a sum of some of them (Seal), so are those whose
// sibling has nothing in it.
//
// How it works: a subtree that is complete waits until its sibling is. Float addition commutes (it
// does not associate), so either sibling may be the accumulator: one whose memory may be written.
//   1. Find the tree node that the arriving group is.
//   2. No sibling waiting: wait, as it came. A message waits where it arrived, not copied, if it is
//      large; one that is encoded (compression/frames.h) stays so. One in a sender's memory that
//      does not stay there is copied.
//   3. Sibling waiting: add into whichever of the two is FP32 in memory of our own, or else into a
//      buffer of the pool; go up one level; while the sibling there waits too, add the two. What is
//      encoded is decoded while it is added, so of one that is sparse only what it holds is
//      touched. Of two encoded ones one is decoded first; beside FP32 none is, so that a zero that
//      it does not hold is never added to -0, which would make +0.
//   4. An encoded one that is all there is is decoded in the end.
//
// Memory: a node waits either in our own memory (a buffer, or a message received into it, counted
// as a whole segment even where it is encoded) or, at no cost, in a sender's. OwnAfter foretells
// how many of the former there will be.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/buffer_pool.h"
#include "base/lease.h"
#include "compression/frames.h"
#include "server/leaf_set.h"

namespace tug {

// A segment's part of an arriving push.
struct Contribution {
  Lease payload;         // FP32 elements, or the encoding of a frame
  uint8_t codec = 0;     // as Frame::codec; 0: FP32
  bool finite = true;    // as Frame::finite
  bool writable = true;  // our own memory, read by nobody else (Home::kReceiver)
  bool stays = true;     // unless writable: as it is until the sum is cleared
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
  // Adds the sum of leaves [first, first + count). REQUIRES: IsNode, not Covers, a codec that there
  // is; FP32 has `elements`.
  void Add(uint32_t first, uint32_t count, Contribution contribution);

  uint32_t added() const { return added_; }
  // Whether nothing is to be added any more.
  bool complete() const { return sealed_ || added_ == leaves_; }
  // Makes it complete with what is there: the sum of these leaves, along the same tree. REQUIRES:
  // something was added.
  void Seal();
  // Leaves in [0, first) that have not been added.
  uint32_t MissingBefore(uint32_t first) const;
  // Waiting nodes in our own memory: now, and after Add (of what is `own`: writable, or copied
  // since it does not stay). An encoded one of all leaves, which is decoded at once, is one
  // whatever is foretold. REQUIRES: as Add.
  uint32_t own_nodes() const { return own_nodes_; }
  uint32_t OwnAfter(uint32_t first, uint32_t count, bool own) const;
  uint64_t size_bytes() const { return elements_ * sizeof(float); }

  // Wherever it lies; valid until Clear or Replace. REQUIRES: complete().
  std::span<const float> sum() const;
  // Another sum takes the place of that of what was added, whose memory is given back: it may
  // still be in the making, and what is not finite is as before until SetNotFinite. REQUIRES:
  // complete(); as many elements.
  void Replace(Lease sum);
  void SetNotFinite(uint32_t first) { first_not_finite_ = first; }
  // Smallest first leaf of an Add with an element that is not finite, or with what cannot be
  // decoded; kNone if there was none. The sum is of no use then. Of what is encoded only once it is
  // decoded, so of all once complete().
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
    Frame frame;            // FP32, or what is still encoded
    float* sum = nullptr;   // its elements, if they may be written
    uint32_t leaf = kNone;  // of whom it is, until it is known to be finite; sums are of nobody
    Lease message;          // what it lies in: this,
    bool held = false;      // which is counted in the pool,
    AlignedBuffer buffer;   // or this

    bool encoded() const { return frame.codec != 0; }
    bool own() const { return held || buffer.size_bytes() > 0; }
    const float* floats() const { return reinterpret_cast<const float*>(frame.encoding.data()); }
  };

  Position PositionOf(uint32_t first, uint32_t count) const;
  Position Promoted(Position at) const;
  std::optional<Node> TakeWaiting(Position at);
  void Put(Node node);
  // The contribution as it came.
  Node Arrived(uint32_t first, Contribution contribution);
  // The same where it may wait, and looked at if it is FP32. `copied`: not where it is.
  Node Waiting(Node arrived, bool copied);
  // Two siblings added up, in our own memory. REQUIRES: `a` has been looked at if it is FP32.
  Node Join(Node a, Node b);
  // FP32, in our own memory.
  Node Decoded(Node node);
  void AddTo(Node& accumulator, Node& node);
  Node Buffered(uint64_t buffer_bytes);
  // It is known by now whether it is finite.
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

#endif  // TUG_SERVER_SUM_TREE_H_
