// SPDX-License-Identifier: Apache-2.0
#include "base/net/http_server.h"

#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <future>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/net/http_head.h"
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
}

TEST(HttpServer, APageMayLookAtTheQuery) {
  const auto server = Listen();
  server->AddQuery("/since", [](const HttpQuery& query) {
    const auto since = query.find("since");
    return HttpReply{.type = "text/plain",
                     .body = since == query.end() ? "all" : since->second,
                     .content_security_policy = "default-src 'none'"};
  });
  server->Start();
  httplib::Client client("127.0.0.1", server->port());
  EXPECT_EQ(client.Get("/since")->body, "all");
  const auto reply = client.Get("/since?since=12&more=%3Cb%3E");
  EXPECT_EQ(reply->body, "12");
  EXPECT_EQ(reply->get_header_value("Content-Security-Policy"), "default-src 'none'");
  EXPECT_EQ(reply->get_header_value("X-Content-Type-Options"), "nosniff");
}

TEST(HttpServer, MayAnswerOnlyToNamesThatMeanThisHost) {
  const auto server = Listen();
  server->AnswerToLoopbackNamesOnly();
  server->Add("/", [] { return HttpReply{.type = "text/plain", .body = "x"}; });
  server->Start();
  httplib::Client client("127.0.0.1", server->port());
  const auto status_as = [&](const char* host) {
    return client.Get("/", httplib::Headers{{"Host", host}})->status;
  };
  EXPECT_EQ(client.Get("/")->status, 200);
  for (const char* host : {"localhost", "localhost:80", "127.0.0.1", "[::1]", "[::1]:8080"}) {
    EXPECT_EQ(status_as(host), 200) << host;
  }
  for (const char* host : {"example.com", "127.0.0.1.example.com:80", "localhost.example.com",
                           "10.0.0.1", "[::2]", ""}) {
    EXPECT_EQ(status_as(host), 403) << host;
  }
}

TEST(HttpServer, RefusesAnAddressThatIsTaken) {
  const auto first = Listen();
  const auto second = HttpServer::Listen("127.0.0.1", first->port());
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_NE(second.status().message().find(first->address()), std::string::npos) << second.status();
  EXPECT_FALSE(HttpServer::Listen("192.0.2.1", 0).ok());
}

// The destructor may have to wait for the page itself.
TEST(HttpServer, WritesTheReplyThatIsUnderWayWhenItEnds) {
  auto server = Listen();
  std::promise<void> asked;
  std::promise<void> go_on;
  server->Add("/", [&] {
    asked.set_value();
    go_on.get_future().wait();
    return HttpReply{.type = "text/plain", .body = std::string(1 << 20, 'x')};
  });
  server->Start();
  auto reply = std::async(std::launch::async, [port = server->port()] {
    return httplib::Client("127.0.0.1", port).Get("/");
  });
  asked.get_future().wait();
  std::thread end([&] { server.reset(); });
  go_on.set_value();
  end.join();
  const auto got = reply.get();
  ASSERT_TRUE(got);
  EXPECT_EQ(got->body.size(), size_t{1} << 20);
}

TEST(HttpServer, EndsWithoutHavingBegunAndRightAfterItHas) {
  Listen();
  for (int i = 0; i < 20; ++i) Listen()->Start();
}

int ConnectTo(uint16_t port) {
  const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(connect(socket, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  return socket;
}

// Reads until the other side closes the connection; false on another error.
bool SeesTheEnd(int socket) {
  char bytes[256];
  ssize_t count = 0;
  while ((count = read(socket, bytes, sizeof bytes)) > 0) continue;
  close(socket);
  return count == 0 || errno == ECONNRESET;
}

TEST(HttpServer, EndsWithConnectionsThatHaveNotAskedYet) {
  auto server = Listen();
  const auto neighbour = Listen();
  neighbour->Add("/", [] { return HttpReply{.type = "text/plain", .body = "x"}; });
  neighbour->Start();
  server->Start();
  httplib::Client other("127.0.0.1", neighbour->port());
  const int idle = ConnectTo(server->port());
  const int slow = ConnectTo(server->port());
  const std::string begun = "GET / HTTP/1.1\r\nX: ";
  ASSERT_EQ(write(slow, begun.data(), begun.size()), static_cast<ssize_t>(begun.size()));
  server.reset();
  EXPECT_TRUE(SeesTheEnd(idle));
  EXPECT_TRUE(SeesTheEnd(slow));
  EXPECT_EQ(other.Get("/")->status, 200);
}

// Writes `begin`, then `more` repeatedly, until the other side hangs up or 64 MB are written.
size_t BytesTaken(uint16_t port, const std::string& begin, const std::string& more) {
  const int socket = ConnectTo(port);
  size_t taken = 0;
  for (std::string bytes = begin; taken < size_t{64} << 20; bytes = more) {
    const ssize_t count = send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count <= 0) break;
    taken += static_cast<size_t>(count);
  }
  close(socket);
  return taken;
}

TEST(HttpServer, TakesNoEndlessRequest) {
  const auto server = Listen();
  server->Add("/", [] { return HttpReply{.type = "text/plain", .body = "x"}; });
  server->Start();
  const std::string chunk(64 << 10, 'y');
  const std::string get = "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n";
  const std::string post = "POST / HTTP/1.1\r\nHost: 127.0.0.1\r\n";
  const size_t most = 16 << 20;  // room of both sockets' buffers
  EXPECT_LT(BytesTaken(server->port(), get, "X-1: " + chunk.substr(0, 4000) + "\r\n"), most);
  EXPECT_LT(BytesTaken(server->port(), "GET /", chunk), most);
  EXPECT_LT(BytesTaken(server->port(), get + "Content-Length: 99999999\r\n\r\n", chunk), most);
  EXPECT_LT(BytesTaken(server->port(), post + "\r\n", chunk), most);
  EXPECT_LT(BytesTaken(server->port(), post + "Transfer-Encoding: chunked\r\n\r\n",
                       "10000\r\n" + chunk + "\r\n"),
            most);
  EXPECT_EQ(httplib::Client("127.0.0.1", server->port()).Get("/")->status, 200);
}

// Returns everything received until the other side closes the connection.
std::string Ask(uint16_t port, const std::string& request) {
  const int socket = ConnectTo(port);
  EXPECT_EQ(write(socket, request.data(), request.size()), static_cast<ssize_t>(request.size()));
  std::string reply;
  char bytes[4096];
  for (ssize_t count; (count = read(socket, bytes, sizeof bytes)) > 0;) {
    reply.append(bytes, static_cast<size_t>(count));
  }
  close(socket);
  return reply;
}

TEST(HttpServer, AnswersManyRangesWithOnePage) {
  const auto server = Listen();
  server->Add("/", [] { return HttpReply{.type = "text/plain", .body = std::string(10000, 'x')}; });
  server->Start();
  std::string request = "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nRange: bytes=0-";
  for (int i = 0; i < 2000; ++i) request += ",0-";
  const std::string reply = Ask(server->port(), request + "\r\n\r\n");
  EXPECT_EQ(reply.substr(0, 15), "HTTP/1.1 200 OK");
  EXPECT_LT(reply.size(), 11000u);
}

TEST(HttpServer, SaysWhatItDoesNotTake) {
  const auto server = Listen();
  server->Start();
  EXPECT_EQ(Ask(server->port(), "POST / HTTP/1.1\r\nHost: x\r\n\r\n").substr(0, 12),
            "HTTP/1.1 405");
  const std::string cookies = "GET / HTTP/1.1\r\nHost: x\r\nCookie: ";
  EXPECT_EQ(Ask(server->port(), cookies + std::string(kMaxHttpHeadBytes - cookies.size(), 'x'))
                .substr(0, 12),
            "HTTP/1.1 431");
}

TEST(HttpServer, AnswersOnlyWhoKnowsItsSecret) {
  const auto server = Listen();
  server->Add("/", [] { return HttpReply{.type = "text/plain", .body = "x"}; });
  server->Hide("5ec7e7");
  server->Start();
  httplib::Client client("127.0.0.1", server->port());
  EXPECT_EQ(client.Get("/5ec7e7/")->body, "x");
  EXPECT_EQ(client.Get("/5ec7e7/elsewhere")->status, 404);
  for (const char* path : {"/", "/5ec7e7", "/5ec7e8/", "/elsewhere"}) {
    const auto reply = client.Get(path);
    EXPECT_EQ(reply->status, 403) << path;
    EXPECT_EQ(reply->body,
              "the address of this page contains a secret: tug status shows the full address\n");
  }
}

// The first eight silent connections keep the threads busy for seconds each: queued, the last one
// would wait for minutes.
TEST(HttpServer, TurnsConnectionsAwayThatAreTooMany) {
  const auto server = Listen();
  server->Start();
  std::vector<int> silent(200);
  for (int& socket : silent) socket = ConnectTo(server->port());
  pollfd last{silent.back(), POLLIN, 0};
  EXPECT_EQ(poll(&last, 1, 60'000), 1);
  for (const int socket : silent) close(socket);
}

TEST(HttpServer, ListensAtAnAddressOfIpv6) {
  const auto server = HttpServer::Listen("[::1]", 0);
  if (!server.ok()) GTEST_SKIP() << "skipped: this host has no ::1";
  EXPECT_EQ((*server)->address(), absl::StrCat("[::1]:", (*server)->port()));
  (*server)->AnswerToLoopbackNamesOnly();
  (*server)->Add("/", [] { return HttpReply{.type = "text/plain", .body = "x"}; });
  (*server)->Start();
  httplib::Client client("::1", (*server)->port());
  EXPECT_EQ(client.Get("/", {{"Host", (*server)->address()}})->status, 200);
}

TEST(HttpServer, AnswersToTheLoopbackAddressThatItListensAt) {
  const auto server = HttpServer::Listen("127.0.0.2", 0);
  ASSERT_TRUE(server.ok()) << server.status();
  (*server)->AnswerToLoopbackNamesOnly();
  (*server)->Add("/", [] { return HttpReply{.type = "text/plain", .body = "x"}; });
  (*server)->Start();
  EXPECT_EQ(httplib::Client("127.0.0.2", (*server)->port()).Get("/")->status, 200);
}

}  // namespace
}  // namespace tug
