#ifndef TUG_BASE_HTTP_SERVER_H_
#define TUG_BASE_HTTP_SERVER_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>

#include "absl/status/statusor.h"

namespace httplib {
class Server;
}

namespace tug {

struct HttpReply {
  std::string type;  // "text/html; charset=utf-8"
  std::string body;
  std::string content_security_policy = {};  // a header; empty: none
};

// What follows the path: "?since=12".
using HttpQuery = std::multimap<std::string, std::string>;

// Answers GET requests of pages that are made when they are asked for: for people and programs that
// watch. Whoever can connect may read, and change nothing. Has a few threads of its own; requests
// wait for one another beyond that.
class HttpServer {
 public:
  // Called from any of the server's threads, several at once. An error is answered with 503 and its
  // message.
  using Page = std::function<absl::StatusOr<HttpReply>()>;

  // Listens at a numeric address; port 0: any free one. Errors: UNAVAILABLE (the address is in use,
  // or not this host's).
  static absl::StatusOr<std::unique_ptr<HttpServer>> Listen(const std::string& host, uint16_t port);
  ~HttpServer();

  // Before Start.
  void Add(const std::string& path, Page page);
  // The same of a page that looks at the query.
  using QueryPage = std::function<absl::StatusOr<HttpReply>(const HttpQuery&)>;
  void AddQuery(const std::string& path, QueryPage page);
  // Refuses, with 403, who has not asked for it by a name that always means this host: a page of
  // another site in somebody's browser, whose name an attacker lets mean 127.0.0.1 ("DNS
  // rebinding"). Before Start.
  void AnswerToLoopbackNamesOnly();
  // From here on requests are answered, until the end of this object, which waits for those under
  // way.
  void Start();

  uint16_t port() const { return port_; }
  std::string address() const;  // "127.0.0.1:40123"

 private:
  HttpServer(std::unique_ptr<httplib::Server> server, std::string host, uint16_t port);

  std::unique_ptr<httplib::Server> server_;
  std::string host_;
  uint16_t port_;
  std::thread thread_;
};

}  // namespace tug

#endif  // TUG_BASE_HTTP_SERVER_H_
