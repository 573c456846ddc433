// SPDX-License-Identifier: Apache-2.0
#include "prediction/chunk_network.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "base/philox.h"

namespace tug {
namespace {

// Mean time that a connection keeps a window: each is kept for half to one and a half of it. TCP
// grows back over many round trips, each of about a queue's 20 ms here.
constexpr double kWindowSeconds = 1;

}  // namespace

ChunkNetwork::Link ChunkNetwork::AddSender() {
  senders_.emplace_back();
  return static_cast<Link>(senders_.size() - 1);
}

ChunkNetwork::Link ChunkNetwork::AddReceiver() {
  receivers_.emplace_back();
  return static_cast<Link>(receivers_.size() - 1);
}

ChunkNetwork::Connection ChunkNetwork::Connect(Link sender, uint32_t sender_weight, Link receiver,
                                               uint32_t receiver_weight) {
  receivers_[receiver].connections += receiver_weight;
  streams_.push_back({.sender = sender,
                      .receiver = receiver,
                      .sender_weight = static_cast<double>(sender_weight),
                      .receiver_weight = static_cast<double>(receiver_weight)});
  return static_cast<Connection>(streams_.size() - 1);
}

void ChunkNetwork::Send(Connection connection, double bytes, uint64_t message) {
  TUG_CHECK(bytes > 0);
  Stream& stream = streams_[connection];
  stream.messages.push_back({bytes, message});
  if (stream.messages.size() > 1) return;  // already has its turn
  senders_[stream.sender].turns.push_back(connection);
  StartSender(stream.sender);
}

double ChunkNetwork::NextTime() const {
  return events_.empty() ? std::numeric_limits<double>::infinity() : events_.top().time;
}

void ChunkNetwork::Advance(double time, std::vector<uint64_t>& through) {
  TUG_CHECK(time >= now_);
  now_ = time;
  while (!events_.empty() && events_.top().time <= now_) {
    const Event event = events_.top();
    events_.pop();
    if (event.at_sender) {
      OnSent(event.link);
    } else {
      OnReceived(event.link, through);
    }
  }
}

void ChunkNetwork::At(double seconds, bool at_sender, Link link) {
  events_.push({now_ + seconds, event_count_++, at_sender, link});
}

double ChunkNetwork::Window(Connection connection) {
  Stream& stream = streams_[connection];
  if (now_ < stream.window_until) return stream.window;
  const auto random = Philox4x32({connection, stream.windows_drawn++, 0, 0}, {0, 0});
  const double exponent = 2.0 * UniformFromBits(random[0]) - 1;
  stream.window = std::max(queue_bytes() / receivers_[stream.receiver].connections *
                               std::pow(options_.unevenness, exponent),
                           2 * options_.chunk_bytes);
  stream.window_until = now_ + kWindowSeconds * (0.5 + UniformFromBits(random[1]));
  return stream.window;
}

// A chunk always fits if nothing else is in flight.
bool ChunkNetwork::FitsWindow(Connection connection, double bytes) {
  const double under_way = streams_[connection].under_way;
  return under_way == 0 || under_way + bytes <= Window(connection);
}

bool ChunkNetwork::FitsQueue(const Stream& stream, double bytes) const {
  const double queued = receivers_[stream.receiver].queued_bytes;
  const double room = std::max(queue_bytes(), 2 * options_.chunk_bytes * stream.receiver_weight);
  return queued == 0 || queued + bytes * stream.receiver_weight <= room;
}

// A connection with a full window continues when one of its chunks has arrived; a sender that found
// a full queue, when a chunk of another connection has (OnReceived).
void ChunkNetwork::StartSender(Link link) {
  Sender& sender = senders_[link];
  if (sender.busy) return;
  for (size_t tried = 0; tried < sender.turns.size(); ++tried) {
    const Connection connection = sender.turns.front();
    sender.turns.pop_front();
    Stream& stream = streams_[connection];
    Message& message = stream.messages.front();
    const double bytes = std::min(message.left, options_.chunk_bytes);
    const bool fits_window = FitsWindow(connection, bytes);
    if (!fits_window || !FitsQueue(stream, bytes)) {
      if (fits_window) Wait(link, receivers_[stream.receiver]);
      sender.turns.push_back(connection);
      continue;
    }
    message.left -= bytes;
    sender.chunk = {connection, bytes, message.left <= 0, message.name};
    if (sender.chunk.last) stream.messages.pop_front();
    if (!stream.messages.empty()) sender.turns.push_back(connection);
    stream.under_way += bytes;
    receivers_[stream.receiver].queued_bytes += bytes * stream.receiver_weight;
    sender.busy = true;
    return At(bytes * stream.sender_weight / options_.link_bytes_per_second, true, link);
  }
}

void ChunkNetwork::Wait(Link sender, Receiver& receiver) {
  std::deque<Link>& waiting = receiver.waiting;
  if (std::find(waiting.begin(), waiting.end(), sender) == waiting.end()) waiting.push_back(sender);
}

void ChunkNetwork::OnSent(Link link) {
  Sender& sender = senders_[link];
  const Link receiver = streams_[sender.chunk.connection].receiver;
  receivers_[receiver].queue.push_back(sender.chunk);
  sender.busy = false;
  StartReceiver(receiver);
  StartSender(link);
}

void ChunkNetwork::StartReceiver(Link link) {
  Receiver& receiver = receivers_[link];
  if (receiver.busy || receiver.queue.empty()) return;
  receiver.busy = true;
  const Chunk& chunk = receiver.queue.front();
  At(chunk.bytes * streams_[chunk.connection].receiver_weight / options_.link_bytes_per_second,
     false, link);
}

void ChunkNetwork::OnReceived(Link link, std::vector<uint64_t>& through) {
  Receiver& receiver = receivers_[link];
  const Chunk chunk = receiver.queue.front();
  Stream& stream = streams_[chunk.connection];
  receiver.queue.pop_front();
  receiver.busy = false;
  stream.under_way = std::max(stream.under_way - chunk.bytes, 0.0);
  receiver.queued_bytes =
      std::max(receiver.queued_bytes - chunk.bytes * stream.receiver_weight, 0.0);
  if (chunk.last) through.push_back(chunk.message);
  StartReceiver(link);
  StartSender(stream.sender);
  // Ends at the first sender that finds no room and so waits again: then the queue has chunks.
  for (size_t waiting = receiver.waiting.size(); waiting > 0; --waiting) {
    const Link sender = receiver.waiting.front();
    receiver.waiting.pop_front();
    StartSender(sender);
    if (!receiver.waiting.empty() && receiver.waiting.back() == sender) break;
  }
}

}  // namespace tug
