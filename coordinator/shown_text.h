#ifndef TUG_COORDINATOR_SHOWN_TEXT_H_
#define TUG_COORDINATOR_SHOWN_TEXT_H_

// What members say goes to terminals, logs and pages as text, never as orders to them: these are
// the places where it comes in. Pure, thread-safe.

#include <cstddef>
#include <string>

namespace tug {

class HeartbeatRequest;

inline constexpr size_t kMostShownBytes = 2000;

// `text`, cut at `most` bytes, with a blank in place of each control character (C0, DEL, C1): a
// terminal would obey those, and a line end would begin a line of somebody else's.
std::string Shown(const std::string& text, size_t most = kMostShownBytes);

// Whether a text is HOST:PORT, a name or a numeric address: "node-a:9464", "[::1]:9464".
bool IsEndpoint(const std::string& text);

// Makes all that is shown of a heartbeat Shown: failure, notices, errors of checkpoint parts.
void ShowTexts(HeartbeatRequest& beat);

}  // namespace tug

#endif  // TUG_COORDINATOR_SHOWN_TEXT_H_
