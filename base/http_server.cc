#include "base/http_server.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "httplib.h"

namespace tug {
namespace {

constexpr size_t kThreads = 2;
constexpr size_t kLargestRequestBytes = 64 << 10;
constexpr time_t kPatienceSeconds =
    5;  // with a request that does not come to its end, or a reply that nobody reads

void Answer(const absl::StatusOr<HttpReply>& reply, httplib::Response& response) {
  if (!reply.ok()) {
    response.status = 503;
    response.set_content(absl::StrCat(std::string(reply.status().message()), "\n"),
                         "text/plain; charset=utf-8");
    return;
  }
  response.set_header("Cache-Control", "no-store");
  response.set_header("X-Content-Type-Options", "nosniff");
  if (!reply->content_security_policy.empty()) {
    response.set_header("Content-Security-Policy", reply->content_security_policy);
  }
  response.set_content(reply->body, reply->type.c_str());
}

// The Host header without its port.
std::string NameIn(const std::string& host) {
  const size_t colon = host.rfind(':');
  const bool in_brackets = colon != std::string::npos && host.find(']', colon) != std::string::npos;
  return colon == std::string::npos || in_brackets ? host : host.substr(0, colon);
}

}  // namespace

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::Listen(const std::string& host,
                                                               uint16_t port) {
  auto server = std::make_unique<httplib::Server>();
  server->new_task_queue = [] { return new httplib::ThreadPool(kThreads); };
  server->set_payload_max_length(kLargestRequestBytes);
  server->set_read_timeout(kPatienceSeconds);
  server->set_write_timeout(kPatienceSeconds);
  // A thread serves one connection: one that is kept open without a request would hold up others.
  server->set_keep_alive_max_count(1);
  // The library's default shares a port with whoever else listens there.
  server->set_socket_options([](socket_t socket) {
    const int yes = 1;
    setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  });
  const int bound = port == 0                          ? server->bind_to_any_port(host)
                    : server->bind_to_port(host, port) ? port
                                                       : -1;
  if (bound <= 0) {
    return absl::UnavailableError(
        absl::StrCat("cannot listen at ", host, ":", port,
                     " for HTTP: the port is in use, or the address is not this host's"));
  }
  return std::unique_ptr<HttpServer>(
      new HttpServer(std::move(server), host, static_cast<uint16_t>(bound)));
}

HttpServer::HttpServer(std::unique_ptr<httplib::Server> server, std::string host, uint16_t port)
    : server_(std::move(server)), host_(std::move(host)), port_(port) {}

HttpServer::~HttpServer() {
  if (!thread_.joinable()) Start();  // only who has listened closes its socket
  server_->stop();
  thread_.join();
}

void HttpServer::Add(const std::string& path, Page page) {
  AddQuery(path, [page = std::move(page)](const HttpQuery&) { return page(); });
}

void HttpServer::AddQuery(const std::string& path, QueryPage page) {
  server_->Get(
      path, [page = std::move(page)](const httplib::Request& request, httplib::Response& response) {
        Answer(page(request.params), response);
      });
}

void HttpServer::AnswerToLoopbackNamesOnly() {
  server_->set_pre_routing_handler(
      [](const httplib::Request& request, httplib::Response& response) {
        const std::string name = NameIn(request.get_header_value("Host"));
        if (name == "127.0.0.1" || name == "localhost" || name == "[::1]") {
          return httplib::Server::HandlerResponse::Unhandled;
        }
        response.status = 403;
        response.set_content("ask for this page as 127.0.0.1 or localhost\n",
                             "text/plain; charset=utf-8");
        return httplib::Server::HandlerResponse::Handled;
      });
}

void HttpServer::Start() {
  thread_ = std::thread([this] { server_->listen_after_bind(); });
  // `stop` before the thread has come to listen would be lost.
  while (!server_->is_running()) std::this_thread::yield();
}

std::string HttpServer::address() const { return absl::StrCat(host_, ":", port_); }

}  // namespace tug
