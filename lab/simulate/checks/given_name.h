// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_LAB_SIMULATE_CHECKS_GIVEN_NAME_H_
#define TUG_LAB_SIMULATE_CHECKS_GIVEN_NAME_H_

#include <string>

namespace tug {

class RegisterReply;
class RegisterRequest;
class StatusReply;

// Error in the name that a coordinator gave a node which has just registered for the first time;
// empty: none. No two members have one name, and a node has the name that it wishes
// for unless another member has it: so a replacement has the name of the node that was lost. Pure.
std::string WrongName(const RegisterRequest& request, const RegisterReply& reply,
                      const StatusReply& status);

}  // namespace tug

#endif  // TUG_LAB_SIMULATE_CHECKS_GIVEN_NAME_H_
