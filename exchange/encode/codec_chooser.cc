// SPDX-License-Identifier: Apache-2.0
#include "exchange/encode/codec_chooser.h"

#include <algorithm>

#include "base/check.h"

namespace tug {
namespace {

constexpr uint32_t kSettledAfter = 8;  // choices without a change

}  // namespace

CodecChooser::CodecChooser(std::span<const double> bytes_per_element) {
  TUG_CHECK_GT(bytes_per_element.size(), 1u);
  for (const double bytes : bytes_per_element) methods_.push_back({.bytes_per_element = bytes});
}

void CodecChooser::OnMade(uint32_t method, uint64_t elements, uint64_t bytes, double seconds) {
  Method& m = methods_[method];
  // Ignores small segments: the fixed cost of an encoding dominates their time.
  if (elements == 0 || elements < m.largest / 2) return;
  m.largest = std::max(m.largest, elements);
  const auto n = static_cast<double>(elements);
  m.bytes_per_element = static_cast<double>(bytes) / n;
  m.seconds[m.measured++ % m.seconds.size()] = seconds / n;
  auto sorted = m.seconds;
  const size_t count = std::min<size_t>(m.measured, sorted.size());
  std::nth_element(sorted.begin(), sorted.begin() + count / 2, sorted.begin() + count);
  m.median_seconds = sorted[count / 2];
}

bool CodecChooser::AllMeasured() const {
  return std::all_of(methods_.begin() + 1, methods_.end(),
                     [](const Method& m) { return m.measured >= kMinMeasurements; });
}

uint32_t CodecChooser::Fewest() const {
  const auto least = std::min_element(
      methods_.begin(), methods_.end(),
      [](const Method& a, const Method& b) { return a.bytes_per_element < b.bytes_per_element; });
  return static_cast<uint32_t>(least - methods_.begin());
}

uint32_t CodecChooser::NextTurn(Lane& lane) const {
  return lane.turn++ % static_cast<uint32_t>(methods_.size());
}

uint32_t CodecChooser::NextCodecTurn(Lane& lane) const {
  return 1 + lane.turn++ % static_cast<uint32_t>(methods_.size() - 1);
}

uint32_t CodecChooser::Choose(uint32_t number, bool shares_memory, uint64_t elements,
                              uint64_t clock) {
  Lane& lane = lanes_[number];
  lane.asked = true;
  lane.shares_memory = shares_memory;
  if (shares_memory) return 0;
  lane.largest = std::max(lane.largest, elements);
  if (!AllMeasured()) return NextTurn(lane);
  const double rate = lane.link.bytes_per_second();
  if (rate == 0) {
    lane.first_elements += elements;
    return lane.first_elements <= std::max(kFirstElements, elements) ? 0 : Fewest();
  }
  Settle(lane);
  // A small one is not informative.
  if (2 * elements < lane.largest) return lane.method;
  const bool soon = lane.probed < kSoonProbes && BestAt(kMayBeFaster * rate) != lane.method;
  const uint64_t every = soon ? kSoonClocks : kMeasureClocks;
  if (clock % every == 0 && lane.probed_at != clock + 1) {
    lane.probed_at = clock + 1;
    ++lane.probed;
    lane.probes = true;
    return ProbeOf(elements);
  }
  if (clock % kMeasureClocks == 0 && lane.measured_at != clock + 1) {
    lane.measured_at = clock + 1;
    return NextCodecTurn(lane);
  }
  return lane.method;
}

uint32_t CodecChooser::BestAt(double bytes_per_second) const {
  uint32_t best = 0;
  for (uint32_t m = 1; m < methods_.size(); ++m) {
    if (SecondsOf(methods_[m], bytes_per_second) < SecondsOf(methods_[best], bytes_per_second)) {
      best = m;
    }
  }
  return best;
}

void CodecChooser::Settle(Lane& lane) {
  const double rate = lane.link.bytes_per_second();
  const uint32_t best = BestAt(rate);
  const double least = SecondsOf(methods_[best], rate);
  const double now = SecondsOf(methods_[lane.method], rate);
  ++lane.kept;
  if (!lane.has_chosen || (best != lane.method && least < (1 - kMinGain) * now)) {
    lane.has_chosen = true;
    lane.method = best;
    lane.kept = 0;
    lane.probed = 0;
  }
}

uint32_t CodecChooser::ProbeOf(uint64_t elements) const {
  uint32_t probe = 0;
  for (uint32_t m = 1; m < methods_.size(); ++m) {
    const double bytes = methods_[m].bytes_per_element * static_cast<double>(elements);
    const bool fewer = methods_[m].bytes_per_element < methods_[probe].bytes_per_element;
    if (fewer && bytes >= LinkRate::kWholeBytes) probe = m;
  }
  return probe;
}

void CodecChooser::RestartLinks() {
  for (auto& [number, lane] : lanes_) lane.link.Restart();
}

void CodecChooser::KeepLanes(std::span<const uint32_t> lanes) {
  std::erase_if(lanes_, [&](const auto& entry) {
    return std::find(lanes.begin(), lanes.end(), entry.first) == lanes.end();
  });
}

std::vector<CodecChooser::Chosen> CodecChooser::chosen() const {
  std::vector<Chosen> all;
  for (const auto& [number, lane] : lanes_) {
    if (!lane.asked) continue;
    if (lane.shares_memory) {
      all.push_back({.lane = number, .settled = true});
    } else {
      all.push_back({.lane = number,
                     .method = lane.method,
                     .bytes_per_second = lane.link.bytes_per_second(),
                     .settled = lane.has_chosen && lane.kept >= kSettledAfter});
    }
  }
  return all;
}

}  // namespace tug
