// SPDX-License-Identifier: Apache-2.0
#include "launch/hosts/hosts_file.h"

#include <random>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tug {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::vector<LaunchHost> Parsed(const std::string& text) {
  const absl::StatusOr<std::vector<LaunchHost>> hosts = ParseHostsFile(text, "hosts.txt");
  EXPECT_TRUE(hosts.ok()) << hosts.status();
  return hosts.value_or(std::vector<LaunchHost>());
}

TEST(HostsFile, ReadsHostsAndWhatTheyTake) {
  const std::vector<LaunchHost> hosts = Parsed(
      "# a cluster\n"
      "head role=coordinator,server   # and a comment\n"
      "\n"
      "\tme@10.0.0.2:2222 slots=4 interface=eth1,ib0 role=worker\r\n"
      "last");
  ASSERT_EQ(hosts.size(), 3u);
  EXPECT_EQ(hosts[0].destination, "head");
  EXPECT_TRUE(hosts[0].coordinates && hosts[0].serves && !hosts[0].works);
  EXPECT_EQ(hosts[0].port, 0);
  EXPECT_EQ(hosts[0].line, 2);
  EXPECT_EQ(hosts[1].destination, "me@10.0.0.2");
  EXPECT_EQ(hosts[1].name, "10.0.0.2");
  EXPECT_EQ(hosts[1].port, 2222);
  EXPECT_EQ(hosts[1].slots, 4u);
  EXPECT_THAT(hosts[1].interfaces, ElementsAre("eth1", "ib0"));
  EXPECT_EQ(hosts[2].destination, "last");
  EXPECT_TRUE(hosts[2].takes_any());
}

TEST(HostsFile, GivesHostsThatShareAnAddressNamesOfTheirOwn) {
  const std::vector<LaunchHost> hosts = Parsed("127.0.0.1:2201\n127.0.0.1:2202\nb");
  ASSERT_EQ(hosts.size(), 3u);
  EXPECT_EQ(hosts[0].name, "127.0.0.1:2201");
  EXPECT_EQ(hosts[1].name, "127.0.0.1:2202");
  EXPECT_EQ(hosts[2].name, "b");
}

TEST(HostsFile, SaysLineAndRemedy) {
  struct {
    const char* text;
    const char* line;
    const char* what;
  } const cases[] = {
      {"", "hosts.txt:1: ", ":1: no host; "},
      {"# nobody\n", "hosts.txt:1: ", ":1: no host; "},
      {"a\n-oProxyCommand=x", "hosts.txt:2: ", "is not a host"},
      {"a;b", "hosts.txt:1: ", "is not a host"},
      {"-x@a", "hosts.txt:1: ", "is not a user"},
      {"a:0", "hosts.txt:1: ", "from 1 to 65535"},
      {"a:", "hosts.txt:1: ", "no port"},
      {"[::1]:22", "hosts.txt:1: ", "daemons use IPv4"},
      {"fe80::1%eth0", "hosts.txt:1: ", "daemons use IPv4"},
      {"a slots=0", "hosts.txt:1: ", "from 1 to 1024"},
      {"a slots=99999999999", "hosts.txt:1: ", "from 1 to 1024"},
      {"a slots", "hosts.txt:1: ", "write [user@]host"},
      {"a gpus=2", "hosts.txt:1: ", "unknown setting 'gpus'"},
      {"a role=boss", "hosts.txt:1: ", "use coordinator, server or worker"},
      {"a role=", "hosts.txt:1: ", "unknown role ''"},
      {"a interface=", "hosts.txt:1: ", "write interface=eth0"},
      {"a role=server role=worker", "hosts.txt:1: ", "given twice"},
      {"a\nb\na", "hosts.txt:3: ", "already in line 1"},
  };
  for (const auto& [text, line, what] : cases) {
    const absl::Status status = ParseHostsFile(text, "hosts.txt").status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(std::string(status.message()), AllOf(StartsWith(line), HasSubstr(what))) << text;
  }
}

// For any content of a file: the result is hosts that ssh cannot take for anything else, or an
// error of one printable line.
TEST(HostsFile, TakesAnyBytes) {
  const uint64_t seed = std::random_device()();
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  const std::vector<std::string> pieces = {
      "a",    "host-1", "@",    ":",      "22",  "70000", " ",      "\t",
      "\n",   "\r\n",   "#",    "slots=", "4",   "role=", "server", "coordinator",
      ",",    "-",      "[",    "]",      "::1", "%",     "worker", "interface=",
      "eth0", "=",      "\xff", "$(x)",   ";",   "'",     "\x01",   std::string(1, '\0'),
      "user"};
  for (int i = 0; i < 20000; ++i) {
    std::string text;
    for (size_t n = random() % 12; n > 0; --n) text += pieces[random() % pieces.size()];
    const absl::StatusOr<std::vector<LaunchHost>> hosts = ParseHostsFile(text, "f");
    if (!hosts.ok()) {
      for (const char c : hosts.status().message()) ASSERT_TRUE(c >= ' ' && c <= '~') << text;
      continue;
    }
    ASSERT_FALSE(hosts->empty());
    for (const LaunchHost& host : *hosts) {
      ASSERT_NE(host.destination[0], '-') << text;
      ASSERT_EQ(host.destination.find_first_of(" \t'\"$;`\\\n&|<>()"), std::string::npos) << text;
      ASSERT_GE(host.slots, 1u);
      ASSERT_TRUE(host.port >= 0 && host.port <= 65535);
    }
  }
}

DealtProcesses Dealt(const std::string& text, const WantedProcesses& wanted) {
  const absl::StatusOr<DealtProcesses> dealt = DealProcesses(Parsed(text), wanted);
  EXPECT_TRUE(dealt.ok()) << dealt.status();
  return dealt.value_or(DealtProcesses());
}

TEST(DealProcesses, DealsToAllHostsInOrder) {
  const DealtProcesses dealt = Dealt("a\nb\nc\nd", {.servers = 2, .workers = 4});
  EXPECT_EQ(dealt.coordinator, 0u);
  EXPECT_THAT(dealt.servers, ElementsAre(0, 1));
  EXPECT_THAT(dealt.workers, ElementsAre(2, 3, 0, 1));
}

TEST(DealProcesses, FillsSlotsFirst) {
  const DealtProcesses dealt = Dealt("a slots=3\nb", {.servers = 1, .workers = 4});
  EXPECT_THAT(dealt.servers, ElementsAre(0));
  EXPECT_THAT(dealt.workers, ElementsAre(0, 0, 1, 0));
}

TEST(DealProcesses, KeepsToRoles) {
  const DealtProcesses dealt =
      Dealt("a role=worker\nb role=coordinator,server\nc", {.servers = 2, .workers = 3});
  EXPECT_EQ(dealt.coordinator, 1u);
  EXPECT_THAT(dealt.servers, ElementsAre(1, 2));
  EXPECT_THAT(dealt.workers, ElementsAre(0, 2, 0));
}

TEST(DealProcesses, PutsServersBesideWorkers) {
  const DealtProcesses dealt =
      Dealt("a\nb\nc", {.servers = 3, .workers = 2, .servers_beside_workers = true});
  EXPECT_THAT(dealt.workers, ElementsAre(0, 1));
  EXPECT_THAT(dealt.servers, ElementsAre(0, 1, 2));
}

TEST(DealProcesses, NamesTheRoleWithoutAHost) {
  const auto hosts = Parsed("a role=worker,coordinator");
  const absl::Status status = DealProcesses(hosts, {.servers = 1, .workers = 1}).status();
  EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr("role=server"), HasSubstr("line")));
}

}  // namespace
}  // namespace tug
