// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_COORDINATOR_MEMBERSHIP_SHOWN_TEXT_H_
#define TUG_COORDINATOR_MEMBERSHIP_SHOWN_TEXT_H_

// Sanitises text from members on arrival: terminals, logs and pages show it as text and must never
// interpret it. Pure, thread-safe.

#include <cstddef>
#include <string>

namespace tug {

class HeartbeatRequest;

inline constexpr size_t kMaxShownBytes = 2000;

// Cuts `text` at `most` bytes and replaces each control character (C0, DEL, C1) by blanks: a
// terminal would obey it, and a line end would let one member forge the line of another.
std::string Shown(const std::string& text, size_t most = kMaxShownBytes);

// Whether a text is HOST:PORT, with a name or a numeric address: "node-a:9464", "[::1]:9464".
bool IsEndpoint(const std::string& text);

// Applies Shown to all displayed text of a heartbeat: failure, notices, errors of checkpoint parts,
// names of algorithms.
void ShowTexts(HeartbeatRequest& beat);

}  // namespace tug

#endif  // TUG_COORDINATOR_MEMBERSHIP_SHOWN_TEXT_H_
