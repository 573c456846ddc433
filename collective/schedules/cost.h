// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_COLLECTIVE_SCHEDULES_COST_H_
#define TUG_COLLECTIVE_SCHEDULES_COST_H_

namespace tug {

// The alpha-beta model of a network (Hockney 1994; Thakur, Rabenseifner and Gropp 2005): a message
// of n bytes between two hosts takes alpha + n beta, in both directions at once; summing n bytes
// takes n gamma.
//
// A rank has one port: it sends one message at a time and receives one at a time, and sums a
// message before it receives the next. Costs of algorithms (RingAllReduceSeconds and so on) assume
// such ranks on one switch, and equal parts. Rounds of an algorithm are its messages that follow
// one another: the factor of alpha in its cost.
struct LinkCost {
  double alpha = 0;  // seconds per message
  double beta = 0;   // seconds per byte
  double gamma = 0;  // seconds per summed byte

  friend bool operator==(const LinkCost&, const LinkCost&) = default;
};

// Time of a message, and of a message that is summed on arrival.
inline constexpr double SendSeconds(const LinkCost& link, double bytes) {
  return link.alpha + bytes * link.beta;
}
inline constexpr double ReduceSeconds(const LinkCost& link, double bytes) {
  return SendSeconds(link, bytes) + bytes * link.gamma;
}

}  // namespace tug

#endif  // TUG_COLLECTIVE_SCHEDULES_COST_H_
