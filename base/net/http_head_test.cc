// SPDX-License-Identifier: Apache-2.0
#include "base/net/http_head.h"

#include <random>
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace tug {
namespace {

std::string Get(const std::string& target, const std::string& lines = "") {
  return absl::StrCat("GET ", target, " HTTP/1.1\r\nHost: localhost:80\r\n", lines, "\r\n");
}

TEST(HttpHead, PassesOnWhatIsAskedForAndByWhichName) {
  EXPECT_EQ(
      ReadHttpHead(Get("/history.json?since=3",
                       "Cookie: x\r\nRange: bytes=0-,0-,0-\r\n"
                       "Content-Length: 9\r\n"
                       "Transfer-Encoding: chunked\r\n"),
                   "")
          .request,
      "GET /history.json?since=3 HTTP/1.1\r\nHost: localhost:80\r\nConnection: close\r\n\r\n");
  EXPECT_EQ(ReadHttpHead("HEAD / HTTP/1.0\r\nhOsT:x\r\n\r\n", "").request,
            "HEAD / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
}

TEST(HttpHead, RefusesWhatIsNoRequestForAPage) {
  EXPECT_EQ(ReadHttpHead("POST / HTTP/1.1\r\nHost: x\r\n\r\n", "").refusal, 405);
  for (const char* head :
       {"", "\r\n\r\n", "GET\r\n\r\n", "GET / HTTP/2\r\nHost: x\r\n\r\n",
        "GET  / HTTP/1.1\r\nHost: x\r\n\r\n", "GET / HTTP/1.1\r\n\r\n",
        "GET http://x/ HTTP/1.1\r\nHost: x\r\n\r\n", "GET / HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: x\ny\r\n\r\n", "GET /\n HTTP/1.1\r\nHost: x\r\n\r\n"}) {
    EXPECT_EQ(ReadHttpHead(head, "").refusal, 400) << head;
  }
}

TEST(HttpHead, TakesTheSecretOffThePath) {
  EXPECT_EQ(ReadHttpHead(Get("/5ec7e7/status.json"), "5ec7e7").request,
            ReadHttpHead(Get("/status.json"), "").request);
  EXPECT_EQ(ReadHttpHead(Get("/5ec7e7/"), "5ec7e7").request, ReadHttpHead(Get("/"), "").request);
  for (const char* target : {"/", "/status.json", "/5ec7e7", "/5ec7e", "/5ec7e8/", "/5ec7e7x/",
                             "//5ec7e7/", "/?5ec7e7/"}) {
    EXPECT_EQ(ReadHttpHead(Get(target), "5ec7e7").refusal, 403) << target;
  }
}

TEST(HttpHead, TakesAnyBytes) {
  std::mt19937 random(1);
  const std::string good = Get("/5ec7e7/status.json", "A: b\r\n");
  for (int i = 0; i < 20000; ++i) {
    std::string bytes = good;
    for (unsigned change = random() % 8; change > 0; --change) {
      bytes[random() % bytes.size()] = static_cast<char>(random());
    }
    bytes.resize(random() % 3 == 0 ? random() % bytes.size() : bytes.size());
    const HttpHead head = ReadHttpHead(bytes, "5ec7e7");
    EXPECT_EQ(head.refusal == 0, !head.request.empty());
  }
}

}  // namespace
}  // namespace tug
