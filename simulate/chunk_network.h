#ifndef TUG_SIMULATE_CHUNK_NETWORK_H_
#define TUG_SIMULATE_CHUNK_NETWORK_H_

// A network in virtual time: hosts' links to and from a switch, connections from one to another,
// messages that a connection carries in the order they were sent. As TCP does it over links with
// short queues:
//
//   - A message is cut into chunks. A sender's link takes a chunk of each connection in turn.
//   - A receiver's link is a queue, first come first served: a small message waits behind what
//     other connections have brought. It holds what the link carries in `queue_seconds`. While it
//     is full its senders wait, where TCP would lose packets and slow down.
//   - A connection has a window: so much is between its ends at most. Windows into a link share its
//     queue, but not evenly, since those that lose packets shrink, and grow again slowly: each is
//     its even share x `unevenness` to the power of a number drawn from -1..1 about every second.
//   - A message is through when its last chunk is.
//
// One connection may stand for many that are alike at all times, by a weight for each link: how
// many of them it carries.

#include <cstdint>
#include <deque>
#include <functional>
#include <queue>
#include <vector>

namespace tug {

// Pure; what is drawn is a function of the connection and how often. Not thread-safe.
class ChunkNetwork {
 public:
  using Link = uint32_t;
  using Connection = uint32_t;

  // All positive.
  struct Options {
    double link_bytes_per_second = 0;  // of every link
    double queue_seconds = 0;          // two chunks fit at least; two are in a window at least
    double unevenness = 1;             // at least 1: even
    double chunk_bytes = 8192;
  };
  explicit ChunkNetwork(Options options) : options_(options) {}

  Link AddSender();
  Link AddReceiver();
  // REQUIRES: nothing has been sent.
  Connection Connect(Link sender, uint32_t sender_weight, Link receiver, uint32_t receiver_weight);

  // At the time of the last Advance. REQUIRES: bytes > 0.
  void Send(Connection connection, double bytes, uint64_t message);
  // When something happens next; infinite if nothing is on its way.
  double NextTime() const;
  // Goes on to `time`, and appends the messages that are through by then. REQUIRES: no earlier than
  // the last Advance, no later than NextTime().
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
    double under_way = 0;  // bytes of chunks
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
    std::deque<Connection> turns;  // connections that have something
    bool busy = false;
    Chunk chunk;  // while busy
  };
  struct Receiver {
    double connections = 0;   // weighed
    std::deque<Chunk> queue;  // the first is being taken in, while busy
    double queued_bytes = 0;  // with those that senders are at
    bool busy = false;
    std::deque<Link> waiting;  // senders that found no room
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

#endif  // TUG_SIMULATE_CHUNK_NETWORK_H_
