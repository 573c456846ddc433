// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_EXCHANGE_ENCODE_CODEC_CHOOSER_H_
#define TUG_EXCHANGE_ENCODE_CODEC_CHOOSER_H_

#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "exchange/encode/link_rate.h"

namespace tug {

// Chooses, for a link, the method that transfers elements in the least time: time to encode plus
// time to send at the link's rate, both measured (comm.push_codec.auto, comm.pull_format
// PULL_AUTO). Method 0 is plain FP32.
//
//   1. A lane that shares memory: FP32, without measurement.
//   2. Until every codec has kMinMeasurements measurements: all methods in turn. FP32 takes part
//      because it reveals the link's rate.
//   3. Until the link's rate is known: FP32 for the first elements, to measure it, then the method
//      with the fewest bytes.
//   4. Then the fastest method. Another one replaces it only if it saves kMinGain of the time.
//   5. Every kMeasureClocks another codec gets a turn, to measure its cost again, and a method with
//      enough bytes to measure the link. The link is probed earlier, kSoonProbes times at intervals
//      of kSoonClocks for each chosen method, if kMayBeFaster times the rate would change the
//      choice: the link may be faster once others stop using it. Both apply only to element counts
//      of at least half the largest; smaller ones are not informative.
//
// Has no clock: callers pass measurements in. Not thread-safe.
class CodecChooser {
 public:
  static constexpr double kMinGain = 0.1;
  static constexpr uint64_t kMeasureClocks = 64;
  static constexpr uint64_t kSoonClocks = 4;
  static constexpr uint32_t kSoonProbes = 2;
  static constexpr double kMayBeFaster = 4;
  static constexpr uint32_t kMinMeasurements = 3;
  // Elements sent as FP32 before the link's rate is known.
  static constexpr uint64_t kFirstElements = 256 << 10;

  // Upper bounds on the bytes per element by method, used until a method has been measured.
  explicit CodecChooser(std::span<const double> bytes_per_element);

  // Chooses the method for `elements` that cross the link to `lane` at a clock. Workers that share
  // a link should pass clocks offset from each other, so that their measurements take turns.
  uint32_t Choose(uint32_t lane, bool shares_memory, uint64_t elements, uint64_t clock);

  // Whether a method was chosen for the lane, since the last call, to probe the link's rate. Wait
  // for the reply to a probe before encoding anything else.
  bool TakeProbe(uint32_t lane) { return std::exchange(lanes_[lane].probes, false); }

  // Records that `method` made `bytes` of `elements`. 0 seconds: time not measured.
  void OnMade(uint32_t method, uint64_t elements, uint64_t bytes, double seconds);

  // Rate of the link in the direction that the elements go.
  LinkRate& link(uint32_t lane) { return lanes_[lane].link; }
  // Forgets all other lanes.
  void KeepLanes(std::span<const uint32_t> lanes);
  // Calls LinkRate::Restart on all links.
  void RestartLinks();

  struct Chosen {
    uint32_t lane = 0;
    uint32_t method = 0;
    double bytes_per_second = 0;  // 0: shared memory
    bool settled = false;         // unchanged for the last kSettledAfter choices
  };
  // Choices of all lanes passed to Choose, ascending.
  std::vector<Chosen> chosen() const;

 private:
  struct Method {
    double bytes_per_element = 0;
    std::array<double, 5> seconds = {};  // per element; a ring
    uint32_t measured = 0;               // measurements ever
    double median_seconds = 0;
    uint64_t largest = 0;  // elements of the largest measurement
  };
  struct Lane {
    LinkRate link;
    bool asked = false;
    bool shares_memory = false;
    bool has_chosen = false;
    uint32_t method = 0;          // current choice
    uint32_t kept = 0;            // choices since `method` last changed
    uint32_t turn = 0;            // next method in turn
    uint64_t first_elements = 0;  // elements sent before the rate was known
    uint64_t largest = 0;         // largest element count requested
    bool probes = false;          // a probe was chosen since TakeProbe
    uint32_t probed = 0;          // probes of the link with the current method
    uint64_t probed_at = 0;       // clock + 1 of the last probe
    uint64_t measured_at = 0;     // clock + 1 of the last turn of another codec
  };

  bool AllMeasured() const;
  uint32_t Fewest() const;
  double SecondsOf(const Method& method, double bytes_per_second) const {
    return method.median_seconds + method.bytes_per_element / bytes_per_second;
  }
  uint32_t NextTurn(Lane& lane) const;
  // Next codec in turn; skips FP32, which needs no measurement.
  uint32_t NextCodecTurn(Lane& lane) const;
  // The fastest method at this rate.
  uint32_t BestAt(double bytes_per_second) const;
  // Updates the method chosen for the lane.
  void Settle(Lane& lane);
  // The method with the fewest bytes that still measures a link's rate (LinkRate::kWholeBytes).
  uint32_t ProbeOf(uint64_t elements) const;

  std::vector<Method> methods_;
  std::map<uint32_t, Lane> lanes_;
};

}  // namespace tug

#endif  // TUG_EXCHANGE_ENCODE_CODEC_CHOOSER_H_
