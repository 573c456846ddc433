#ifndef TUG_EXCHANGE_CODEC_CHOOSER_H_
#define TUG_EXCHANGE_CODEC_CHOOSER_H_

#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "exchange/link_rate.h"

namespace tug {

// By which of several methods elements cross a link in the least time: that of making the method's
// bytes, as measured, and that of sending them at the link's rate, as measured
// (comm.push_codec.auto, comm.pull_format PULL_AUTO). Method 0 is FP32, as it is.
//
//   1. A lane that shares memory: FP32, at once, and nothing is measured.
//   2. As long as a method has not been measured, all have their turn, FP32 too: it tells the rate
//      of the link.
//   3. As long as the rate of the link is not known: FP32 for the first elements, which tells it,
//      then the fewest bytes.
//   4. The method of the least time; another one when it gains kLeastGain.
//   5. In every kMeasureClocks another codec has a turn, so that what it costs is known anew, and
//      one with enough bytes to tell the rate of the link. Where another method would be chosen if
//      the rate were kMayBeFaster times as much, which it may be when others use the link no more,
//      that is sooner: kSoonProbes times in kSoonClocks each, for every method that is chosen.
//      Both are for an element count of half the largest at least: of others nothing is learned.
//
// A machine without clock: whoever uses it says what it saw. Not thread-safe.
class CodecChooser {
 public:
  static constexpr double kLeastGain = 0.1;
  static constexpr uint64_t kMeasureClocks = 64;
  static constexpr uint64_t kSoonClocks = 4;
  static constexpr uint32_t kSoonProbes = 2;
  static constexpr double kMayBeFaster = 4;
  static constexpr uint32_t kLeastMeasurements = 3;
  // Of FP32, before the rate of the link is known.
  static constexpr uint64_t kFirstElements = 256 << 10;

  // Bytes of an element by each method, at most, as long as none has been made.
  explicit CodecChooser(std::span<const double> bytes_per_element);

  // The method for so many elements that go over the lane at a clock. Clocks of workers that share
  // a link are best apart from each other: what they measure in turn is not what they share.
  uint32_t Choose(uint32_t lane, bool shares_memory, uint64_t elements, uint64_t clock);

  // Whether, since this was asked last, one has been chosen for the lane to tell the rate of the
  // link: it is best answered before anything else is encoded.
  bool TakeProbe(uint32_t lane) { return std::exchange(lanes_[lane].probes, false); }

  // A method has made so many bytes of so many elements. 0 seconds: not measured.
  void OnMade(uint32_t method, uint64_t elements, uint64_t bytes, double seconds);

  // In the direction in which the elements go.
  LinkRate& link(uint32_t lane) { return lanes_[lane].link; }
  // Forgets lanes that are not among these.
  void KeepLanes(std::span<const uint32_t> lanes);
  // LinkRate::Restart of all.
  void RestartLinks();

  struct Chosen {
    uint32_t lane = 0;
    uint32_t method = 0;
    double bytes_per_second = 0;  // 0: shared memory
    bool settled = false;         // it has been the same for a while
  };
  // Of the lanes that were asked for, ascending.
  std::vector<Chosen> chosen() const;

 private:
  struct Method {
    double bytes_per_element = 0;
    std::array<double, 5> seconds = {};  // per element, a ring
    uint32_t measured = 0;               // ever
    double median_seconds = 0;
    uint64_t largest = 0;  // elements of a measurement
  };
  struct Lane {
    LinkRate link;
    bool asked = false;
    bool shares_memory = false;
    bool has_chosen = false;
    uint32_t method = 0;          // chosen
    uint32_t kept = 0;            // how often in a row
    uint32_t turn = 0;            // the next method that has one
    uint64_t first_elements = 0;  // before the rate was known
    uint64_t largest = 0;         // elements, of those asked for
    bool probes = false;          // since TakeProbe
    uint32_t probed = 0;          // how often the link was, with this method chosen
    uint64_t probed_at = 0;       // clock + 1
    uint64_t measured_at = 0;     // as probed_at: a method was
  };

  bool AllMeasured() const;
  uint32_t Fewest() const;
  double SecondsOf(const Method& method, double bytes_per_second) const {
    return method.median_seconds + method.bytes_per_element / bytes_per_second;
  }
  uint32_t NextTurn(Lane& lane) const;
  // But for FP32, of which there is nothing to measure.
  uint32_t NextCodecTurn(Lane& lane) const;
  // The method of the least time.
  uint32_t BestAt(double bytes_per_second) const;
  // From now on on the lane.
  void Settle(Lane& lane);
  // The method of the fewest bytes that tell the rate of a link.
  uint32_t ProbeOf(uint64_t elements) const;

  std::vector<Method> methods_;
  std::map<uint32_t, Lane> lanes_;
};

}  // namespace tug

#endif  // TUG_EXCHANGE_CODEC_CHOOSER_H_
