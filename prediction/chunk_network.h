// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_PREDICTION_CHUNK_NETWORK_H_
#define TUG_PREDICTION_CHUNK_NETWORK_H_

// A network in virtual time: hosts' links to and from a switch, connections between them, and
// messages that a connection carries in the order they were sent. Models TCP over links with short
// queues:
//
//   - A message is cut into chunks. A sender's link takes a chunk of each connection in turn.
//   - A receiver's link is a first-come, first-served queue: a small message waits behind the data
//     of other connections. The queue holds what the link carries in `queue_seconds`. While it is
//     full its senders wait, where TCP would lose packets and slow down.
//   - A connection has a window, the limit of its bytes in flight. Windows into a link share its
//     queue, but not evenly, since those that lose packets shrink, and grow again slowly: each is
//     its even share times `unevenness` to the power of a number drawn from -1..1 about every
//     second.
//   - A message is complete when its last chunk has arrived.
//
// One connection may represent many that behave alike at all times: its weight for each link is how
// many of them that link carries.

#include <cstdint>
#include <deque>
#include <functional>
#include <queue>
#include <vector>

namespace tug {

// Pure; random draws are a function of the connection and their number. Not thread-safe.
class ChunkNetwork {
 public:
  using Link = uint32_t;
  using Connection = uint32_t;

  // All positive.
  struct Options {
    double link_bytes_per_second = 0;  // per link
    double queue_seconds = 0;          // at least two chunks fit; a window has at least two
    double unevenness = 1;             // at least 1, which is even
    double chunk_bytes = 8192;
  };
  explicit ChunkNetwork(Options options) : options_(options) {}

  Link AddSender();
  Link AddReceiver();
  // REQUIRES: nothing has been sent.
  Connection Connect(Link sender, uint32_t sender_weight, Link receiver, uint32_t receiver_weight);

  // Sends at the time of the last Advance. REQUIRES: bytes > 0.
  void Send(Connection connection, double bytes, uint64_t message);
  // Time of the next event; infinite if nothing is in flight.
  double NextTime() const;
  // Advances to `time`, and appends the messages complete by then. REQUIRES: no earlier than the
  // last Advance, no later than NextTime().
  void Advance(double time, std::vector<uint64_t>& through);

 private:
  struct Message {
    double left = 0;  // bytes not taken by the sender's link
    uint64_t name = 0;
  };
  struct Stream {
    Link sender = 0;
    Link receiver = 0;
    double sender_weight = 1;
    double receiver_weight = 1;
    std::deque<Message> messages;
    double under_way = 0;  // bytes of chunks in flight
    double window = 0;
    double window_until = 0;
    uint32_t windows_drawn = 0;
  };
  struct Chunk {
    Connection connection = 0;
    double bytes = 0;
    bool last = false;  // of its message
    uint64_t message = 0;
  };
  struct Sender {
    std::deque<Connection> turns;  // connections with messages to send
    bool busy = false;
    Chunk chunk;  // while busy
  };
  struct Receiver {
    double connections = 0;   // weighted
    std::deque<Chunk> queue;  // the first is being received, while busy
    double queued_bytes = 0;  // including those being sent
    bool busy = false;
    std::deque<Link> waiting;  // senders that found the queue full
  };
  struct Event {
    double time = 0;
    uint64_t order = 0;
    bool at_sender = false;
    Link link = 0;
    friend bool operator>(const Event& a, const Event& b) {
      return a.time != b.time ? a.time > b.time : a.order > b.order;
    }
  };

  double queue_bytes() const { return options_.queue_seconds * options_.link_bytes_per_second; }
  double Window(Connection connection);
  bool FitsWindow(Connection connection, double bytes);
  bool FitsQueue(const Stream& stream, double bytes) const;
  void StartSender(Link link);
  static void Wait(Link sender, Receiver& receiver);
  void StartReceiver(Link link);
  void OnSent(Link link);
  void OnReceived(Link link, std::vector<uint64_t>& through);
  void At(double seconds, bool at_sender, Link link);

  const Options options_;
  std::vector<Sender> senders_;
  std::vector<Receiver> receivers_;
  std::vector<Stream> streams_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  uint64_t event_count_ = 0;
  double now_ = 0;
};

}  // namespace tug

#endif  // TUG_PREDICTION_CHUNK_NETWORK_H_
