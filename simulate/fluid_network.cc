#include "simulate/fluid_network.h"

#include <algorithm>
#include <limits>

#include "base/check.h"

namespace tug {
namespace {

// A message with less left is through: what rounding leaves of bytes, and of times, in units of the
// last place.
constexpr double kRoundingBytes = 1e-3;
constexpr double kRoundingTime = 4 * std::numeric_limits<double>::epsilon();
// Links this close together are saturated at once.
constexpr double kSameLevel = 1 + 1e-9;

}  // namespace

FluidNetwork::Link FluidNetwork::AddLink(double bytes_per_second) {
  TUG_CHECK(bytes_per_second > 0);
  links_.push_back(bytes_per_second);
  residual_.push_back(0);
  weight_.push_back(0);
  return static_cast<Link>(links_.size() - 1);
}

FluidNetwork::Connection FluidNetwork::Connect(Link from, uint32_t weight_from, Link to,
                                               uint32_t weight_to) {
  streams_.push_back({.from = from,
                      .to = to,
                      .weight_from = static_cast<double>(weight_from),
                      .weight_to = static_cast<double>(weight_to)});
  return static_cast<Connection>(streams_.size() - 1);
}

void FluidNetwork::Send(Connection connection, double bytes, uint64_t message) {
  TUG_CHECK(bytes > 0);
  Stream& stream = streams_[connection];
  if (stream.messages.empty()) {
    stream.left = bytes;
    active_.insert(std::lower_bound(active_.begin(), active_.end(), connection), connection);
    changed_ = true;
    next_known_ = false;
  }
  stream.messages.push_back({bytes, message});
}

// Water filling: the link with least for each of its connections gives them that; then the others.
void FluidNetwork::Share() {
  if (!changed_) return;
  changed_ = false;
  for (const Connection c : active_) {
    for (const Link link : {streams_[c].from, streams_[c].to}) {
      residual_[link] = links_[link];
      weight_[link] = 0;
    }
  }
  for (const Connection c : active_) {
    Stream& stream = streams_[c];
    stream.shared = false;
    weight_[stream.from] += stream.weight_from;
    weight_[stream.to] += stream.weight_to;
  }
  size_t without = active_.size();
  while (without > 0) {
    double level = std::numeric_limits<double>::infinity();
    for (const Connection c : active_) {
      const Stream& stream = streams_[c];
      if (!stream.shared) level = std::min({level, LevelOf(stream.from), LevelOf(stream.to)});
    }
    // Judged by the levels before any of them is given its rate.
    std::vector<Connection> given;
    for (const Connection c : active_) {
      const Stream& stream = streams_[c];
      if (stream.shared) continue;
      if (std::min(LevelOf(stream.from), LevelOf(stream.to)) <= level * kSameLevel) {
        given.push_back(c);
      }
    }
    for (const Connection c : given) {
      Stream& stream = streams_[c];
      stream.shared = true;
      stream.rate = level;
      residual_[stream.from] -= level * stream.weight_from;
      residual_[stream.to] -= level * stream.weight_to;
      weight_[stream.from] -= stream.weight_from;
      weight_[stream.to] -= stream.weight_to;
    }
    without -= given.size();
  }
}

double FluidNetwork::NextTime() {
  if (next_known_) return next_time_;
  Share();
  next_time_ = std::numeric_limits<double>::infinity();
  for (const Connection c : active_) {
    next_time_ = std::min(next_time_, now_ + streams_[c].left / streams_[c].rate);
  }
  next_known_ = true;
  return next_time_;
}

void FluidNetwork::Advance(double time, std::vector<Arrival>& arrivals) {
  Share();
  const double seconds = time - now_;
  TUG_CHECK(seconds >= 0);
  now_ = time;
  bool ended = false;
  for (const Connection c : active_) {
    Stream& stream = streams_[c];
    stream.left -= stream.rate * seconds;
    if (stream.left > kRoundingBytes + stream.rate * time * kRoundingTime) continue;
    arrivals.push_back({c, stream.messages.front().name});
    stream.messages.pop_front();
    next_known_ = false;
    if (stream.messages.empty()) {
      ended = true;
    } else {
      stream.left = stream.messages.front().bytes;
    }
  }
  if (!ended) return;
  std::erase_if(active_, [this](Connection c) { return streams_[c].messages.empty(); });
  changed_ = true;
}

double FluidNetwork::rate(Connection connection) {
  Share();
  const Stream& stream = streams_[connection];
  return stream.messages.empty() ? 0 : stream.rate;
}

}  // namespace tug
