// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_TESTS_SUPPORT_FREE_PORT_H_
#define TUG_TESTS_SUPPORT_FREE_PORT_H_

namespace tug {

// Returns a loopback port that is free at this moment, for programs that cannot choose one
// themselves. Another process may take it first: the caller must be ready to retry with another
// port.
int FreePort();

}  // namespace tug

#endif  // TUG_TESTS_SUPPORT_FREE_PORT_H_
