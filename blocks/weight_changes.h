// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_BLOCKS_WEIGHT_CHANGES_H_
#define TUG_BLOCKS_WEIGHT_CHANGES_H_

// Pulls with comm.pull_format CHANGES (kChanges of proto/wire.h): one frame
// (compression/codecs/frames.h) per segment, with the changes since the previous version of the
// weights that workers hold. server/segments/shadow.h defines their contents.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "blocks/partitioner.h"
#include "blocks/segment_table.h"
#include "compression/sparse/top_k.h"
#include "proto/wire.h"

namespace tug {

// Codec of changes: top-k with the given `density` of a segment's elements. Its id in frames:
inline constexpr uint8_t kChangesCodecId = PushCodecConfig::kTopK;
TopKCodec ChangesCodec(double density);

// Versions that a worker holds in the destinations of its pulls, by segment: the weights that
// changes may be added to. A version's changes are added only once and only to the version before,
// whatever arrives late or twice. Not thread-safe.
class HeldWeights {
 public:
  // REQUIRES: `table` outlives this object.
  explicit HeldWeights(const SegmentTable& table);

  // Sets the destination of the block's weights. If it differs from the previous one, nothing is
  // held yet.
  void SetDestination(uint32_t block, std::span<const float> destination);
  // WireHeader::version of a pull: the version held of all these segments, or kNoVersion.
  uint64_t Version(const Partition& part) const;
  // Writes a reply to a pull into `weights`, its part of the destination: full weights (kNone), or
  // changes to the held version. Returns false for any other reply: then nothing was written, or
  // these segments are no longer held.
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

#endif  // TUG_BLOCKS_WEIGHT_CHANGES_H_
