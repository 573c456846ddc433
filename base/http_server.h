#ifndef TUG_BASE_HTTP_SERVER_H_
#define TUG_BASE_HTTP_SERVER_H_

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
  std::string content_security_policy = {};  // a header; empty: none
};

// What follows the path: "?since=12".
using HttpQuery = std::multimap<std::string, std::string>;

// Answers GET requests of pages that are made when they are asked for: for people and programs that
// watch. Pages change nothing. Whoever can connect can read them, unless Hide is called.
//
// The resources that a client can take are bounded. The head of a request may have
// kMostHttpHeadBytes and must arrive within five seconds; its body is never read; the client must
// take the reply within 30 seconds. Eight threads answer, 64 connections wait for them, and further
// ones are closed at once. A client can still make others wait.
class HttpServer {
 public:
  // Called from any of the server's threads, several at once. An error is answered with 503 and its
  // message.
  using Page = std::function<absl::StatusOr<HttpReply>()>;

  // Listens at a numeric address, of IPv6 in brackets ("[::1]"); port 0: any free one. Errors:
  // UNAVAILABLE (the address is in use, or not this host's).
  static absl::StatusOr<std::unique_ptr<HttpServer>> Listen(const std::string& host, uint16_t port);
  ~HttpServer();

  // Before Start.
  void Add(const std::string& path, Page page);
  // The same of a page that looks at the query.
  using QueryPage = std::function<absl::StatusOr<HttpReply>(const HttpQuery&)>;
  void AddQuery(const std::string& path, QueryPage page);
  // Refuses, with 403, who has not asked for it by a name that always means this host, or as the
  // host that it listens at, which is to be loopback: a page of another site in somebody's browser,
  // whose name an attacker lets mean 127.0.0.1 ("DNS rebinding"). Before Start.
  void AnswerToLoopbackNamesOnly();
  // Answers 403 to a request whose path does not begin with "/SECRET". Pages are added without it.
  // Before Start. REQUIRES: letters and digits.
  void Hide(std::string secret);
  // From here on requests are answered, until the end of this object, which waits a second at most
  // for replies under way, and not for requests that have not come to their end.
  void Start();

  uint16_t port() const { return port_; }
  std::string address() const;  // "127.0.0.1:40123"

 private:
  class BoundedServer;

  HttpServer(std::unique_ptr<BoundedServer> server, int listener, std::string host, uint16_t port);

  std::unique_ptr<BoundedServer> server_;
  int listener_;  // the socket, which is the library's
  std::string host_;
  uint16_t port_;
  std::thread thread_;
  std::future<void> ended_;  // of what thread_ does
  // Replies that are made or written. The library writes nothing where reading has ended.
  std::atomic<int> answering_ = 0;
};

}  // namespace tug

#endif  // TUG_BASE_HTTP_SERVER_H_
