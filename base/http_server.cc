#include "base/http_server.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/host_name.h"
#include "httplib.h"

namespace tug {
namespace {

constexpr size_t kThreads = 8;
constexpr size_t kLargestRequestBytes = 64 << 10;
constexpr time_t kPatienceSeconds =
    5;  // with a request that does not come to its end, or a reply that nobody reads
// At the end of the server: how often it looks for connections that wait for a request, and how
// long replies under way may take.
constexpr std::chrono::milliseconds kEndRound{20};
constexpr std::chrono::seconds kLastReplies{1};

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

// The address of this end of a socket; its family is AF_UNSPEC where there is none.
sockaddr_in6 OwnAddress(int socket) {
  sockaddr_in6 address{};  // large enough for IPv4, too
  socklen_t size = sizeof address;
  if (getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size) != 0) return {};
  return address;
}

// Whether a connection with this address at this end came through the listener at that one.
bool CameThrough(const sockaddr_in6& listener, const sockaddr_in6& own) {
  if (own.sin6_family != listener.sin6_family || own.sin6_port != listener.sin6_port) return false;
  if (own.sin6_family == AF_INET6) {
    return IN6_IS_ADDR_UNSPECIFIED(&listener.sin6_addr) ||
           IN6_ARE_ADDR_EQUAL(&listener.sin6_addr, &own.sin6_addr);
  }
  const in_addr at = reinterpret_cast<const sockaddr_in&>(listener).sin_addr;
  return own.sin6_family == AF_INET &&
         (at.s_addr == INADDR_ANY ||
          at.s_addr == reinterpret_cast<const sockaddr_in&>(own).sin_addr.s_addr);
}

// Ends connections that came through `listener`, as `how` of shutdown(2) says: the library, which
// knows them, waits until they end by themselves.
void ShutDownConnections(const sockaddr_in6& listener, int how) {
  std::error_code error;
  for (std::filesystem::directory_iterator file("/proc/self/fd", error), end; !error && file != end;
       file.increment(error)) {
    const int socket = std::atoi(file->path().filename().c_str());
    if (CameThrough(listener, OwnAddress(socket))) shutdown(socket, how);
  }
}

thread_local bool answers_a_page = false;

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
  auto listener = std::make_shared<int>(-1);
  server->set_socket_options([listener](socket_t socket) {
    *listener = socket;
    const int yes = 1;
    setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  });
  const std::string name = WithoutBrackets(host);
  const int bound = port == 0                          ? server->bind_to_any_port(name)
                    : server->bind_to_port(name, port) ? port
                                                       : -1;
  if (bound <= 0) {
    return absl::UnavailableError(
        absl::StrCat("cannot listen at ", host, ":", port,
                     " for HTTP: the port is in use, or the address is not this host's"));
  }
  return std::unique_ptr<HttpServer>(
      new HttpServer(std::move(server), *listener, host, static_cast<uint16_t>(bound)));
}

HttpServer::HttpServer(std::unique_ptr<httplib::Server> server, int listener, std::string host,
                       uint16_t port)
    : server_(std::move(server)), listener_(listener), host_(std::move(host)), port_(port) {
  // Called when a reply is written, by the thread that made it; also of what no page answered.
  server_->set_logger([this](const httplib::Request&, const httplib::Response&) {
    if (std::exchange(answers_a_page, false)) --answering_;
  });
}

HttpServer::~HttpServer() {
  if (!thread_.joinable()) Start();  // only who has listened closes its socket
  const sockaddr_in6 listener = OwnAddress(listener_);
  server_->stop();
  // A connection that the listener had just taken is found in a later round.
  const auto last = std::chrono::steady_clock::now() + kLastReplies;
  do {
    const bool late = std::chrono::steady_clock::now() > last;
    if (late || answering_ == 0) ShutDownConnections(listener, late ? SHUT_RDWR : SHUT_RD);
  } while (ended_.wait_for(kEndRound) != std::future_status::ready);
  thread_.join();
}

void HttpServer::Add(const std::string& path, Page page) {
  AddQuery(path, [page = std::move(page)](const HttpQuery&) { return page(); });
}

void HttpServer::AddQuery(const std::string& path, QueryPage page) {
  server_->Get(path, [this, page = std::move(page)](const httplib::Request& request,
                                                    httplib::Response& response) {
    if (!std::exchange(answers_a_page, true)) ++answering_;
    Answer(page(request.params), response);
  });
}

void HttpServer::AnswerToLoopbackNamesOnly() {
  server_->set_pre_routing_handler(
      [own = host_](const httplib::Request& request, httplib::Response& response) {
        const std::string name = NameIn(request.get_header_value("Host"));
        if (name == "127.0.0.1" || name == "localhost" || name == "[::1]" || name == own) {
          return httplib::Server::HandlerResponse::Unhandled;
        }
        response.status = 403;
        response.set_content("ask for this page as 127.0.0.1 or localhost\n",
                             "text/plain; charset=utf-8");
        return httplib::Server::HandlerResponse::Handled;
      });
}

void HttpServer::Start() {
  std::packaged_task<void()> listen([this] { server_->listen_after_bind(); });
  ended_ = listen.get_future();
  thread_ = std::thread(std::move(listen));
  // `stop` before the thread has come to listen would be lost.
  while (!server_->is_running()) std::this_thread::yield();
}

std::string HttpServer::address() const { return absl::StrCat(host_, ":", port_); }

}  // namespace tug
