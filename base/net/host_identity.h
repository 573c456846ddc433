// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_BASE_NET_HOST_IDENTITY_H_
#define TUG_BASE_NET_HOST_IDENTITY_H_

#include <cstdint>

namespace tug {

// The same number for processes that can share memory and reach each other without a network: one
// boot of one machine, one network namespace, one user. 0: unknown. Thread-safe.
uint64_t HostIdentity();

}  // namespace tug

#endif  // TUG_BASE_NET_HOST_IDENTITY_H_
