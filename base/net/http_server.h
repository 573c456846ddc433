// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_BASE_NET_HTTP_SERVER_H_
#define TUG_BASE_NET_HTTP_SERVER_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <string>
#include <thread>

#include "absl/status/statusor.h"

namespace tug {

struct HttpReply {
  std::string type;  // "text/html; charset=utf-8"
  std::string body;
  std::string content_security_policy = {};  // header value; empty: no header
};

// Query parameters: "?since=12".
using HttpQuery = std::multimap<std::string, std::string>;

// Serves pages generated on request, for users and monitoring programs, over GET. Pages are
// read-only. Any client that can connect can read them, unless Hide is called.
//
// Resources per client are bounded. The head of a request is limited to kMaxHttpHeadBytes and must
// arrive within five seconds; the body is never read; the client must read the reply within 30
// seconds. Eight threads serve, 64 connections may wait for them, and further ones are closed at
// once. A client can still delay others.
class HttpServer {
 public:
  // Called from any of the server's threads, concurrently. An error is answered with 503 and its
  // message.
  using Page = std::function<absl::StatusOr<HttpReply>()>;

  // Listens at a numeric address, IPv6 in brackets ("[::1]"); port 0: any free one. Errors:
  // UNAVAILABLE (the address is in use, or does not belong to this host).
  static absl::StatusOr<std::unique_ptr<HttpServer>> Listen(const std::string& host, uint16_t port);
  ~HttpServer();

  // Registers a page. Call before Start.
  void Add(const std::string& path, Page page);
  // Registers a page that reads the query. Call before Start.
  using QueryPage = std::function<absl::StatusOr<HttpReply>(const HttpQuery&)>;
  void AddQuery(const std::string& path, QueryPage page);
  // Refuses, with 403, requests whose Host is neither a name that always means this host nor the
  // address it listens at, which must be loopback. This stops pages of other sites, open in a
  // user's browser, whose name an attacker resolves to 127.0.0.1 ("DNS rebinding"). Call before
  // Start.
  void AnswerToLoopbackNamesOnly();
  // Answers 403 to a request whose path does not begin with "/SECRET". Pages are registered without
  // it. Call before Start. REQUIRES: letters and digits.
  void Hide(std::string secret);
  // Serves requests from now on, until the destructor, which waits at most a second for replies in
  // progress and not for incomplete requests.
  void Start();

  uint16_t port() const { return port_; }
  std::string address() const;  // "127.0.0.1:40123"

 private:
  class BoundedServer;

  HttpServer(std::unique_ptr<BoundedServer> server, int listener, std::string host, uint16_t port);

  std::unique_ptr<BoundedServer> server_;
  int listener_;  // listening socket, owned by the library
  std::string host_;
  uint16_t port_;
  std::thread thread_;
  std::future<void> ended_;  // set when thread_ ends
  // Replies being made or written. The library writes nothing once the read side is shut down.
  std::atomic<int> answering_ = 0;
};

}  // namespace tug

#endif  // TUG_BASE_NET_HTTP_SERVER_H_
