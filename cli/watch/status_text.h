// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_CLI_WATCH_STATUS_TEXT_H_
#define TUG_CLI_WATCH_STATUS_TEXT_H_

#include <string>

#include "proto/control.pb.h"

namespace tug {

// Lines of `tug status`.

// A node: its name, its assignment, and anything remarkable about it.
std::string NodeText(const NodeStatus& node);

// Number of replicas of the segments, for a job with replicas (sync.replicas); else empty.
std::string CopiesText(const StatusReply& status);

}  // namespace tug

#endif  // TUG_CLI_WATCH_STATUS_TEXT_H_
