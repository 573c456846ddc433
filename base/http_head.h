#ifndef TUG_BASE_HTTP_HEAD_H_
#define TUG_BASE_HTTP_HEAD_H_

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"

namespace tug {

// No browser's request is longer, with the cookies of all that listens on its host.
inline constexpr size_t kMostHttpHeadBytes = 16 << 10;

// What an HTTP server does about the head of a request: the request line and the header lines, with
// the empty line at their end.
struct HttpHead {
  int refusal = 0;      // the status to answer with; 0: none
  std::string request;  // the same request with its Host line only, for an HTTP library to read
};

// Takes GET and HEAD. What is not needed to answer them never reaches the library: it would take
// any number of overlapping ranges, and read any body. `secret`: the first part of the path, which
// is taken off ("/SECRET/status.json"); empty: none is asked for. Pure, thread-safe.
HttpHead ReadHttpHead(absl::string_view head, absl::string_view secret);

}  // namespace tug

#endif  // TUG_BASE_HTTP_HEAD_H_
