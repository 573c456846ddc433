#ifndef TUG_TESTS_FREE_PORT_H_
#define TUG_TESTS_FREE_PORT_H_

namespace tug {

// Of loopback, and free at this moment: for programs that cannot be told to pick one. Whoever
// starts one is ready to start it again at another.
int FreePort();

}  // namespace tug

#endif  // TUG_TESTS_FREE_PORT_H_
