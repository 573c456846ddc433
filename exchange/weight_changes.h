#ifndef TUG_EXCHANGE_WEIGHT_CHANGES_H_
#define TUG_EXCHANGE_WEIGHT_CHANGES_H_

// Pulls with comm.pull_format CHANGES (kChanges of proto/wire.h): frames (compression/frames.h) of
// what the weights that workers hold have changed by since the version before, one for each
// segment. server/shadow.h says what is in them.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "compression/top_k.h"
#include "exchange/segment_table.h"
#include "proto/wire.h"
#include "scheduler/partitioner.h"

namespace tug {

// What changes are encoded by: the `density` of a segment's elements. Its id in frames:
inline constexpr uint8_t kChangesCodecId = PushCodecConfig::kTopK;
TopKCodec ChangesCodec(double density);

// What a worker holds in the destinations of its pulls, by segment: what changes may be added to.
// A version's changes are added once, where the version before is, whatever comes late or twice.
// Not thread-safe.
class HeldWeights {
 public:
  // REQUIRES: `table` outlives it.
  explicit HeldWeights(const SegmentTable& table);

  // The block's weights go to `destination` from now on. Where that is another one than before,
  // nothing is held yet.
  void SetDestination(uint32_t block, std::span<const float> destination);
  // WireHeader::version of a pull: that which is held of all these segments, or kNoVersion.
  uint64_t Version(const Partition& part) const;
  // Writes an answer to a pull into `weights`, the part of the destination: all of them (kNone), or
  // changes of what is held. False if it is neither: then nothing was written, or what is held of
  // these segments has become nothing.
  bool Take(const Partition& part, const WireHeader& header, std::span<const std::byte> payload,
            std::span<float> weights);

 private:
  bool HasFrames(const Partition& part, std::span<const std::byte> payload) const;
  bool AddFrames(const Partition& part, std::span<const std::byte> payload,
                 std::span<float> weights) const;
  void SetVersion(const Partition& part, uint64_t version);

  const SegmentTable& table_;
  std::vector<const float*> destinations_;  // by block
  std::vector<uint64_t> versions_;          // by segment id
};

}  // namespace tug

#endif  // TUG_EXCHANGE_WEIGHT_CHANGES_H_
