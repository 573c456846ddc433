// SPDX-License-Identifier: Apache-2.0
#include "cli/name_argument.h"

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "proto/process_name.h"

namespace tug {

void NameArgument::AddTo(CLI::App& command) {
  command
      .add_option("--name", name,
                  absl::StrCat("Name of this process in status, logs and metrics: ",
                               ProcessName(role, 0), ", ", ProcessName(role, 1),
                               ", ...; another one if a process of the job has it; default: the "
                               "first that none has"))
      ->type_name("NAME")
      ->check([role = role](const std::string& text) {
        return ProcessIndexOf(role, text).has_value()
                   ? ""
                   : absl::StrCat("not the name of a ", role, ", such as ", ProcessName(role, 0));
      });
}

std::optional<uint32_t> NameArgument::index() const { return ProcessIndexOf(role, name); }

}  // namespace tug
