#ifndef TUG_COLLECTIVE_COST_H_
#define TUG_COLLECTIVE_COST_H_

namespace tug {

// The alpha-beta model of a network (Hockney 1994; Thakur, Rabenseifner and Gropp 2005): a message
// of n bytes between two hosts takes alpha + n beta, in both directions at once; summing n bytes
// takes n gamma.
//
// A rank has one port: it sends one message at a time and receives one at a time, and what it sums
// it sums before it receives the next. Costs of algorithms (RingAllReduceSeconds and so on) are of
// such ranks on one switch, with parts that are all equal. Rounds of an algorithm are its messages
// that follow one another: how often its cost has alpha.
struct LinkCost {
  double alpha = 0;  // seconds a message
  double beta = 0;   // seconds a byte
  double gamma = 0;  // seconds a byte that is summed

  friend bool operator==(const LinkCost&, const LinkCost&) = default;
};

// Of a message, and of one that is summed where it arrives.
inline constexpr double SendSeconds(const LinkCost& link, double bytes) {
  return link.alpha + bytes * link.beta;
}
inline constexpr double ReduceSeconds(const LinkCost& link, double bytes) {
  return SendSeconds(link, bytes) + bytes * link.gamma;
}

}  // namespace tug

#endif  // TUG_COLLECTIVE_COST_H_
