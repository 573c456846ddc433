// SPDX-License-Identifier: Apache-2.0
#include "doctor/doctor_checks.h"

#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace tug {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr uint64_t kGiB = uint64_t{1} << 30;

// A host without findings, with all facts that checks read.
CheckedHost Well(const std::string& name = "a") {
  CheckedHost host{.name = name};
  host.facts = {.glibc = "2.36",
                .instructions = "AVX3",
                .cores = 8,
                .memory_bytes = 16 * kGiB,
                .free_memory_bytes = 10 * kGiB,
                .locked_limit_bytes = kNoLimit,
                .open_files_limit = 4096,
                .shared_memory_bytes = 2 * kGiB,
                .logins_at_once = 10,
                .gpus = {.names = {"one", "two"}},
                .driver = "535.1",
                .nccl = "2.28.3",
                .cache = {.path = "/c", .there = "/c", .free_bytes = 9 * kGiB},
                .run = FolderFacts{.path = "/r/a", .there = "/r", .free_bytes = 9 * kGiB},
                .text = TextFacts{.path = "/t", .bytes = 100, .hash = 7}};
  host.needs = {.has_job = true,
                .coordinates = true,
                .servers = 1,
                .workers = 1,
                .compute_threads = 8,
                .memory_bytes = 5 * kGiB,
                .disk_bytes = kGiB,
                .open_files = 1000,
                .wants_gpu = true};
  return host;
}

std::vector<Finding> Wrong(std::vector<Finding> findings) {
  std::erase_if(findings, [](const Finding& f) { return f.level == FindingLevel::kOk; });
  return findings;
}

struct Change {
  const char* check;
  FindingLevel level;
  void (*make)(CheckedHost& host);
  const char* what;
};

// One row per problem that a check of one host detects.
constexpr Change kChanges[] = {
    {"cores", FindingLevel::kWarning, [](CheckedHost& h) { h.needs.compute_threads = 9; },
     "9 compute threads"},
    {"memory", FindingLevel::kProblem, [](CheckedHost& h) { h.needs.memory_bytes = 11 * kGiB; },
     "needed"},
    {"memory", FindingLevel::kWarning, [](CheckedHost& h) { h.needs.memory_bytes = 9 * kGiB; },
     "needed"},
    {"GPU", FindingLevel::kProblem,
     [](CheckedHost& h) { h.facts.gpus = {.none_because = "no GPU: none"}; }, "no GPU: none"},
    {"GPU", FindingLevel::kWarning,
     [](CheckedHost& h) {
       h.needs.wants_gpu = false;
       h.facts.gpus = {.none_because = "no GPU: too old"};
     },
     "driver 535.1, but no GPU: too old"},
    {"NCCL", FindingLevel::kProblem, [](CheckedHost& h) { h.facts.nccl = ""; }, "libnccl.so.2"},
    {"locked memory", FindingLevel::kWarning,
     [](CheckedHost& h) { h.facts.locked_limit_bytes = 1 << 20; }, "1.0 MB"},
    {"open files", FindingLevel::kProblem, [](CheckedHost& h) { h.facts.open_files_limit = 999; },
     "999, 1000 needed"},
    {"/dev/shm", FindingLevel::kWarning, [](CheckedHost& h) { h.facts.shared_memory_bytes = 0; },
     "/dev/shm has"},
    {"MaxStartups", FindingLevel::kWarning, [](CheckedHost& h) { h.needs.workers = 9; },
     "11 concurrent logins"},
    {"run folder", FindingLevel::kProblem,
     [](CheckedHost& h) { h.facts.run->error = "cannot write to /r: denied"; }, "denied"},
    {"disk", FindingLevel::kProblem, [](CheckedHost& h) { h.needs.disk_bytes = 10 * kGiB; },
     "free in /r"},
    {"disk", FindingLevel::kWarning, [](CheckedHost& h) { h.needs.disk_bytes = 5 * kGiB; },
     "free in /r"},
    {"cache", FindingLevel::kWarning, [](CheckedHost& h) { h.facts.cache.free_bytes = 1 << 20; },
     "free in /c"},
    {"text", FindingLevel::kProblem,
     [](CheckedHost& h) { h.facts.text->error = "cannot read /t: not there"; }, "not there"},
};

TEST(CheckHosts, FindsNoFaultWhereThereIsNone) {
  const std::vector<CheckedHost> hosts = {Well("a"), Well("b")};
  EXPECT_THAT(Wrong(CheckHosts(hosts)), IsEmpty()) << FindingsText(CheckHosts(hosts));
  EXPECT_EQ(CheckHosts(hosts).size(), 2 * HostChecks().size()) << "each says that it is well";
}

TEST(CheckHosts, FindsEachFaultByItself) {
  std::set<std::string> tried;
  for (const Change& change : kChanges) {
    CheckedHost host = Well();
    change.make(host);
    const auto wrong = Wrong(CheckHosts({&host, 1}));
    ASSERT_EQ(wrong.size(), 1u) << change.check << "\n" << FindingsText(wrong);
    EXPECT_EQ(wrong[0].check, change.check);
    EXPECT_EQ(wrong[0].level, change.level) << change.check;
    EXPECT_THAT(wrong[0].what, HasSubstr(change.what));
    EXPECT_FALSE(wrong[0].remedy.empty());
    tried.insert(change.check);
  }
  for (const HostCheck& check : HostChecks()) {
    EXPECT_TRUE(tried.contains(check.name)) << "no row tries " << check.name;
  }
}

TEST(CheckHosts, ComparesWithTheFirstHost) {
  struct {
    const char* check;
    FindingLevel level;
    void (*make)(CheckedHost& host);
  } const cases[] = {
      {"glibc", FindingLevel::kWarning, [](CheckedHost& h) { h.facts.glibc = "2.39"; }},
      {"instructions", FindingLevel::kWarning,
       [](CheckedHost& h) { h.facts.instructions = "AVX2"; }},
      {"same text", FindingLevel::kProblem, [](CheckedHost& h) { h.facts.text->hash = 8; }},
  };
  ASSERT_EQ(std::size(cases), TwinChecks().size());
  for (const auto& [check, level, make] : cases) {
    std::vector<CheckedHost> hosts = {Well("a"), Well("b")};
    make(hosts[1]);
    const auto wrong = Wrong(CheckHosts(hosts));
    ASSERT_EQ(wrong.size(), 1u) << check;
    EXPECT_EQ(wrong[0].check, check);
    EXPECT_EQ(wrong[0].thing, "b");
    EXPECT_EQ(wrong[0].level, level);
  }
}

TEST(CheckHosts, AsksNothingOfAHostThatGetsNothing) {
  CheckedHost idle = Well();
  idle.needs = {.has_job = true};
  idle.facts.run->error = idle.facts.text->error = "not there";
  idle.facts.gpus = {.none_because = "none"};
  idle.facts.driver = "";
  EXPECT_THAT(Wrong(CheckHosts({&idle, 1})), IsEmpty());
}

TEST(CheckHosts, LooksAtTheRunFolderThatIsNamedWithoutAJob) {
  CheckedHost host{.name = "a"};
  host.facts = Well().facts;
  EXPECT_THAT(FindingsText(CheckHosts({&host, 1})),
              AllOf(HasSubstr("/r/a can be created in /r\n"), HasSubstr("9.66 GB free in /r\n")));
  host.facts.run->error = "cannot write to /r: denied";
  const auto wrong = Wrong(CheckHosts({&host, 1}));
  ASSERT_EQ(wrong.size(), 1u) << FindingsText(wrong);
  EXPECT_EQ(wrong[0].check, "run folder");
  EXPECT_EQ(wrong[0].level, FindingLevel::kProblem);
}

TEST(CheckHosts, AsksNothingOfLoginsWhereThereAreNone) {
  CheckedHost here = Well();
  here.needs.by_login = false;
  here.needs.workers = 9;
  here.facts.cache = {.there = "/c", .error = "cannot write to /c: denied"};
  const auto findings = CheckHosts({&here, 1});
  EXPECT_THAT(Wrong(findings), IsEmpty()) << FindingsText(findings);
  EXPECT_EQ(findings.size(), HostChecks().size() - 2) << FindingsText(findings);
}

TEST(CheckLinks, FindsTheSlowOneAndSaysWhatAStepTakes) {
  std::vector<CheckedLink> links;
  for (const char* to : {"b", "c", "d"}) links.push_back({"a", to, {100, 1e8, 1e8, 5, 10}});
  EXPECT_THAT(Wrong(CheckLinks(links, 0)), IsEmpty());
  links[1].report.back_bytes_per_second = 1e7;
  const auto wrong = Wrong(CheckLinks(links, 200'000'000));
  ASSERT_EQ(wrong.size(), 1u);
  EXPECT_EQ(wrong[0].thing, "c -> a");
  EXPECT_THAT(wrong[0].what, HasSubstr("0.08 Gbit/s, the median of all links is 0.8 Gbit/s"));
  EXPECT_THAT(wrong[0].what, HasSubstr("take 20.00 s"));
}

TEST(CheckLinks, TakesAClockForWrongOnlyWhereItSurelyIs) {
  CheckedLink link{"a", "b", {100, 1e8, 1e8, -300'000'000, 250'000'000}};
  EXPECT_THAT(Wrong(CheckLinks({&link, 1}, 0)), IsEmpty());
  link.report.clock_error_ns = 1'000'000;
  const auto wrong = Wrong(CheckLinks({&link, 1}, 0));
  ASSERT_EQ(wrong.size(), 1u);
  EXPECT_EQ(wrong[0].check, kClockCheck);
  EXPECT_THAT(wrong[0].what, HasSubstr("b is 300.000 ms behind"));
}

TEST(CheckLinks, FindsALongWay) {
  const CheckedLink link{"a", "b", {20000, 1e8, 1e8, 0, 0}};
  const auto wrong = Wrong(CheckLinks({&link, 1}, 0));
  ASSERT_EQ(wrong.size(), 1u);
  EXPECT_EQ(wrong[0].check, kLatencyCheck);
}

TEST(FindingsText, HasALineEachAndCounts) {
  const std::vector<Finding> findings = {
      {FindingLevel::kOk, "a", "memory", "enough", ""},
      {FindingLevel::kProblem, "b", "text", "not there", "copy it"}};
  EXPECT_EQ(FindingsText(findings),
            "ok       a  memory  enough\n"
            "problem  b  text    not there; remedy: copy it\n"
            "1 problem, 0 warnings, 1 ok\n");
  EXPECT_EQ(ToJson(findings)[1]["remedy"], "copy it");
}

}  // namespace
}  // namespace tug
