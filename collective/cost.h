#ifndef TUG_COLLECTIVE_COST_H_
#define TUG_COLLECTIVE_COST_H_

namespace tug {

// The alpha-beta model of a network (Hockney 1994; Thakur, Rabenseifner and Gropp 2005): a message
// of n bytes between two hosts takes alpha + n beta, in both directions at once; summing n bytes
// takes n gamma.
struct LinkCost {
  double alpha = 0;  // seconds a message
  double beta = 0;   // seconds a byte
  double gamma = 0;  // seconds a byte that is summed
};

}  // namespace tug

#endif  // TUG_COLLECTIVE_COST_H_
