// SPDX-License-Identifier: Apache-2.0
#include "coordinator/service/connection_gate.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "control/control_client.h"
#include "control/control_credentials.h"
#include "gmock/gmock.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"
#include "gtest/gtest.h"
#include "proto/control.grpc.pb.h"
#include "proto/wire.h"

namespace tug {
namespace {
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr absl::Duration kPatience = absl::Seconds(20);
constexpr absl::Duration kShort = absl::Milliseconds(1500);  // for connections that must fail
constexpr char kSecretName[] = "the-name-of-the-job";

// A control service behind a gate (without keys: without gate), as in ControlService.
class Service final : public Control::Service {
 public:
  explicit Service(const JobKeys& keys, bool everywhere = false)
      : keys_(keys), refusals_([this](const std::string& line) {
          absl::MutexLock lock(&mutex_);
          lines_.push_back(line);
        }) {
    using Type = grpc::ServerBuilder::experimental_type::ExternalConnectionType;
    grpc::ServerBuilder builder;
    builder.RegisterService(this);
    int port = 0;
    if (keys.none()) {
      builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
      server_ = builder.BuildAndStart();
    } else {
      FileDescriptor listener = everywhere ? ListenEverywhere(port) : Listen(port);
      gate_ = ConnectionGate::Create(std::move(listener), keys, refusals_, strangers_).value();
      auto experimental = builder.experimental();
      auto plain = experimental.AddExternalConnectionAcceptor(Type::FROM_FD,
                                                              grpc::InsecureServerCredentials());
      ConnectionGate::Acceptor encrypted;
      if (keys.mode == SecurityConfig::CURVE) {
        encrypted =
            experimental.AddExternalConnectionAcceptor(Type::FROM_FD, TlsServerCredentialsOf(keys));
      }
      server_ = builder.BuildAndStart();
      gate_->Open(std::move(plain), std::move(encrypted));
    }
    port_ = port;
  }
  ~Service() override {
    gate_.reset();
    server_->Shutdown();
  }

  grpc::Status Status(grpc::ServerContext* context, const StatusRequest*,
                      StatusReply* reply) override {
    if (const auto refusal = RefusalOf(*context, keys_)) {
      refusals_.Add(AddressOfPeer(*context), refusal->reason);
      return grpc::Status(static_cast<grpc::StatusCode>(refusal->answer.code()),
                          std::string(refusal->answer.message()));
    }
    strangers_.Admit(ConnectionName(*context));
    reply->set_name(kSecretName);
    return grpc::Status::OK;
  }

  int port() const { return port_; }
  std::string address() const { return absl::StrCat("127.0.0.1:", port_); }
  std::string lines() const {
    absl::MutexLock lock(&mutex_);
    return absl::StrJoin(lines_, "\n");
  }
  bool WaitForLine(const std::string& part) const {
    const absl::Time end = absl::Now() + kPatience;
    while (!absl::StrContains(lines(), part) && absl::Now() < end) {
      absl::SleepFor(absl::Milliseconds(2));  // no event announces it
    }
    return absl::StrContains(lines(), part);
  }

 private:
  static FileDescriptor Listen(int& port) {
    FileDescriptor listener(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    EXPECT_EQ(bind(listener.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(listen(listener.get(), 100), 0);
    EXPECT_EQ(getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
    port = ntohs(address.sin_port);
    return listener;
  }

  // Listens at all addresses of both protocols; port unchanged: this machine has no IPv6.
  static FileDescriptor ListenEverywhere(int& port) {
    FileDescriptor listener(socket(AF_INET6, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    const int no = 0;
    setsockopt(listener.get(), IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof(no));
    sockaddr_in6 address{.sin6_family = AF_INET6};
    socklen_t size = sizeof(address);
    if (bind(listener.get(), reinterpret_cast<sockaddr*>(&address), size) == 0 &&
        listen(listener.get(), 100) == 0 &&
        getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &size) == 0) {
      port = ntohs(address.sin6_port);
    }
    return listener;
  }

  const JobKeys keys_;
  mutable absl::Mutex mutex_;
  std::vector<std::string> lines_ ABSL_GUARDED_BY(mutex_);
  Refusals refusals_;
  Strangers strangers_{2};
  std::unique_ptr<ConnectionGate> gate_;
  std::unique_ptr<grpc::Server> server_;
  int port_ = 0;
};

// Result for a client with `keys`: name of the job, or the error.
std::string Asked(const Service& service, const JobKeys& keys, absl::Duration timeout) {
  const auto client = ControlClient::Connect(service.address(), timeout, keys);
  if (!client.ok()) return std::string(client.status().message());
  const absl::StatusOr<StatusReply> status = (*client)->Status();
  return status.ok() ? status->name() : std::string(status.status().message());
}

JobKeys Make(SecurityConfig::Mode mode) { return MakeJobKeys(mode).value(); }

TEST(ConnectionGate, LetsMembersIn) {
  for (const SecurityConfig::Mode mode : {SecurityConfig::TOKEN, SecurityConfig::CURVE}) {
    const JobKeys keys = Make(mode);
    const Service service(keys);
    EXPECT_EQ(Asked(service, keys, kPatience), kSecretName) << ModeName(mode);
    EXPECT_THAT(service.lines(), IsEmpty());
  }
  const Service service{JobKeys()};
  EXPECT_EQ(Asked(service, JobKeys(), kPatience), kSecretName);
}

TEST(ConnectionGate, TellsWhoHasNoKeysWhatToDo) {
  for (const SecurityConfig::Mode mode : {SecurityConfig::TOKEN, SecurityConfig::CURVE}) {
    const Service service(Make(mode));
    EXPECT_THAT(Asked(service, JobKeys(), kPatience),
                AllOf(HasSubstr(service.address()), HasSubstr("it has no keys"),
                      HasSubstr("--keys FILE"), Not(HasSubstr(kSecretName))));
    EXPECT_EQ(service.lines(), "refused 127.0.0.1: it has no keys");
  }
}

TEST(ConnectionGate, RefusesTheKeysOfAnotherJob) {
  const Service token(Make(SecurityConfig::TOKEN));
  const JobKeys others = Make(SecurityConfig::TOKEN);
  EXPECT_THAT(Asked(token, others, kPatience),
              AllOf(HasSubstr("its keys belong to another job"), HasSubstr("tug keys --show")));
  EXPECT_THAT(token.lines(),
              AllOf(HasSubstr("refused 127.0.0.1: its keys belong to another job"),
                    HasSubstr(KeysFingerprint(others)), Not(HasSubstr(others.token))));
  const Service curve(Make(SecurityConfig::CURVE));
  const JobKeys other_curve = Make(SecurityConfig::CURVE);
  EXPECT_THAT(Asked(curve, other_curve, kShort),
              AllOf(HasSubstr("rejected the keys of this process"),
                    HasSubstr(KeysFingerprint(other_curve))));
  EXPECT_TRUE(curve.WaitForLine(KeysFingerprint(other_curve))) << curve.lines();
  EXPECT_THAT(curve.lines(), HasSubstr("refused 127.0.0.1: its keys belong to another job"));
}

TEST(ConnectionGate, RefusesKeysOfAnotherMode) {
  const Service token(Make(SecurityConfig::TOKEN));
  EXPECT_THAT(Asked(token, Make(SecurityConfig::CURVE), kShort),
              HasSubstr("rejected the keys of this process"));
  EXPECT_TRUE(token.WaitForLine("its keys are for mode curve, the job's for mode token"));
  const Service curve(Make(SecurityConfig::CURVE));
  EXPECT_THAT(Asked(curve, Make(SecurityConfig::TOKEN), kPatience),
              HasSubstr("its keys are for another mode, the job's for mode curve"));
  EXPECT_THAT(curve.lines(), HasSubstr("its keys are for another mode"));
  const Service none{JobKeys()};
  EXPECT_THAT(Asked(none, Make(SecurityConfig::TOKEN), kPatience),
              HasSubstr("it has keys, but this job has none"));
}

// A peer that knows the job's TLS name, and maybe its token, but lacks its TLS key.
TEST(ConnectionGate, ANameIsNoKey) {
  const JobKeys keys = Make(SecurityConfig::CURVE);
  const Service service(keys);
  JobKeys forged = keys;
  forged.tls = MakeTlsIdentity(TlsName(keys)).value();
  EXPECT_THAT(Asked(service, forged, kShort), HasSubstr("rejected the keys"));
  EXPECT_EQ(Asked(service, keys, kPatience), kSecretName);
}

TEST(ConnectionGate, BothSidesSayBothVersions) {
  for (const JobKeys& keys : {JobKeys(), Make(SecurityConfig::TOKEN)}) {
    const Service service(keys);
    const auto channel = grpc::CreateChannel(service.address(), grpc::InsecureChannelCredentials());
    const auto stub = Control::NewStub(channel);
    for (const auto& [name, what, ours] :
         {std::tuple{"tug-control", "control protocol", kControlVersion},
          {"tug-wire", "wire format", uint32_t{kWireVersion}}}) {
      grpc::ClientContext context;
      context.AddMetadata(name, absl::StrCat(ours - 1));
      if (!keys.none()) context.AddMetadata("tug-token", keys.token);
      StatusReply reply;
      const grpc::Status status = stub->Status(&context, StatusRequest(), &reply);
      const std::string both =
          absl::StrCat("it speaks ", what, " ", ours - 1, ", the coordinator ", ours);
      EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
      EXPECT_THAT(status.error_message(), AllOf(HasSubstr(both), HasSubstr("same version")));
      EXPECT_THAT(service.lines(), HasSubstr("refused 127.0.0.1: " + both));
    }
  }
}

int ConnectTo(const Service& service) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<uint16_t>(service.port()));
  EXPECT_EQ(connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  return fd;
}

TEST(ConnectionGate, RefusesWhatIsNoControlCall) {
  for (const SecurityConfig::Mode mode : {SecurityConfig::TOKEN, SecurityConfig::CURVE}) {
    const JobKeys keys = Make(mode);
    const Service service(keys);
    std::vector<int> open;
    const std::string half_a_record("\x16\x03\x01\x02\x00\x01", 6);
    for (const std::string& said :
         {std::string("GET / HTTP/1.1\r\n\r\n"), std::string("\xff\0TUG", 5),
          std::string("PRI * H"), half_a_record, half_a_record + std::string(600, 'x'),
          std::string()}) {
      for (const bool ends : {false, true}) {
        const int fd = ConnectTo(service);
        EXPECT_EQ(send(fd, said.data(), said.size(), MSG_NOSIGNAL),
                  static_cast<ssize_t>(said.size()));
        if (ends) shutdown(fd, SHUT_WR);
        open.push_back(fd);
      }
    }
    EXPECT_TRUE(service.WaitForLine("refused 127.0.0.1: not the Tugboat control protocol"));
    // More silent connections than may wait.
    for (size_t i = 0; i < ConnectionGate::kMaxWaitingConnections + 50; ++i)
      open.push_back(ConnectTo(service));
    EXPECT_EQ(Asked(service, keys, kPatience), kSecretName);
    for (const int fd : open) close(fd);
  }
}

// They were passed to gRPC and keep their connections: gRPC would let them stay. A member is known
// by its address, which gate and gRPC format differently.
void ExpectStrangersAreHungUpOn(const Service& service, const JobKeys& keys,
                                const std::vector<std::string>& hosts) {
  std::vector<std::unique_ptr<ControlClient>> members;
  for (const std::string& host : hosts) {
    auto member = ControlClient::Connect(absl::StrCat(host, ":", service.port()), kPatience, keys);
    ASSERT_TRUE(member.ok()) << member.status();
    ASSERT_TRUE((*member)->Status().ok());
    members.push_back(*std::move(member));
  }
  const std::string opening("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0", 33);
  std::vector<int> open(Strangers::kMost + 1);
  for (int& fd : open) {
    fd = ConnectTo(service);
    EXPECT_EQ(send(fd, opening.data(), opening.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(opening.size()));
    char settings;  // gRPC's settings: this one is in
    EXPECT_EQ(recv(fd, &settings, 1, 0), 1);
  }
  const timeval limit{.tv_sec = 20, .tv_usec = 0};
  setsockopt(open[0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
  std::string rest(4096, ' ');
  ssize_t count;
  while ((count = recv(open[0], rest.data(), rest.size(), 0)) > 0) continue;
  EXPECT_TRUE(count == 0 || errno == ECONNRESET) << std::strerror(errno);
  for (const auto& member : members) {
    EXPECT_TRUE(member->IsConnected()) << member->address();
    EXPECT_TRUE(member->Status().ok());
  }
  for (const int fd : open) close(fd);
}

TEST(ConnectionGate, HangsUpOnStrangersThatAreTooManyAndOnNoMember) {
  for (const SecurityConfig::Mode mode : {SecurityConfig::TOKEN, SecurityConfig::CURVE}) {
    const JobKeys keys = Make(mode);
    ExpectStrangersAreHungUpOn(Service(keys), keys, {"127.0.0.1"});
    const Service everywhere(keys, /*everywhere=*/true);
    if (everywhere.port() == 0) continue;
    ExpectStrangersAreHungUpOn(everywhere, keys, {"127.0.0.1", "[::1]"});
  }
}

}  // namespace
}  // namespace tug
