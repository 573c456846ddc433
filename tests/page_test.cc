// SPDX-License-Identifier: Apache-2.0
// The live page of a real job in a real browser; `skipped: no chromium` without one. Saves
// screenshots to the folder TUG_SCREENSHOTS, if set.

#include <signal.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "httplib.h"
#include "nlohmann/json.hpp"
#include "tests/support/tug_test.h"

namespace tug {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

int Count(const std::string& text, const std::string& part) {
  int count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

// A browser has many processes, and the machine may have no free cores.
const absl::Duration kBrowserPatience = 2 * kPatience;
constexpr char kChromium[] = "/usr/bin/chromium";

class PageTest : public TugTest {
 protected:
  // Address of the live page in the job's output.
  static std::string UrlIn(const std::string& text) {
    const size_t at = text.find("http://127.0.0.1:");
    return at == std::string::npos ? "" : text.substr(at, text.find_first_of(" \n", at) - at);
  }
  void WaitForPage(Process& train) {
    ASSERT_TRUE(train.WaitUntil([&] { return !UrlIn(train.err()).empty(); }, After(kPatience)))
        << train.err();
    url_ = UrlIn(train.err());
  }
  // Runs the browser, in whose virtual time the page polls for some seconds.
  Process& Browse(const Texts& arguments) {
    Process& browser = StartProgram(
        kChromium,
        Texts{"--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
              "--disable-dev-shm-usage", "--no-first-run", "--disable-extensions",
              "--disable-background-networking", "--disable-component-update", "--disable-sync",
              "--enable-logging=stderr", "--log-level=0",
              absl::StrCat("--user-data-dir=", Path("browser")), "--virtual-time-budget=3000"} +
            arguments + Texts{url_});
    EXPECT_TRUE(browser.WaitForEnd(After(kBrowserPatience))) << browser.err();
    EXPECT_THAT(browser.err(), Not(HasSubstr("CONSOLE"))) << "an error in the page";
    return browser;
  }
  void TakePicture(const std::string& name, const std::string& size) {
    const char* const folder = std::getenv("TUG_SCREENSHOTS");
    if (folder == nullptr) return;
    Browse({absl::StrCat("--window-size=", size),
            absl::StrCat("--screenshot=", folder, "/", name, ".png")});
  }

  std::string url_;
};

// The straggler sleeps and the others wait for it, which leaves cores for the browser.
TEST_F(PageTest, ShowsAJobAndWhoIsLate) {
  if (!fs::exists(kChromium))
    GTEST_SKIP() << "skipped: no chromium; deploy/setup --tests installs it";
  Process& train =
      StartTraining("run", Endless() + Texts{"cluster.workers=3", "cluster.virtual_workers=3",
                                             "train.global_batch=6", "train.eval_interval=5",
                                             "straggler.virtual_worker=2", "straggler.slowdown=20",
                                             "comm.shared_memory=false"});
  ASSERT_NO_FATAL_FAILURE(WaitForPage(train));
  ASSERT_NO_FATAL_FAILURE(WaitForSteps(train, "run", 12));
  const std::string shown = Browse({"--window-size=1280,1600", "--dump-dom"}).out();
  EXPECT_THAT(shown, ContainsRegex("id=\"phase\"[^>]*>running<"));
  EXPECT_THAT(shown, ContainsRegex("training loss</dt><dd>[0-9]+\\.[0-9]{4}<"));
  EXPECT_THAT(shown,
              ContainsRegex("id=\"loss-readout\">step [0-9,]+: training [0-9.]+, validation"));
  EXPECT_EQ(Count(shown, "<th scope=\"row\">server-"), 2);
  EXPECT_EQ(Count(shown, "<th scope=\"row\">worker-"), 3);
  EXPECT_THAT(shown, ContainsRegex("worker-[0-2] is slow: .*per step without waiting"));
  EXPECT_THAT(shown, ContainsRegex("id=\"events\"[^>]*><li>"));
  EXPECT_THAT(shown, AllOf(HasSubstr("class=\"training\""), HasSubstr("class=\"compute\""),
                           HasSubstr("class=\"wait\""), HasSubstr("class=\"link\"")));
  TakePicture("wide", "1280,1500");
  TakePicture("phone", "500,2200");
  train.Signal(SIGINT);
  ASSERT_TRUE(train.WaitForEnd(After(kPatience))) << train.err();
}

// Clients see the end, although the page ends with the coordinator.
TEST_F(PageTest, SaysThatTheJobHasEnded) {
  Process& train = StartTraining("run", Endless());
  ASSERT_NO_FATAL_FAILURE(WaitForPage(train));
  ASSERT_NO_FATAL_FAILURE(WaitForSteps(train, "run", 5));
  httplib::Client client(url_.substr(0, url_.size() - 1));
  nlohmann::json newest;
  bool told = false;
  const absl::Time deadline = After(kPatience);
  // Polls as often as the page does.
  for (auto reply = client.Get("/status.json"); reply && absl::Now() < deadline;
       reply = client.Get("/status.json")) {
    newest = nlohmann::json::parse(reply->body);
    if (!std::exchange(told, true)) train.Signal(SIGINT);
    if (newest["ended"] == true) break;
    train.WaitForEnd(After(absl::Seconds(1)));
  }
  EXPECT_EQ(newest["ended"], true) << newest;
  EXPECT_EQ(newest["phase"], "done");
  ASSERT_TRUE(train.WaitForEnd(After(kPatience))) << train.err();
  ExpectOrderlyEnd(train, "run");
}

TEST_F(PageTest, APortThatIsTakenCostsThePageAndNotTheJob) {
  Process& first = StartTraining("first", Endless());
  ASSERT_NO_FATAL_FAILURE(WaitForPage(first));
  const std::string port = url_.substr(url_.rfind(':') + 1, url_.size() - url_.rfind(':') - 2);
  Process& second = StartTraining("second", {"train.steps=20", "watch.page_port=" + port});
  ASSERT_TRUE(second.WaitForEnd(After(kPatience))) << second.err();
  EXPECT_EQ(second.exit_code(), 0) << second.err();
  EXPECT_THAT(second.err(), AllOf(HasSubstr("warning: no live page: cannot listen at 127.0.0.1:"),
                                  HasSubstr("watch.page_port")));
  EXPECT_EQ(UrlIn(second.err()), "");
  Process& none = StartTraining("none", {"train.steps=20", "watch.page=false"});
  ASSERT_TRUE(none.WaitForEnd(After(kPatience))) << none.err();
  EXPECT_THAT(none.err(), Not(HasSubstr("live page")));
  first.Signal(SIGINT);
  ASSERT_TRUE(first.WaitForEnd(After(kPatience))) << first.err();
}

}  // namespace
}  // namespace tug
