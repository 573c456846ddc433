// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_CLI_NAME_ARGUMENT_H_
#define TUG_CLI_NAME_ARGUMENT_H_

#include <cstdint>
#include <optional>
#include <string>

namespace CLI {
class App;
}  // namespace CLI

namespace tug {

// Name that a node wishes to have (proto/process_name.h). The coordinator grants it unless another
// node has it.
struct NameArgument {
  std::string role;  // kServerRole or kWorkerRole
  std::string name;

  // --name NAME; another role's name is refused.
  void AddTo(CLI::App& command);
  // Index in the name; none: no wish.
  std::optional<uint32_t> index() const;
};

}  // namespace tug

#endif  // TUG_CLI_NAME_ARGUMENT_H_
