#include "base/http_server.h"

#include <string>
#include <utility>

#include "gtest/gtest.h"
#include "httplib.h"

namespace tug {
namespace {

std::unique_ptr<HttpServer> Listen() {
  auto server = HttpServer::Listen("127.0.0.1", 0);
  EXPECT_TRUE(server.ok()) << server.status();
  return *std::move(server);
}

TEST(HttpServer, AnswersWithWhatThePageIsWhenItIsAskedFor) {
  const auto server = Listen();
  int asked = 0;
  server->Add("/count", [&asked] {
    return HttpReply{.type = "text/plain", .body = std::to_string(++asked)};
  });
  server->Start();
  httplib::Client client("127.0.0.1", server->port());
  for (const std::string expected : {"1", "2"}) {
    const auto reply = client.Get("/count");
    ASSERT_TRUE(reply);
    EXPECT_EQ(reply->status, 200);
    EXPECT_EQ(reply->body, expected);
    EXPECT_EQ(reply->get_header_value("Content-Type"), "text/plain");
    EXPECT_EQ(reply->get_header_value("Cache-Control"), "no-store");
  }
}

TEST(HttpServer, SaysWhyThereIsNoPage) {
  const auto server = Listen();
  server->Add("/early", [] { return absl::UnavailableError("no step yet"); });
  server->Start();
  httplib::Client client("127.0.0.1", server->port());
  const auto early = client.Get("/early");
  ASSERT_TRUE(early);
  EXPECT_EQ(early->status, 503);
  EXPECT_EQ(early->body, "no step yet\n");
  EXPECT_EQ(client.Get("/elsewhere")->status, 404);
  EXPECT_EQ(client.Post("/early", "x", "text/plain")->status, 404);
}

TEST(HttpServer, RefusesAnAddressThatIsTaken) {
  const auto first = Listen();
  const auto second = HttpServer::Listen("127.0.0.1", first->port());
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_NE(second.status().message().find(first->address()), std::string::npos) << second.status();
  EXPECT_FALSE(HttpServer::Listen("192.0.2.1", 0).ok());
}

TEST(HttpServer, EndsWithoutHavingBegunAndRightAfterItHas) {
  Listen();
  for (int i = 0; i < 20; ++i) Listen()->Start();
}

}  // namespace
}  // namespace tug
