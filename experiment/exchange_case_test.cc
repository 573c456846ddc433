#include "experiment/exchange_case.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tug {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

ExchangeCase Case(const std::string& text) {
  const auto parsed = ParseExchangeCase(text);
  EXPECT_TRUE(parsed.ok()) << parsed.status();
  return parsed.value_or(ExchangeCase{});
}

TEST(ExchangeCase, RowsAreInTheOrderOfTheirKind) {
  for (size_t i = 0; i < ExchangeKinds().size(); ++i) {
    EXPECT_EQ(static_cast<size_t>(ExchangeKinds()[i].kind), i);
  }
}

TEST(ExchangeCase, ReadsNamesWithAndWithoutANumber) {
  const ExchangeCase servers = Case("servers:3");
  EXPECT_EQ(servers.kind, ExchangeKind::kServers);
  EXPECT_EQ(servers.count, 3u);
  EXPECT_EQ(servers.name, "servers:3");
  EXPECT_EQ(servers.row().placement, PlacementConfig::SERVERS);
  EXPECT_EQ(servers.row().exchange, JobConfig::PUSH_PULL);
  EXPECT_EQ(Case("halving_doubling").row().exchange, JobConfig::ALL_REDUCE);
  EXPECT_EQ(Case("halving_doubling").row().algorithm, CollectiveConfig::HALVING_DOUBLING);
  EXPECT_EQ(Case("zero3").row().placement, PlacementConfig::ZERO3);
}

TEST(ExchangeCase, RefusesOthersAndNamesWhatThereIs) {
  for (const char* text : {"", "server", "servers", "servers:", "servers:0", "servers:257",
                           "servers:2x", "servers:+2", "mixed:-1", "ring:2", "zero4"}) {
    const auto parsed = ParseExchangeCase(text);
    ASSERT_FALSE(parsed.ok()) << text;
    EXPECT_THAT(std::string(parsed.status().message()),
                AllOf(HasSubstr(std::string("--cases ") + text), HasSubstr("servers:NUMBER"),
                      HasSubstr("halving_doubling")));
  }
}

// Servers are dealt to hosts first, then workers.
TEST(ExchangeCase, DealsNodesToAsManyHostsAsItSays) {
  struct Expected {
    const char* text;
    uint32_t servers, hosts;
    bool beside;
  };
  for (const Expected& expected : {Expected{"servers:3", 3, 7, false},
                                   {"mixed:2", 6, 6, true},
                                   {"ring", 4, 4, true},
                                   {"halving_doubling", 4, 4, true},
                                   {"zero1", 4, 4, true}}) {
    const ExchangeCase exchange = Case(expected.text);
    EXPECT_EQ(exchange.Servers(4), expected.servers) << expected.text;
    EXPECT_EQ(exchange.Hosts(4), expected.hosts) << expected.text;
    EXPECT_EQ(exchange.BesideWorkers(), expected.beside) << expected.text;
    for (uint32_t host = 0; host < expected.hosts; ++host) {
      bool has_worker = false;
      for (uint32_t worker = 0; worker < 4; ++worker) {
        has_worker |= (expected.servers + worker) % expected.hosts == host;
      }
      EXPECT_EQ(exchange.HasServerAlone(host, 4), !has_worker) << expected.text << " " << host;
    }
  }
}

TEST(ExchangeCase, AllAreEveryNumberOfServersAndOneOfEachOtherWay) {
  EXPECT_THAT(AllExchangeCases(2),
              ElementsAre("servers:1", "servers:2", "mixed:1", "mixed:2", "ring",
                          "halving_doubling", "zero1", "zero2", "zero3"));
  for (const std::string& text : AllExchangeCases(3)) EXPECT_EQ(Case(text).name, text);
}

}  // namespace
}  // namespace tug
