#ifndef TUG_CLI_STATUS_TEXT_H_
#define TUG_CLI_STATUS_TEXT_H_

#include <string>

#include "proto/control.pb.h"

namespace tug {

// Lines of `tug status`.

// A node: who it is, what it has, and what is remarkable about it.
std::string NodeText(const NodeStatus& node);

// How many copies the segments have, of a job that keeps more than one (sync.replicas); else empty.
std::string CopiesText(const StatusReply& status);

}  // namespace tug

#endif  // TUG_CLI_STATUS_TEXT_H_
