// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_PROTO_PROCESS_NAME_H_
#define TUG_PROTO_PROCESS_NAME_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace tug {

enum NodeKind : int;

// Names of a job's processes: "coordinator", "server-1", "worker-0". Terminal, logs, status, page,
// metrics and traces all show this name; no other code formats or parses one. Pure, thread-safe.
inline constexpr char kCoordinatorProcess[] = "coordinator";
inline constexpr char kServerRole[] = "server";
inline constexpr char kWorkerRole[] = "worker";

// Role of a node: kServerRole or kWorkerRole.
std::string KindName(NodeKind kind);

// Indexes of a role lie below this.
inline constexpr uint32_t kProcessIndexLimit = 4096;

// "worker-0"
std::string ProcessName(absl::string_view role, uint32_t index);

// Index in a name of this role, "worker-0"; none if it is no such name.
std::optional<uint32_t> ProcessIndexOf(absl::string_view role, absl::string_view name);

// Which process of a name this is: "second life" for the first replacement of the original one.
std::string LifeText(uint32_t life);

}  // namespace tug

#endif  // TUG_PROTO_PROCESS_NAME_H_
