// SPDX-License-Identifier: Apache-2.0
#include "base/net/http_head.h"

#include <optional>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/net/same_secret.h"

namespace tug {
namespace {

// "/SECRET/status.json" becomes "/status.json". False: the secret is missing or wrong.
bool TakeSecret(absl::string_view& target, absl::string_view secret) {
  if (secret.empty()) return true;
  if (target.size() <= secret.size() + 1 || target[secret.size() + 1] != '/') return false;
  if (!SameSecret(target.substr(1, secret.size()), secret)) return false;
  target.remove_prefix(secret.size() + 1);
  return true;
}

// Value of the only Host line; none if it is missing or repeated.
std::optional<absl::string_view> HostIn(const std::vector<absl::string_view>& lines) {
  std::optional<absl::string_view> host;
  for (absl::string_view line : lines) {
    if (!absl::StartsWithIgnoreCase(line, "host:")) continue;
    if (host.has_value()) return std::nullopt;
    host = absl::StripAsciiWhitespace(line.substr(5));
  }
  return host;
}

bool IsPrintable(absl::string_view text) {
  for (const char c : text) {
    if (!absl::ascii_isprint(static_cast<unsigned char>(c))) return false;
  }
  return true;
}

}  // namespace

HttpHead ReadHttpHead(absl::string_view head, absl::string_view secret) {
  const std::vector<absl::string_view> lines = absl::StrSplit(head, "\r\n");
  const std::vector<absl::string_view> words = absl::StrSplit(lines[0], ' ');
  if (words.size() != 3 || !absl::StartsWith(words[2], "HTTP/1.") || !IsPrintable(lines[0])) {
    return {.refusal = 400};
  }
  if (words[0] != "GET" && words[0] != "HEAD") return {.refusal = 405};
  const std::optional<absl::string_view> host = HostIn(lines);
  if (!host.has_value() || !IsPrintable(*host)) return {.refusal = 400};
  absl::string_view target = words[1];
  if (!absl::StartsWith(target, "/")) return {.refusal = 400};
  if (!TakeSecret(target, secret)) return {.refusal = 403};
  return {.request = absl::StrCat(words[0], " ", target, " HTTP/1.1\r\nHost: ", *host,
                                  "\r\nConnection: close\r\n\r\n")};
}

}  // namespace tug
