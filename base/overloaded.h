// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_BASE_OVERLOADED_H_
#define TUG_BASE_OVERLOADED_H_

namespace tug {

// Combines callables into one, for std::visit: an alternative that none of them accepts does not
// compile.
template <typename... Callables>
struct Overloaded : Callables... {
  using Callables::operator()...;
};

}  // namespace tug

#endif  // TUG_BASE_OVERLOADED_H_
