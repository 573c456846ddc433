// SPDX-License-Identifier: Apache-2.0
#include "transport/simulated/simulated_network.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/philox.h"

namespace tug {
namespace {

Lease CopyOf(std::span<const std::byte> bytes) {
  if (bytes.empty()) return Lease();
  auto copy = std::make_shared<AlignedBuffer>(bytes.size());
  std::memcpy(copy->data(), bytes.data(), bytes.size());
  return Lease(copy, std::span<const std::byte>(copy->data(), copy->size_bytes()));
}

}  // namespace

struct SimulatedTransport::Packet {
  uint64_t number = 0;
  PeerId to = 0;
  WireHeader as_given;
  std::array<std::byte, kHeaderBytes> header;
  Lease payload;  // our copy
  Lease held;     // the sender's bytes, until the first arrival
  uint64_t checksum = 0;

  // A real network reads the sender's bytes until about this time.
  void ReleaseSender() {
    if (held.size_bytes() == 0) return;
    TUG_CHECK_EQ(PayloadChecksum(held.bytes()), checksum)
        << "payload to " << PeerName(to) << " was changed before its lease was released";
    held = Lease();
  }
};

SimulatedTransport::SimulatedTransport(SimulatedNetwork& network, PeerId self,
                                       std::function<void()> on_ready)
    : network_(network),
      self_(self),
      on_ready_(std::move(on_ready)),
      admission_(self, kMaxPayloadBytes) {}

SimulatedTransport::~SimulatedTransport() { network_.Forget(self_); }

absl::Status SimulatedTransport::Connect(PeerId peer, const std::string& endpoint) {
  if (endpoint.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("cannot connect to ", PeerName(peer), ": its endpoint is empty"));
  }
  connected_to_.insert(peer);
  return absl::OkStatus();
}

absl::Status SimulatedTransport::Send(Outgoing message) {
  TUG_CHECK_LE(message.payload.size_bytes(), kMaxPayloadBytes) << "to " << PeerName(message.to);
  const SimulatedTransport* const other = network_.Find(message.to);
  const bool connected_to_us = other != nullptr && other->connected_to_.contains(self_);
  if (!connected_to_us && !connected_to_.contains(message.to)) {
    return absl::NotFoundError(absl::StrCat(
        PeerName(message.to), " is not reachable: it has not connected, or has disconnected"));
  }
  ++counters_.sent_messages;
  counters_.sent_bytes += kHeaderBytes + message.payload.size_bytes();
  network_.Carry(self_, std::move(message));
  return absl::OkStatus();
}

void SimulatedTransport::Poll(absl::Duration, const std::function<void(Message)>& handler) {
  for (int i = 0; i < kMaxBatch && !inbox_.empty(); ++i) {
    const Mail mail = std::move(inbox_.front());
    inbox_.pop_front();
    const std::optional<WireHeader> header =
        admission_.Admit(mail.from, mail.packet->header, mail.packet->payload.bytes());
    if (!header.has_value()) continue;
    ++counters_.received_messages;
    counters_.received_bytes += kHeaderBytes + mail.packet->payload.size_bytes();
    handler(Message{*header, mail.packet->payload});
  }
}

void SimulatedTransport::Wake() {
  network_.time_.Schedule(absl::ZeroDuration(), [&network = network_, self = self_] {
    if (const SimulatedTransport* woken = network.Find(self); woken != nullptr) woken->on_ready_();
  });
}

TransportCounters SimulatedTransport::counters() const {
  TransportCounters counters = counters_;
  counters.dropped = admission_.dropped();
  return counters;
}

SimulatedNetwork::SimulatedNetwork(uint64_t seed, Options options, SimulatedTime& time)
    : seed_(seed), time_(time) {
  set_options(options);
}

SimulatedNetwork::~SimulatedNetwork() {
  TUG_CHECK(endpoints_.empty()) << PeerName(endpoints_.begin()->first) << " outlives its network";
}

void SimulatedNetwork::set_options(const Options& options) {
  TUG_CHECK_GE(options.min_delay, absl::ZeroDuration());
  TUG_CHECK_LE(options.min_delay, options.max_delay);
  options_ = options;
}

std::unique_ptr<SimulatedTransport> SimulatedNetwork::NewEndpoint(PeerId self,
                                                                  std::function<void()> on_ready) {
  std::unique_ptr<SimulatedTransport> endpoint(
      new SimulatedTransport(*this, self, std::move(on_ready)));
  TUG_CHECK(endpoints_.emplace(self, endpoint.get()).second) << PeerName(self) << " exists";
  return endpoint;
}

SimulatedTransport* SimulatedNetwork::Find(PeerId peer) const {
  const auto found = endpoints_.find(peer);
  return found == endpoints_.end() ? nullptr : found->second;
}

SimulatedNetwork::Fate SimulatedNetwork::FateOf(uint64_t message) const {
  const std::array<uint32_t, 4> random =
      Philox4x32({static_cast<uint32_t>(message), static_cast<uint32_t>(message >> 32), 0, 0},
                 {static_cast<uint32_t>(seed_), static_cast<uint32_t>(seed_ >> 32)});
  const int64_t min_ns = absl::ToInt64Nanoseconds(options_.min_delay);
  const int64_t range_ns = absl::ToInt64Nanoseconds(options_.max_delay) - min_ns + 1;
  const auto delay = [&](uint32_t bits) {
    // Integer arithmetic gives the same result on every machine.
    return absl::Nanoseconds(
        min_ns + static_cast<int64_t>((static_cast<unsigned __int128>(bits) * range_ns) >> 32));
  };
  return {.delay = delay(random[0]),
          .repeat_delay = delay(random[1]),
          .repeated = UniformFromBits(random[2]) < options_.repeat_probability,
          .lost = UniformFromBits(random[3]) < options_.drop_probability};
}

void SimulatedNetwork::Carry(PeerId from, Outgoing message) {
  auto packet = std::make_shared<SimulatedTransport::Packet>();
  packet->number = next_message_++;
  packet->to = message.to;
  packet->as_given = message.header;
  const std::span<const std::byte> bytes = message.payload.bytes();
  SealHeader(from, bytes, /*checksum=*/true, message.header, packet->header);
  if (!bytes.empty()) {
    packet->payload = CopyOf(bytes);
    packet->checksum = PayloadChecksum(bytes);
  }
  packet->held = std::move(message.payload);

  const Fate fate = FateOf(packet->number);
  Trace(Event::kSent, from, *packet);
  if (fate.lost || (cut_ && cut_(from, packet->to, packet->as_given.kind))) {
    Trace(Event::kLost, from, *packet);
    time_.Schedule(fate.delay, [packet] { packet->ReleaseSender(); });
    return;
  }
  time_.Schedule(fate.delay, [this, from, packet] { Arrive(from, packet); });
  if (!fate.repeated) return;
  Trace(Event::kRepeated, from, *packet);
  // The repeat has its own copy of the payload: a receiver may write its message.
  auto repeat = std::make_shared<SimulatedTransport::Packet>(*packet);
  repeat->payload = CopyOf(packet->payload.bytes());
  repeat->held = Lease();
  time_.Schedule(fate.repeat_delay, [this, from, repeat] { Arrive(from, repeat); });
}

void SimulatedNetwork::Arrive(PeerId from,
                              const std::shared_ptr<SimulatedTransport::Packet>& packet) {
  packet->ReleaseSender();
  if (cut_ && cut_(from, packet->to, packet->as_given.kind))
    return Trace(Event::kLost, from, *packet);
  SimulatedTransport* const to = Find(packet->to);
  Trace(to == nullptr ? Event::kNobodyThere : Event::kDelivered, from, *packet);
  if (to == nullptr) return;
  to->inbox_.push_back({from, packet});
  to->on_ready_();
}

void SimulatedNetwork::Trace(Event event, PeerId from,
                             const SimulatedTransport::Packet& packet) const {
  if (trace_ == nullptr) return;
  trace_({time_.Now(), event, packet.number, from, packet.to, packet.as_given});
}

}  // namespace tug
