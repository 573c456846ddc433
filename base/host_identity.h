#ifndef TUG_BASE_HOST_IDENTITY_H_
#define TUG_BASE_HOST_IDENTITY_H_

#include <cstdint>

namespace tug {

// The same number for processes that can share memory, and reach each other without a network: of
// one boot of one machine, one network namespace and one user. 0: not known. Thread-safe.
uint64_t HostIdentity();

}  // namespace tug

#endif  // TUG_BASE_HOST_IDENTITY_H_
