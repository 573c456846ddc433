// SPDX-License-Identifier: Apache-2.0
#include "coordinator/service/control_service.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "base/file_descriptor.h"
#include "base/log.h"
#include "base/net/host_name.h"
#include "base/status_macros.h"
#include "base/time_source.h"
#include "control/control_credentials.h"
#include "coordinator/service/connection_gate.h"
#include "coordinator/service/presence_service.h"
#include "coordinator/service/strangers.h"
#include "grpc/support/time.h"
#include "grpcpp/resource_quota.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"
#include "proto/control.grpc.pb.h"
#include "proto/wire.h"
#include "security/refusals.h"

namespace tug {
namespace {

grpc::Status ToGrpc(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()), std::string(status.message()));
}

// Opens a listening socket; if that fails it is invalid, and `why` is the reason (gRPC reports
// none).
FileDescriptor ListenAt(const HostPort& address, std::string& why) {
  const std::string host = WithoutBrackets(address.host);
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* found = nullptr;
  const int resolved =
      getaddrinfo(host.c_str(), std::to_string(address.port).c_str(), &hints, &found);
  if (resolved != 0) {
    why = gai_strerror(resolved);
    return FileDescriptor();
  }
  FileDescriptor fd(socket(found->ai_family, found->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK,
                           found->ai_protocol));
  const int on = 1;
  for (const auto& [level, option] :
       {std::pair{SOL_SOCKET, SO_REUSEADDR}, {IPPROTO_TCP, TCP_NODELAY}}) {
    if (fd.valid()) setsockopt(fd.get(), level, option, &on, sizeof(on));
  }
  if (!fd.valid() || bind(fd.get(), found->ai_addr, found->ai_addrlen) != 0 ||
      listen(fd.get(), SOMAXCONN) != 0) {
    why = std::strerror(errno);
    fd = FileDescriptor();
  }
  freeaddrinfo(found);
  return fd;
}

int PortOf(const FileDescriptor& listener) {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  if (getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0) return 0;
  return PortIn(address);
}

absl::Status CannotListen(const HostPort& listen, const std::string& why) {
  return absl::UnavailableError(
      absl::StrCat("cannot listen on ", listen.host, ":", listen.port, ": ", why,
                   "; pass another address with --listen HOST:PORT (port 0 picks a free one)"));
}

// Closes idle connections of unauthenticated peers, which would hold descriptors. Members keep a
// call open while they live. A connection belongs to one process, which in tests runs many members.
constexpr int kMaxIdleMs = 30'000;
constexpr int kMaxHandshakeMs = 5'000;
constexpr int kLastCallsSeconds = 1;  // for calls in progress at shutdown

// Limits of a server: any peer can send, and gRPC reads a whole call before it can be checked.
struct Bounds {
  int calls_of_a_connection;
  int message_bytes;
  size_t held_bytes;  // of all connections; beyond it gRPC cancels calls
  int threads;
};
constexpr Bounds kOfStrangers{2, 1 << 20, size_t{16} << 20, 8};

// All members may register at once, and each call holds a thread until the journal is synced.
Bounds BoundsOfMembers(size_t members) {
  return {128, kMaxControlMessageBytes, size_t{256} << 20,
          static_cast<int>(std::max<size_t>(64, 2 * members))};
}

void SetBounds(const Bounds& bounds, grpc::ServerBuilder& builder) {
  // A port in use is an error; it is not shared.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS, kMaxIdleMs);
  builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, kMaxHandshakeMs);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, bounds.calls_of_a_connection);
  builder.SetMaxReceiveMessageSize(bounds.message_bytes);
  // Members do not compress, and a compressed kilobyte may expand to a megabyte.
  builder.AddChannelArgument(GRPC_ARG_ENABLE_PER_MESSAGE_DECOMPRESSION, 0);
  builder.SetMaxSendMessageSize(kMaxControlMessageBytes);
  grpc::ResourceQuota quota("control service");
  builder.SetResourceQuota(quota.Resize(bounds.held_bytes).SetMaxThreads(bounds.threads));
  builder.SetSyncServerOption(grpc::ServerBuilder::NUM_CQS, 1);
  builder.SetSyncServerOption(grpc::ServerBuilder::MAX_POLLERS, 2);
}

}  // namespace

// The state machine with its mutex and journal.
class ControlService::Machine {
 public:
  Machine(std::unique_ptr<Coordinator> coordinator, Journal* journal)
      : journal_(journal), coordinator_(std::move(coordinator)) {}

  // Runs `input(coordinator, now)`, queues the actions it requests, and waits until its journal
  // records are durable. The result may leave the process only if `durable` is OK. Null: the result
  // does not depend on the journal.
  template <typename Input>
  auto Feed(Input input, absl::Status* durable = nullptr) {
    uint64_t position = 0;
    auto result = [&] {
      absl::MutexLock lock(&mutex_);
      auto told = input(*coordinator_, time_.Now());
      Collect();
      position = Position();
      return told;
    }();
    const absl::Status synced = Settle(position);
    if (durable != nullptr) *durable = synced;
    return result;
  }

  // Feed for a method without a result.
  template <typename Handler, typename... Input>
  void Tell(Handler handler, const Input&... input) {
    Feed([&](Coordinator& coordinator, absl::Time now) {
      (coordinator.*handler)(input..., now);
      return 0;
    });
  }

  size_t members() {
    absl::MutexLock lock(&mutex_);
    const ClusterConfig& cluster = coordinator_->config().cluster();
    return size_t{cluster.servers()} + cluster.workers();
  }

  void SetPage(const std::string& url) {
    absl::MutexLock lock(&mutex_);
    page_ = url;
  }
  StatusReply Status() {
    absl::MutexLock lock(&mutex_);
    StatusReply status = coordinator_->OnStatus(time_.Now());
    status.set_page(page_);
    return status;
  }

  std::vector<Action> NextActions(absl::Duration timeout) {
    std::vector<Action> actions;
    uint64_t position = 0;
    const absl::Time deadline = time_.Now() + timeout;
    {
      absl::MutexLock lock(&mutex_);
      while (true) {
        const absl::Time now = time_.Now();
        coordinator_->OnTick(now);
        Collect();
        if (!actions_.empty() || now >= deadline) break;
        mutex_.AwaitWithTimeout(
            absl::Condition(
                +[](std::vector<Action>* actions) { return !actions->empty(); }, &actions_),
            std::min(kTick, deadline - now));
      }
      actions = std::exchange(actions_, {});
      position = Position();
    }
    // Execute them even if the sync failed: the job fails then, and is not recovered.
    Settle(position).IgnoreError();
    return actions;
  }

 private:
  void Collect() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    for (Action& action : coordinator_->TakeActions()) actions_.push_back(std::move(action));
  }
  uint64_t Position() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return journal_ == nullptr || broken_ ? 0 : journal_->position();
  }

  // Waits until the first `position` records are durable. The first failure fails the job; later
  // calls do not wait.
  absl::Status Settle(uint64_t position) {
    if (position == 0) return absl::OkStatus();
    const absl::Status synced = journal_->Sync(position);
    if (synced.ok()) return synced;
    absl::MutexLock lock(&mutex_);
    if (std::exchange(broken_, true)) return synced;
    coordinator_->KeepJournal(nullptr);
    coordinator_->OnTrouble(std::string(synced.message()), time_.Now());
    Collect();
    return synced;
  }

  const RealTime time_;
  Journal* const journal_;
  absl::Mutex mutex_;
  std::unique_ptr<Coordinator> coordinator_ ABSL_GUARDED_BY(mutex_);
  std::vector<Action> actions_ ABSL_GUARDED_BY(mutex_);
  std::string page_ ABSL_GUARDED_BY(mutex_);
  bool broken_ ABSL_GUARDED_BY(mutex_) = false;  // the journal cannot be written
};

// Rejects calls that are not from members of the job, or of another version. Thread-safe.
class ControlService::Door {
 public:
  Door(JobKeys keys, size_t members)
      : keys_(std::move(keys)),
        refusals_([](const std::string& line) { LogWarning(line); }),
        strangers_(members) {}

  grpc::Status Admit(const grpc::ServerContextBase& context) {
    const std::optional<CallRefusal> refusal = RefusalOf(context, keys_);
    if (!refusal.has_value()) {
      strangers_.Admit(ConnectionName(context));
      return grpc::Status::OK;
    }
    Refused(context, refusal->reason);
    return ToGrpc(refusal->answer);
  }
  // Logs a refusal by the state machine itself.
  void Refused(const grpc::ServerContextBase& context, const std::string& reason) {
    refusals_.Add(AddressOfPeer(context), reason);
  }

  const JobKeys& keys() const { return keys_; }
  Refusals& refusals() { return refusals_; }
  Strangers& strangers() { return strangers_; }

 private:
  const JobKeys keys_;
  Refusals refusals_;
  Strangers strangers_;
};

// Handlers of the control service, called by gRPC's threads.
class ControlService::Handlers final : public Control::Service {
 public:
  Handlers(Machine& machine, Door& door) : machine_(machine), door_(door) {}

  grpc::Status Register(grpc::ServerContext* context, const RegisterRequest* request,
                        RegisterReply* reply) override {
    const grpc::Status answer = Answer(*context, reply, &Coordinator::OnRegister, *request);
    // An old peer, from before calls carried their version.
    if (!answer.ok() && request->protocol_version() != kControlVersion) {
      door_.Refused(*context,
                    absl::StrCat("it speaks control protocol ", request->protocol_version(),
                                 ", the coordinator ", kControlVersion));
    }
    return answer;
  }
  grpc::Status Heartbeat(grpc::ServerContext* context, const HeartbeatRequest* request,
                         HeartbeatReply* reply) override {
    return Answer(*context, reply, &Coordinator::OnHeartbeat, *request);
  }
  grpc::Status Trace(grpc::ServerContext* context, const TraceChunk* chunk,
                     TraceReply* reply) override {
    return Answer(*context, reply, &Coordinator::OnTrace, *chunk);
  }
  grpc::Status Status(grpc::ServerContext* context, const StatusRequest*,
                      StatusReply* reply) override {
    grpc::Status admitted = door_.Admit(*context);
    if (admitted.ok()) *reply = machine_.Status();
    return admitted;
  }
  grpc::Status Stop(grpc::ServerContext* context, const StopRequest*, StopReply* reply) override {
    return Answer(*context, reply, &Coordinator::OnStop);
  }

  grpc::Status Drain(grpc::ServerContext* context, const DrainRequest* request,
                     DrainReply* reply) override {
    return Answer(*context, reply, &Coordinator::OnDrain, request->name());
  }

 private:
  // A reply that cannot become durable is not sent: the caller retries, and learns that the job
  // failed.
  template <typename Reply, typename Handler, typename... Request>
  grpc::Status Answer(const grpc::ServerContext& context, Reply* reply, Handler handler,
                      const Request&... request) {
    grpc::Status admitted = door_.Admit(context);
    if (!admitted.ok()) return admitted;
    absl::Status durable;
    absl::StatusOr<Reply> answer =
        machine_.Feed([&](Coordinator& coordinator,
                          absl::Time now) { return (coordinator.*handler)(request..., now); },
                      &durable);
    if (!durable.ok()) {
      return ToGrpc(absl::UnavailableError(std::string(durable.message())));
    }
    if (answer.ok()) *reply = *std::move(answer);
    return ToGrpc(answer.status());
  }

  Machine& machine_;
  Door& door_;
};

class ControlService::Listener {
 public:
  Listener(Machine& machine, const HostPort& listen, const JobKeys& keys)
      : door_(keys, machine.members()),
        handlers_(machine, door_),
        refusing_handlers_(machine, door_),
        presence_([this](const grpc::ServerContextBase& context) { return door_.Admit(context); },
                  [&machine](const StayRequest& request) {
                    machine.Tell(&Coordinator::OnGone, request.node_id(), request.job());
                  }) {
    grpc::ServerBuilder builder;
    SetBounds(BoundsOfMembers(machine.members()), builder);
    builder.RegisterService(&handlers_);
    builder.RegisterService(&presence_);
    const int port = keys.none() ? Start(builder, listen) : StartBehindGate(builder, listen);
    if (port == 0) server_.reset();
    address_ = absl::StrCat(listen.host, ":", port);
  }
  ~Listener() {
    gate_.reset();
    presence_.Close();
    if (refusing_server_ != nullptr) refusing_server_->Shutdown(gpr_now(GPR_CLOCK_MONOTONIC));
    if (server_ != nullptr) {
      server_->Shutdown(gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
                                     gpr_time_from_seconds(kLastCallsSeconds, GPR_TIMESPAN)));
    }
  }

  bool listening() const { return server_ != nullptr; }
  const std::string& address() const { return address_; }

 private:
  // Returns the port; 0: cannot listen.
  int Start(grpc::ServerBuilder& builder, const HostPort& listen) {
    int port = 0;
    builder.AddListeningPort(absl::StrCat(listen.host, ":", listen.port),
                             grpc::InsecureServerCredentials(), &port);
    server_ = builder.BuildAndStart();
    return port;
  }
  // As Start, behind a gate that examines connections first.
  int StartBehindGate(grpc::ServerBuilder& builder, const HostPort& listen) {
    using Type = grpc::ServerBuilder::experimental_type::ExternalConnectionType;
    std::string why;
    FileDescriptor listener = ListenAt(listen, why);
    if (!listener.valid()) return 0;
    const int port = PortOf(listener);
    absl::StatusOr<std::unique_ptr<ConnectionGate>> gate = ConnectionGate::Create(
        std::move(listener), door_.keys(), door_.refusals(), door_.strangers());
    if (!gate.ok()) return 0;
    const bool encrypts = door_.keys().mode == SecurityConfig::CURVE;
    ConnectionGate::Acceptor of_members = builder.experimental().AddExternalConnectionAcceptor(
        Type::FROM_FD,
        encrypts ? TlsServerCredentialsOf(door_.keys()) : grpc::InsecureServerCredentials());
    server_ = builder.BuildAndStart();
    if (server_ == nullptr) return 0;
    ConnectionGate::Acceptor of_strangers = encrypts ? StartForStrangers() : nullptr;
    if (encrypts && of_strangers == nullptr) return 0;
    gate_ = *std::move(gate);
    if (encrypts) {
      gate_->Open(std::move(of_strangers), std::move(of_members));
    } else {
      gate_->Open(std::move(of_members), nullptr);
    }
    return port;
  }
  // With encrypting members, a clear-text peer is not a member. A separate server tells it so,
  // which takes no resources of the members' server.
  ConnectionGate::Acceptor StartForStrangers() {
    using Type = grpc::ServerBuilder::experimental_type::ExternalConnectionType;
    grpc::ServerBuilder builder;
    SetBounds(kOfStrangers, builder);
    builder.RegisterService(&refusing_handlers_);
    ConnectionGate::Acceptor acceptor = builder.experimental().AddExternalConnectionAcceptor(
        Type::FROM_FD, grpc::InsecureServerCredentials());
    refusing_server_ = builder.BuildAndStart();
    return refusing_server_ == nullptr ? nullptr : std::move(acceptor);
  }

  Door door_;
  Handlers handlers_;
  Handlers refusing_handlers_;
  PresenceService presence_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<grpc::Server> refusing_server_;
  std::unique_ptr<ConnectionGate> gate_;
  std::string address_;
};

absl::Status CheckCanListen(const HostPort& listen) {
  std::string why;
  ListenAt(listen, why);
  return why.empty() ? absl::OkStatus() : CannotListen(listen, why);
}

absl::StatusOr<std::unique_ptr<ControlService>> ControlService::Start(CoordinatorOptions options,
                                                                      const HostPort& listen,
                                                                      const JobKeys& keys) {
  return Start(std::make_unique<Coordinator>(std::move(options)), nullptr, listen, keys);
}

absl::StatusOr<std::unique_ptr<ControlService>> ControlService::Start(
    std::unique_ptr<Coordinator> coordinator, Journal* journal, const HostPort& listen,
    const JobKeys& keys) {
  auto machine = std::make_unique<Machine>(std::move(coordinator), journal);
  auto listener = std::make_unique<Listener>(*machine, listen, keys);
  if (!listener->listening()) {
    RETURN_IF_ERROR(CheckCanListen(listen));
    return CannotListen(listen, "refused by gRPC");
  }
  return std::unique_ptr<ControlService>(
      new ControlService(std::move(machine), std::move(listener)));
}

ControlService::ControlService(std::unique_ptr<Machine> machine, std::unique_ptr<Listener> listener)
    : machine_(std::move(machine)), listener_(std::move(listener)) {}

// Members are destroyed in reverse order: the listener first.
ControlService::~ControlService() = default;

const std::string& ControlService::address() const { return listener_->address(); }

std::vector<Action> ControlService::NextActions(absl::Duration timeout) {
  return machine_->NextActions(timeout);
}

void ControlService::OnCheckpointCommitted(uint64_t version, const absl::Status& status) {
  machine_->Tell(&Coordinator::OnCheckpointCommitted, version, status);
}

void ControlService::OnStepsPredicted(uint32_t round, std::vector<double> seconds) {
  machine_->Feed([&](Coordinator& coordinator, absl::Time) {
    coordinator.OnStepsPredicted(round, std::move(seconds));
    return 0;
  });
}

void ControlService::OnTrouble(const std::string& what) {
  machine_->Tell(&Coordinator::OnTrouble, what);
}

void ControlService::SetPage(const std::string& url) { machine_->SetPage(url); }

StatusReply ControlService::Status() { return machine_->Status(); }

StopReply ControlService::Stop() {
  return machine_->Feed(
      [](Coordinator& coordinator, absl::Time now) { return coordinator.OnStop(now); });
}

}  // namespace tug
