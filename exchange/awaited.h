#ifndef TUG_EXCHANGE_AWAITED_H_
#define TUG_EXCHANGE_AWAITED_H_

#include <cstdint>

namespace tug {

// Why the weights of a block are not here yet, as a worker can tell from its own pushes and pulls
// of it: for people who watch.
enum class Awaited : uint8_t {
  kNothing,  // nothing of it is open
  kQueue,    // a push of it has yet to leave: it waits for credit or its turn, or for a lane's room
  kWire,     // all has left, and is not known to have arrived; or the weights are under way
  kSum,      // lanes have all of it, and wait for others' pushes
};

}  // namespace tug

#endif  // TUG_EXCHANGE_AWAITED_H_
