// SPDX-License-Identifier: Apache-2.0
#include "launch/hosts/hosts_file.h"

#include <algorithm>
#include <map>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "base/files/text_file.h"
#include "base/status_macros.h"

namespace tug {
namespace {

constexpr uint64_t kHostsFileLimitBytes = uint64_t{1} << 20;
constexpr char kForm[] =
    "write [user@]host[:port] [slots=N] [role=coordinator|server|worker] [interface=NAME]";

// Untrusted word as printable text of limited length.
std::string Shown(absl::string_view word) {
  constexpr size_t kMost = 60;
  std::string shown;
  for (const char c : word.substr(0, kMost)) shown += absl::ascii_isprint(c) ? c : '?';
  return absl::StrCat("'", shown, word.size() > kMost ? "..." : "", "'");
}

// A name, an address or a user that ssh accepts: never an option, never two shell words.
bool IsPlain(absl::string_view word, absl::string_view allowed) {
  return !word.empty() && word[0] != '-' && std::all_of(word.begin(), word.end(), [&](char c) {
    return absl::ascii_isalnum(c) || allowed.find(c) != absl::string_view::npos;
  });
}

absl::Status Wrong(absl::string_view what) { return absl::InvalidArgumentError(std::string(what)); }

// "[user@]host[:port]"
absl::Status ParseDestination(absl::string_view word, LaunchHost& host) {
  absl::string_view user, address = word;
  const size_t at = word.rfind('@');
  if (at != absl::string_view::npos) {
    user = word.substr(0, at);
    address = word.substr(at + 1);
    if (!IsPlain(user, "._-")) return Wrong(absl::StrCat(Shown(user), " is not a user; ", kForm));
  }
  absl::string_view port;
  const size_t colon = address.find(':');
  if (address.rfind(':') != colon) {
    return Wrong(absl::StrCat(Shown(address),
                              " is an IPv6 address, but daemons use IPv4 only: write a host name "
                              "or an IPv4 address[:port]"));
  }
  if (colon != absl::string_view::npos) {
    port = address.substr(colon + 1);
    if (port.empty()) return Wrong(absl::StrCat("no port after ", Shown(address)));
    address = address.substr(0, colon);
  }
  if (!port.empty() && (!absl::SimpleAtoi(port, &host.port) || host.port < 1 || host.port > 65535))
    return Wrong(absl::StrCat("port ", Shown(port), " is not a number from 1 to 65535"));
  if (!IsPlain(address, "._-"))
    return Wrong(absl::StrCat(Shown(address), " is not a host; ", kForm));
  host.name = std::string(address);
  host.destination = user.empty() ? host.name : absl::StrCat(user, "@", address);
  return absl::OkStatus();
}

absl::Status ParseSetting(absl::string_view word, LaunchHost& host) {
  const std::vector<absl::string_view> parts = absl::StrSplit(word, absl::MaxSplits('=', 1));
  if (parts.size() != 2) return Wrong(absl::StrCat("unknown word ", Shown(word), "; ", kForm));
  const auto& [key, value] = std::pair(parts[0], parts[1]);
  if (key == "slots") {
    if (absl::SimpleAtoi(value, &host.slots) && host.slots >= 1 && host.slots <= kMaxSlots)
      return absl::OkStatus();
    return Wrong(absl::StrCat("slots=", Shown(value), " is not a number from 1 to ", kMaxSlots));
  }
  if (key != "role" && key != "interface")
    return Wrong(absl::StrCat("unknown setting ", Shown(key), "; ", kForm));
  for (const absl::string_view item : absl::StrSplit(value, ',')) {
    if (key == "interface") {
      if (!IsPlain(item, "._-@"))
        return Wrong(absl::StrCat(Shown(item), " is not an interface; write interface=eth0"));
      host.interfaces.emplace_back(item);
    } else if (item == "coordinator") {
      host.coordinates = true;
    } else if (item == "server") {
      host.serves = true;
    } else if (item == "worker") {
      host.works = true;
    } else {
      return Wrong(
          absl::StrCat("unknown role ", Shown(item), "; use coordinator, server or worker"));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<LaunchHost> ParseHost(absl::string_view line) {
  const std::vector<absl::string_view> words =
      absl::StrSplit(line, absl::ByAnyChar(" \t"), absl::SkipEmpty());
  LaunchHost host;
  RETURN_IF_ERROR(ParseDestination(words[0], host));
  std::vector<absl::string_view> seen;
  for (size_t i = 1; i < words.size(); ++i) {
    const absl::string_view key = words[i].substr(0, words[i].find('='));
    if (std::find(seen.begin(), seen.end(), key) != seen.end())
      return Wrong(absl::StrCat(Shown(key), " is given twice; separate its values with commas"));
    seen.push_back(key);
    RETURN_IF_ERROR(ParseSetting(words[i], host));
  }
  return host;
}

// One entry per slot of the hosts that take a role.
template <typename Takes>
std::vector<size_t> Places(const std::vector<LaunchHost>& hosts, Takes takes) {
  std::vector<size_t> places;
  for (size_t i = 0; i < hosts.size(); ++i) {
    if (takes(hosts[i]) || hosts[i].takes_any()) places.insert(places.end(), hosts[i].slots, i);
  }
  return places;
}

absl::Status NoHostFor(absl::string_view role) {
  return absl::FailedPreconditionError(absl::StrCat("no host may run a ", role, ": add role=", role,
                                                    " to a line of the hosts file"));
}

}  // namespace

absl::StatusOr<std::vector<LaunchHost>> ParseHostsFile(const std::string& text,
                                                       const std::string& source) {
  std::vector<LaunchHost> hosts;
  std::map<std::string, int> lines;  // by destination and port
  int number = 0;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    line = absl::StripAsciiWhitespace(line.substr(0, line.find('#')));
    if (line.empty()) continue;
    absl::StatusOr<LaunchHost> host = ParseHost(line);
    std::string wrong(host.status().message());
    if (host.ok()) {
      host->line = number;
      const auto [other, is_new] =
          lines.emplace(absl::StrCat(host->destination, " ", host->port), number);
      if (is_new) {
        hosts.push_back(*std::move(host));
        continue;
      }
      wrong = absl::StrCat(host->name, " is already in line ", other->second,
                           "; write slots=N there for more processes");
    }
    return absl::InvalidArgumentError(absl::StrCat(source, ":", number, ": ", wrong));
  }
  if (hosts.empty())
    return absl::InvalidArgumentError(absl::StrCat(source, ":1: no host; ", kForm));
  std::map<std::string, int> names;
  for (const LaunchHost& host : hosts) ++names[host.name];
  for (LaunchHost& host : hosts) {
    if (names[host.name] == 1) continue;
    host.name = host.destination;
    if (host.port != 0) absl::StrAppend(&host.name, ":", host.port);
  }
  return hosts;
}

absl::StatusOr<std::vector<LaunchHost>> ReadHostsFile(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, ReadTextFile(path, kHostsFileLimitBytes));
  return ParseHostsFile(text, path);
}

absl::StatusOr<DealtProcesses> DealProcesses(const std::vector<LaunchHost>& hosts,
                                             const WantedProcesses& wanted) {
  DealtProcesses dealt;
  const auto first = [&](auto takes) {
    return static_cast<size_t>(std::find_if(hosts.begin(), hosts.end(), takes) - hosts.begin());
  };
  dealt.coordinator = first([](const LaunchHost& host) { return host.coordinates; });
  if (dealt.coordinator == hosts.size())
    dealt.coordinator = first([](const LaunchHost& host) { return host.takes_any(); });
  if (dealt.coordinator == hosts.size()) return NoHostFor("coordinator");
  const std::vector<size_t> serve =
      Places(hosts, [](const LaunchHost& host) { return host.serves; });
  const std::vector<size_t> work = Places(hosts, [](const LaunchHost& host) { return host.works; });
  if (serve.empty() && wanted.servers > 0) return NoHostFor("server");
  if (work.empty() && wanted.workers > 0) return NoHostFor("worker");
  // Workers continue where servers end, unless their hosts differ.
  const size_t begin = wanted.servers_beside_workers || serve != work ? 0 : wanted.servers;
  for (size_t i = 0; i < wanted.workers; ++i)
    dealt.workers.push_back(work[(begin + i) % work.size()]);
  for (size_t i = 0; i < wanted.servers; ++i) {
    const bool beside = wanted.servers_beside_workers && i < wanted.workers;
    dealt.servers.push_back(beside ? dealt.workers[i] : serve[i % serve.size()]);
  }
  return dealt;
}

}  // namespace tug
