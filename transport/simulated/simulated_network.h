// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_TRANSPORT_SIMULATED_SIMULATED_NETWORK_H_
#define TUG_TRANSPORT_SIMULATED_SIMULATED_NETWORK_H_

// A network in virtual time, for lab/simulate/ and for tests of code that runs over a Transport. It
// delays each message by its own random time (so messages overtake each other), repeats some and
// loses some. The outcome of the n-th message is a function of (seed, n): a run replays from its
// seed.
//
//   SimulatedTime time;
//   SimulatedNetwork network(seed, {}, time);
//   auto lane = network.NewEndpoint(LanePeer(0), [&] { lane_has_mail = true; });
//   auto worker = network.NewEndpoint(WorkerPeer(1), ...);
//   worker->Connect(LanePeer(0), "simulated");
//   worker->Send({...});
//   time.RunNext();  // delivers: calls lane's hook; lane->Poll(...) then hands the message over
//
// A message is encoded and copied when sent and checked when received, as over a real network. A
// CHECK fails if leased bytes change before the lease is released.
//
// Single-threaded. The network outlives its endpoints. Do not run the SimulatedTime after the
// network has been destroyed.

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "base/time_source.h"
#include "transport/admission.h"
#include "transport/transport.h"

namespace tug {

class SimulatedNetwork;

// Peers are reachable as over ZmqTransport: a peer given to Connect always (messages to a missing
// endpoint are lost), a peer that connected to us while it exists. Queues are unbounded, so Send
// never returns RESOURCE_EXHAUSTED.
class SimulatedTransport final : public Transport {
 public:
  // The endpoint dies: messages in flight to it are lost.
  ~SimulatedTransport() override;

  // Ignores the endpoint: the PeerId is the address.
  absl::Status Connect(PeerId peer, const std::string& endpoint) override;
  absl::Status Send(Outgoing message) override;
  // Never waits, whatever the timeout: only the owner of the SimulatedTime advances time.
  void Poll(absl::Duration timeout, const std::function<void(Message)>& handler) override;
  // Schedules the endpoint's hook now. Not thread-safe, unlike in a real transport.
  void Wake() override;
  TransportCounters counters() const override;

  // Messages delivered but not yet read by Poll.
  size_t mail() const { return inbox_.size(); }

 private:
  friend class SimulatedNetwork;
  struct Packet;
  struct Mail {
    PeerId from;
    std::shared_ptr<const Packet> packet;
  };

  SimulatedTransport(SimulatedNetwork& network, PeerId self, std::function<void()> on_ready);

  SimulatedNetwork& network_;
  const PeerId self_;
  const std::function<void()> on_ready_;
  std::set<PeerId> connected_to_;
  std::deque<Mail> inbox_;
  Admission admission_;
  TransportCounters counters_;
};

class SimulatedNetwork {
 public:
  struct Options {
    absl::Duration min_delay = absl::Microseconds(50);
    absl::Duration max_delay = absl::Milliseconds(2);
    double repeat_probability = 0.01;  // delivered twice, each time with its own delay
    double drop_probability = 0;
  };

  enum class Event { kSent, kLost, kRepeated, kDelivered, kNobodyThere };
  struct TraceEntry {
    absl::Time at;
    Event event;
    uint64_t message;  // message number, in order of sending
    PeerId from;
    PeerId to;
    WireHeader header;  // as passed to Send
  };

  // `time` outlives the network.
  SimulatedNetwork(uint64_t seed, Options options, SimulatedTime& time);
  ~SimulatedNetwork();
  SimulatedNetwork(const SimulatedNetwork&) = delete;
  SimulatedNetwork& operator=(const SimulatedNetwork&) = delete;

  // `on_ready` is called, within an event of the time, when the endpoint has mail or was woken; it
  // may Poll at once or later. REQUIRES: no current endpoint has this name.
  std::unique_ptr<SimulatedTransport> NewEndpoint(PeerId self, std::function<void()> on_ready);

  // Applies to later messages; those in flight are not affected.
  void set_options(const Options& options);

  // Whether a message of this kind is lost between the two peers; called when it is sent and when
  // it arrives. Empty = never. For temporary cuts of links or losses of one kind of message.
  using Cut = std::function<bool(PeerId from, PeerId to, MessageKind kind)>;
  void set_cut(Cut cut) { cut_ = std::move(cut); }

  // Called at every event; empty = none.
  void set_trace(std::function<void(const TraceEntry&)> trace) { trace_ = std::move(trace); }

  uint64_t sent_messages() const { return next_message_; }

 private:
  friend class SimulatedTransport;
  // Outcome of a message, from four 32-bit random numbers.
  struct Fate {
    absl::Duration delay;
    absl::Duration repeat_delay;
    bool repeated;
    bool lost;
  };

  Fate FateOf(uint64_t message) const;
  SimulatedTransport* Find(PeerId peer) const;
  void Forget(PeerId peer) { endpoints_.erase(peer); }
  void Carry(PeerId from, Outgoing message);
  void Arrive(PeerId from, const std::shared_ptr<SimulatedTransport::Packet>& packet);
  void Trace(Event event, PeerId from, const SimulatedTransport::Packet& packet) const;

  const uint64_t seed_;
  Options options_;
  SimulatedTime& time_;
  std::map<PeerId, SimulatedTransport*> endpoints_;
  uint64_t next_message_ = 0;
  Cut cut_;
  std::function<void(const TraceEntry&)> trace_;
};

}  // namespace tug

#endif  // TUG_TRANSPORT_SIMULATED_SIMULATED_NETWORK_H_
