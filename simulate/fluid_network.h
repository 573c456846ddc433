#ifndef TUG_SIMULATE_FLUID_NETWORK_H_
#define TUG_SIMULATE_FLUID_NETWORK_H_

// One direction of a network in virtual time: links with a rate, connections that cross two of them
// (their sender's, their receiver's), messages that leave a connection in the order they were sent.
// Connections share links as long-lived TCP streams do on average: max-min fairly (Bertsekas and
// Gallager 1992, section 6.5.2), so none gets more while one that has less could have more. Rates
// change only when a connection begins or ends to have something to send.
//
// Many connections that are alike at all times are one here, with a weight: how many of them a link
// carries.

#include <cstdint>
#include <deque>
#include <vector>

namespace tug {

// Pure. Not thread-safe.
class FluidNetwork {
 public:
  using Link = uint32_t;
  using Connection = uint32_t;
  struct Arrival {
    Connection connection = 0;
    uint64_t message = 0;
  };

  // REQUIRES: more than 0.
  Link AddLink(double bytes_per_second);
  Connection Connect(Link from, uint32_t weight_from, Link to, uint32_t weight_to);

  // At the time of the last Advance. REQUIRES: bytes > 0.
  void Send(Connection connection, double bytes, uint64_t message);
  // When the next message is through; infinite if there is none.
  double NextTime();
  // Goes on to `time`, appends what is through by then. REQUIRES: no earlier than the last Advance,
  // no later than NextTime().
  void Advance(double time, std::vector<Arrival>& arrivals);

  // Of one of the connections that are alike.
  double rate(Connection connection);

 private:
  struct Message {
    double bytes = 0;
    uint64_t name = 0;
  };
  struct Stream {
    Link from = 0;
    Link to = 0;
    double weight_from = 1;
    double weight_to = 1;
    double left = 0;  // bytes of the first message
    double rate = 0;
    bool shared = false;  // scratch of Share: has its rate
    std::deque<Message> messages;
  };

  void Share();
  // Bytes a second that a link has for each of the connections that have no rate yet.
  double LevelOf(Link link) const { return residual_[link] / weight_[link]; }

  std::vector<double> links_;  // bytes a second
  std::vector<Stream> streams_;
  std::vector<Connection> active_;  // those with messages, ascending
  bool changed_ = false;            // active_, since Share
  double now_ = 0;
  double next_time_ = 0;
  bool next_known_ = false;
  std::vector<double> residual_;  // scratch of Share, by link
  std::vector<double> weight_;
};

}  // namespace tug

#endif  // TUG_SIMULATE_FLUID_NETWORK_H_
