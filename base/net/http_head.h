// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_BASE_NET_HTTP_HEAD_H_
#define TUG_BASE_NET_HTTP_HEAD_H_

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"

namespace tug {

// Longer than any browser's request, including the cookies of all servers on its host.
inline constexpr size_t kMaxHttpHeadBytes = 16 << 10;

// Result of parsing the head of a request: the request line and the header lines, including the
// final empty line.
struct HttpHead {
  int refusal = 0;      // HTTP status to refuse with; 0: accepted
  std::string request;  // the request with its Host line only, for the HTTP library to parse
};

// Accepts GET and HEAD. Passes the HTTP library only what it needs to reply: it would serve any
// number of overlapping ranges, and read any body. `secret`: required first part of the path, which
// is removed ("/SECRET/status.json"); empty: none required. Pure, thread-safe.
HttpHead ReadHttpHead(absl::string_view head, absl::string_view secret);

}  // namespace tug

#endif  // TUG_BASE_NET_HTTP_HEAD_H_
