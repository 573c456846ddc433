// SPDX-License-Identifier: Apache-2.0
#include "coordinator/observe/live_page.h"

#include <limits>
#include <memory>
#include <thread>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "coordinator/observe/watch_json.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "httplib.h"
#include "nlohmann/json.hpp"
#include "security/job_keys.h"

namespace tug {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

StatusReply Job() {
  StatusReply status;
  status.set_phase(RUNNING);
  status.set_name("<job>");
  status.set_step(3);
  status.set_steps(10);
  status.set_loss(std::numeric_limits<double>::quiet_NaN());
  NodeStatus& server = *status.add_nodes();
  server.set_node_id(1);
  server.set_name("server-0");
  server.set_kind(SERVER);
  server.set_host("host\xff");
  NodeStatus& worker = *status.add_nodes();
  worker.set_node_id(2);
  worker.set_name("worker-0");
  worker.set_kind(WORKER);
  worker.add_virtual_workers(0);
  worker.set_clock(3);
  worker.set_shared_memory_bytes_per_second(5e6);
  worker.mutable_activity()->set_doing(NodeActivity::WAITING_FOR_DATA);
  return status;
}

TEST(StatusJson, HasTheJobAndItsNodes) {
  const json status = json::parse(StatusJson(Job()));
  EXPECT_EQ(status["name"], "<job>");
  EXPECT_EQ(status["phase"], "running");
  EXPECT_EQ(status["ended"], false);
  EXPECT_TRUE(status["loss"].is_null()) << "it is not finite";
  ASSERT_EQ(status["nodes"].size(), 2u);
  EXPECT_EQ(status["nodes"][0]["name"], "server-0");
  EXPECT_EQ(status["nodes"][0]["host"], "host\xef\xbf\xbd") << "what is no UTF-8 is replaced";
  EXPECT_TRUE(status["nodes"][0]["step"].is_null());
  EXPECT_TRUE(status["nodes"][0]["staleness"].is_null()) << "it is always 0";
  EXPECT_TRUE(status["nodes"][0]["rank"].is_null());
  EXPECT_EQ(status["all_reduce"], "");
  EXPECT_EQ(status["nodes"][1]["step"], 4);
  EXPECT_EQ(status["nodes"][1]["socket_bytes_per_second"], 0);
  EXPECT_EQ(status["nodes"][1]["shared_memory_bytes_per_second"], 5e6);
  EXPECT_EQ(status["nodes"][1]["activity"], "waiting for data");
  EXPECT_EQ(status["nodes"][1]["doing"], "waiting_for_data");
}

TEST(StatusJson, HasStalenessAndRanksOfAJobThatCanHaveThem) {
  StatusReply job = Job();
  job.set_has_staleness(true);
  job.set_all_reduces(true);
  for (NodeStatus& node : *job.mutable_nodes()) node.set_all_reduce_rank(0);
  const json status = json::parse(StatusJson(job));
  EXPECT_EQ(status["nodes"][0]["staleness"], 0);
  EXPECT_TRUE(status["nodes"][1]["staleness"].is_null()) << "a worker has none";
  EXPECT_EQ(status["nodes"][1]["rank"], 0);
  EXPECT_EQ(status["all_reduce"], "all-reduce of 1 rank: nothing is sent");
}

TEST(HistoryJson, HasARowForEachPoint) {
  RunHistory history;
  StepMetrics step;
  step.step = 1;
  step.loss = 2.5;
  step.tokens = 64;
  step.mean_seconds = 0.25;
  step.workers = {{.virtual_worker = 4, .seconds = 0.25, .compute_seconds = 0.125}};
  history.OnStep(step, 7);
  history.OnEval({.version = 1, .loss = 3, .final = true});
  history.OnEvent("went back", 8);
  history.OnStatus(Job(), 9);
  history.OnSettings({0, {"seed 1 -> 2"}});
  const json news = json::parse(HistoryJson(history.Since(0)));
  EXPECT_EQ(news["reset"], true);
  EXPECT_EQ(news["points"], json::parse("[[1, 7.0, 2.5, 0.25, 64.0]]"));
  EXPECT_TRUE(news["open"].is_null());
  EXPECT_EQ(news["evals"], json::parse("[[1, 3.0, true]]"));
  EXPECT_EQ(news["events"], json::parse("[[8.0, 1, \"went back\"]]"));
  EXPECT_EQ(news["steps"], json::parse("[[1, [[4, 0.25, 0.125, 0.0, 0.0]]]]"));
  EXPECT_EQ(news["links"], json::parse("[[9.0, [[1, 0.0, 0.0], [2, 0.0, 5e6]]]]"));
  EXPECT_EQ(news["settings"], json::parse(R"([[0, ["seed 1 -> 2"]]])"));
}

class LivePageTest : public ::testing::Test {
 protected:
  LivePageTest() {
    auto page = LivePage::Start({.status =
                                     [this] {
                                       absl::MutexLock lock(&mutex_);
                                       return status_;
                                     },
                                 .history = &history_});
    EXPECT_TRUE(page.ok()) << page.status();
    page_ = *std::move(page);
  }

  absl::Mutex mutex_;
  StatusReply status_ = Job();
  RunHistory history_;
  std::unique_ptr<LivePage> page_;
};

TEST_F(LivePageTest, ServesAPageThatLoadsNothingFromAnywhere) {
  httplib::Client client("127.0.0.1", page_->port());
  const auto page = client.Get("/");
  ASSERT_TRUE(page);
  EXPECT_EQ(page->status, 200);
  const std::string policy = page->get_header_value("Content-Security-Policy");
  EXPECT_THAT(policy, AllOf(HasSubstr("default-src 'none'"), HasSubstr("connect-src 'self'"),
                            Not(HasSubstr("unsafe"))));
  EXPECT_THAT(page->body, AllOf(HasSubstr("<!DOCTYPE html>"), Not(HasSubstr("NONCE")),
                                Not(HasSubstr("src=\"")), Not(HasSubstr("@import"))));
  EXPECT_THAT(page->body, Not(HasSubstr("innerHTML"))) << "what nodes say is set as text";
  const size_t nonce = policy.find("nonce-") + 6;
  const std::string given = policy.substr(nonce, policy.find('\'', nonce) - nonce);
  EXPECT_THAT(page->body, HasSubstr("<script nonce=\"" + given + "\">"));
  EXPECT_THAT(client.Get("/")->body, Not(HasSubstr(given))) << "another one each time";
}

TEST_F(LivePageTest, AnswersWithTheStateOfNow) {
  httplib::Client client("127.0.0.1", page_->port());
  EXPECT_EQ(json::parse(client.Get("/status.json")->body)["step"], 3);
  EXPECT_EQ(json::parse(client.Get("/history.json")->body)["seq"], 0);
  history_.OnEvent("x", 1);
  EXPECT_EQ(json::parse(client.Get("/history.json?since=0")->body)["events"].size(), 1u);
  EXPECT_EQ(json::parse(client.Get("/history.json?since=1")->body)["events"].size(), 0u);
  EXPECT_EQ(json::parse(client.Get("/history.json?since=no")->body)["events"].size(), 1u);
}

TEST_F(LivePageTest, AnotherSitesNameIsRefused) {
  httplib::Client client("127.0.0.1", page_->port());
  for (const char* path : {"/", "/status.json", "/history.json"}) {
    EXPECT_EQ(client.Get(path, httplib::Headers{{"Host", "evil.example"}})->status, 403) << path;
  }
}

TEST_F(LivePageTest, WithKeysOnlyWhoKnowsTheAddressCanReadIt) {
  const JobKeys keys = MakeJobKeys(SecurityConfig::TOKEN).value();
  const auto start = [&] {
    return LivePage::Start({.keys = keys, .status = [] { return Job(); }, .history = &history_});
  };
  auto page = start();
  ASSERT_TRUE(page.ok()) << page.status();
  const std::string origin = absl::StrCat("http://127.0.0.1:", (*page)->port());
  const std::string path = (*page)->url().substr(origin.size());
  EXPECT_GT(path.size(), 32u) << path;
  httplib::Client client(origin);
  for (const char* own : {"/", "/status.json", "/history.json?since=0"}) {
    EXPECT_EQ(client.Get(own)->status, 403) << own;
    EXPECT_EQ(client.Get(path + (own + 1))->status, 200) << own;
  }
  EXPECT_THAT(path, Not(HasSubstr(keys.token.substr(0, 8))));
  // An open page keeps working after the coordinator was replaced, if the port is the same.
  page->reset();
  page = start();
  EXPECT_TRUE(absl::EndsWith((*page)->url(), path)) << (*page)->url();
}

TEST_F(LivePageTest, APortThatIsTakenIsAnError) {
  const auto second = LivePage::Start(
      {.port = page_->port(), .status = [] { return StatusReply(); }, .history = &history_});
  EXPECT_EQ(second.status().code(), absl::StatusCode::kUnavailable);
}

TEST_F(LivePageTest, WaitsForWhoWatchesToSeeTheEnd) {
  page_->AwaitViewers(absl::InfiniteDuration());  // no viewer
  httplib::Client client("127.0.0.1", page_->port());
  ASSERT_TRUE(client.Get("/status.json"));
  page_->AwaitViewers(absl::Milliseconds(1));  // returns after the timeout
  {
    absl::MutexLock lock(&mutex_);
    status_.set_phase(DONE);
  }
  std::thread viewer([&] { EXPECT_TRUE(client.Get("/status.json")); });
  page_->AwaitViewers(absl::InfiniteDuration());
  viewer.join();
}

}  // namespace
}  // namespace tug
