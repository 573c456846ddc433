// SPDX-License-Identifier: Apache-2.0
#include "base/net/http_server.h"

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/file_descriptor.h"
#include "base/net/host_name.h"
#include "base/net/http_head.h"
#include "httplib.h"

namespace tug {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kThreads = 8;
constexpr size_t kMaxWaitingConnections = 64;  // connections queued for a thread
constexpr std::chrono::seconds kToAsk{5};      // from connecting to the end of the request's head
constexpr std::chrono::seconds kToTakeReply{30};
// In the destructor: interval for closing connections that wait for a request, and time limit for
// replies in progress.
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

// Host header without its port.
std::string NameIn(const std::string& host) {
  const size_t colon = host.rfind(':');
  const bool in_brackets = colon != std::string::npos && host.find(']', colon) != std::string::npos;
  return colon == std::string::npos || in_brackets ? host : host.substr(0, colon);
}

// Local address of a socket; family AF_UNSPEC if it has none.
sockaddr_in6 OwnAddress(int socket) {
  sockaddr_in6 address{};  // also large enough for IPv4
  socklen_t size = sizeof address;
  if (getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size) != 0) return {};
  return address;
}

// Whether a connection with local address `own` was accepted by the listener at `listener`.
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

// Shuts down (`how` as in shutdown(2)) the connections accepted by `listener`: the library, which
// owns them, waits until they end by themselves.
void ShutDownConnections(const sockaddr_in6& listener, int how) {
  std::error_code error;
  for (std::filesystem::directory_iterator file("/proc/self/fd", error), end; !error && file != end;
       file.increment(error)) {
    const int socket = std::atoi(file->path().filename().c_str());
    if (CameThrough(listener, OwnAddress(socket))) shutdown(socket, how);
  }
}

thread_local bool answers_a_page = false;
// Set while this thread serves a connection beyond kMaxWaitingConnections, only to close it.
thread_local bool turns_away = false;

// Waits until the socket is ready for `events` (poll(2)); false after `deadline`.
bool AwaitSocket(int socket, short events, Clock::time_point deadline) {
  while (true) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
    if (left.count() <= 0) return false;
    pollfd polled{socket, events, 0};
    const int ready = poll(&polled, 1, static_cast<int>(left.count()));
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) return false;
  }
}

// Receives the head of a request. A head longer than kMaxHttpHeadBytes is truncated, so it lacks
// the final empty line. None: the connection ended, or the head was incomplete at the deadline.
std::optional<std::string> ReceiveHead(int socket) {
  const Clock::time_point deadline = Clock::now() + kToAsk;
  std::string head(kMaxHttpHeadBytes, '\0');
  size_t size = 0;
  while (size < head.size()) {
    if (!AwaitSocket(socket, POLLIN, deadline)) return std::nullopt;
    const ssize_t count = recv(socket, head.data() + size, head.size() - size, MSG_DONTWAIT);
    if (count < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (count <= 0) return std::nullopt;
    const size_t looked_at = size < 3 ? 0 : size - 3;
    size += static_cast<size_t>(count);
    const size_t end = absl::string_view(head.data(), size).find("\r\n\r\n", looked_at);
    if (end != absl::string_view::npos) return head.substr(0, end + 4);
  }
  return head;
}

// Stream from which the library reads a received request and to which it writes the reply.
class ReceivedRequest final : public httplib::Stream {
 public:
  ReceivedRequest(std::string request, int socket) : request_(std::move(request)), fd_(socket) {}

  bool is_readable() const override { return read_ < request_.size(); }
  bool is_writable() const override { return true; }
  ssize_t read(char* to, size_t size) override {
    const size_t count = request_.copy(to, size, read_);
    read_ += count;
    return static_cast<ssize_t>(count);
  }
  ssize_t write(const char* from, size_t size) override {
    while (AwaitSocket(fd_, POLLOUT, deadline_)) {
      const ssize_t count = send(fd_, from, size, MSG_NOSIGNAL | MSG_DONTWAIT);
      if (count >= 0 || (errno != EINTR && errno != EAGAIN)) return count;
    }
    return -1;
  }
  void get_remote_ip_and_port(std::string&, int&) const override {}
  void get_local_ip_and_port(std::string&, int&) const override {}
  socket_t socket() const override { return fd_; }

 private:
  const std::string request_;
  const int fd_;
  const Clock::time_point deadline_ = Clock::now() + kToTakeReply;
  size_t read_ = 0;
};

void Refuse(int socket, int status) {
  const std::string why = status == 405   ? "405 Method Not Allowed"
                          : status == 431 ? "431 Request Header Fields Too Large"
                          : status == 403 ? "403 Forbidden"
                                          : "400 Bad Request";
  const std::string text =
      status == 403
          ? "the address of this page contains a secret: tug status shows the full address\n"
          : "";
  const std::string reply = absl::StrCat(
      "HTTP/1.1 ", why, "\r\nContent-Type: text/plain\r\nContent-Length: ", text.size(),
      "\r\nConnection: close\r\n\r\n", text);
  // Fits into the socket's buffer; a failure means the client is gone.
  [[maybe_unused]] const ssize_t sent =
      send(socket, reply.data(), reply.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
}

// Thread pool of the library with a bounded queue.
class BoundedQueue final : public httplib::TaskQueue {
 public:
  // void in cpp-httplib 0.11, bool (accepted) in 0.18.
  using Enqueued = decltype(std::declval<httplib::TaskQueue&>().enqueue(nullptr));

  Enqueued enqueue(std::function<void()> serve) override {
    if (waiting_ >= kMaxWaitingConnections) {
      turns_away = true;
      serve();
      turns_away = false;
    } else {
      ++waiting_;
      threads_.enqueue([this, serve = std::move(serve)] {
        --waiting_;
        serve();
      });
    }
    return static_cast<Enqueued>(true);
  }
  void shutdown() override { threads_.shutdown(); }

 private:
  std::atomic<size_t> waiting_ = 0;
  httplib::ThreadPool threads_{kThreads};
};

}  // namespace

// cpp-httplib bounds neither the lines of a request nor a body without Content-Length, so it
// reads only the head that ReceiveHead has read and ReadHttpHead accepted.
class HttpServer::BoundedServer final : public httplib::Server {
 public:
  std::string secret;

 private:
  // cpp-httplib 0.18 also takes the addresses of both ends, which no page reads.
  template <typename Stream>
  void Process(Stream& request) {
    bool closed = false;
    if constexpr (requires { this->process_request(request, true, closed, nullptr); }) {
      this->process_request(request, true, closed, nullptr);
    } else {
      this->process_request(request, "", 0, "", 0, true, closed, nullptr);
    }
  }

  bool process_and_close_socket(socket_t socket) override {
    const FileDescriptor closed_at_the_end(socket);
    if (turns_away) return false;
    const std::optional<std::string> head = ReceiveHead(socket);
    if (!head.has_value()) return false;
    const bool whole = absl::EndsWith(*head, "\r\n\r\n");
    HttpHead taken = whole ? ReadHttpHead(*head, secret) : HttpHead{.refusal = 431};
    if (taken.refusal != 0) {
      Refuse(socket, taken.refusal);
    } else {
      ReceivedRequest request(std::move(taken.request), socket);
      Process(request);
    }
    shutdown(socket, SHUT_RDWR);
    return true;
  }
};

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::Listen(const std::string& host,
                                                               uint16_t port) {
  auto server = std::make_unique<BoundedServer>();
  server->new_task_queue = [] { return new BoundedQueue(); };
  // The library's default socket options allow other processes to listen on the same port.
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

HttpServer::HttpServer(std::unique_ptr<BoundedServer> server, int listener, std::string host,
                       uint16_t port)
    : server_(std::move(server)), listener_(listener), host_(std::move(host)), port_(port) {
  // Called when a reply has been written, on the thread that made it; also for replies without a
  // page.
  server_->set_logger([this](const httplib::Request&, const httplib::Response&) {
    if (std::exchange(answers_a_page, false)) --answering_;
  });
}

HttpServer::~HttpServer() {
  if (!thread_.joinable()) Start();  // only a running server closes its listening socket
  const sockaddr_in6 listener = OwnAddress(listener_);
  server_->stop();
  // Repeated, to catch a connection accepted just before the listener stopped.
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
  server_->set_pre_routing_handler([own = host_](const httplib::Request& request,
                                                 httplib::Response& response) {
    const std::string name = NameIn(request.get_header_value("Host"));
    if (name == "127.0.0.1" || name == "localhost" || name == "[::1]" || name == own) {
      return httplib::Server::HandlerResponse::Unhandled;
    }
    response.status = 403;
    response.set_content("open this page at 127.0.0.1 or localhost\n", "text/plain; charset=utf-8");
    return httplib::Server::HandlerResponse::Handled;
  });
}

void HttpServer::Hide(std::string secret) { server_->secret = std::move(secret); }

void HttpServer::Start() {
  std::packaged_task<void()> listen([this] { server_->listen_after_bind(); });
  ended_ = listen.get_future();
  thread_ = std::thread(std::move(listen));
  // stop() before the thread listens would have no effect.
  while (!server_->is_running()) std::this_thread::yield();
}

std::string HttpServer::address() const { return absl::StrCat(host_, ":", port_); }

}  // namespace tug
