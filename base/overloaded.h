#ifndef TUG_BASE_OVERLOADED_H_
#define TUG_BASE_OVERLOADED_H_

namespace tug {

// One callable of several, for std::visit: an alternative that none of them takes does not compile.
template <typename... Callables>
struct Overloaded : Callables... {
  using Callables::operator()...;
};

}  // namespace tug

#endif  // TUG_BASE_OVERLOADED_H_
