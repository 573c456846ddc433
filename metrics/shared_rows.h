#ifndef TUG_METRICS_SHARED_ROWS_H_
#define TUG_METRICS_SHARED_ROWS_H_

#include "metrics/metric_row.h"

// Rows that workers and servers both have: name, type, unit, label and help, without what reads
// them.
namespace tug::shared_rows {

template <typename Figures>
using Read = void (*)(const Figures&, MetricSamples&);

template <typename Figures>
constexpr MetricRow<Figures> WaitingBytes(Read<Figures> read) {
  return {"tug_queue_waiting_bytes",
          MetricType::kGauge,
          "bytes",
          "lane",
          "Payloads that wait for their turn and for credit: a worker's pushes, a lane's weights",
          read};
}

template <typename Figures>
constexpr MetricRow<Figures> OutstandingBytes(Read<Figures> read) {
  return {"tug_queue_outstanding_bytes",
          MetricType::kGauge,
          "bytes",
          "lane",
          "Payloads sent and not known to be received: a worker's pushes, a lane's weights",
          read};
}

template <typename Figures>
constexpr MetricRow<Figures> MostOutstandingBytes(Read<Figures> read) {
  return {"tug_queue_most_outstanding_bytes",
          MetricType::kGauge,
          "bytes",
          "lane",
          "The most at a time; of a lane, to one worker",
          read};
}

template <typename Figures>
constexpr MetricRow<Figures> SocketBytes(Read<Figures> read) {
  return {"tug_socket_bytes_total",
          MetricType::kCounter,
          "bytes",
          "lane",
          "Given to sockets, headers included: all that is sent but through shared memory",
          read};
}

template <typename Figures>
constexpr MetricRow<Figures> SentBytes(Read<Figures> read) {
  return {"tug_sent_bytes_total",
          MetricType::kCounter,
          "bytes",
          "lane",
          "Messages sent, headers included, through shared memory too",
          read};
}

template <typename Figures>
constexpr MetricRow<Figures> ReceivedBytes(Read<Figures> read) {
  return {"tug_received_bytes_total",
          MetricType::kCounter,
          "bytes",
          "lane",
          "Messages received, headers included, through shared memory too",
          read};
}

template <typename Figures>
constexpr MetricRow<Figures> DroppedMessages(Read<Figures> read) {
  return {"tug_messages_dropped_total",
          MetricType::kCounter,
          "messages",
          "lane",
          "Malformed or hostile messages, dropped",
          read};
}

template <typename Figures>
constexpr MetricRow<Figures> RefusedMessages(Read<Figures> read) {
  return {"tug_messages_refused_total",
          MetricType::kCounter,
          "messages",
          "lane",
          "Messages of an old view or timeline, refused",
          read};
}

template <typename Figures>
constexpr MetricRow<Figures> DroppedPushes(Read<Figures> read) {
  return {"tug_pushes_dropped_total",
          MetricType::kCounter,
          "messages",
          "lane",
          "Pushes that came too late for their update (sync.policy BACKUP)",
          read};
}

template <typename Figures>
constexpr MetricRow<Figures> DeferredPushes(Read<Figures> read) {
  return {"tug_pushes_deferred_total",
          MetricType::kCounter,
          "messages",
          "lane",
          "Pushes that a lane had no memory for yet",
          read};
}

template <typename Figures>
constexpr MetricRow<Figures> HeldBytes(Read<Figures> read) {
  return {"tug_held_bytes",
          MetricType::kGauge,
          "bytes",
          "kind",
          "Held for training, the most at a time: weights, gradients, optimizer state, sums, "
          "weights cached for others, memory shared with other processes",
          read};
}

template <typename Figures>
constexpr MetricRow<Figures> PredictedHeldBytes(Read<Figures> read) {
  return {"tug_predicted_held_bytes",
          MetricType::kGauge,
          "bytes",
          "",
          "What the formulas say of all that, but for shared memory",
          read};
}

}  // namespace tug::shared_rows

#endif  // TUG_METRICS_SHARED_ROWS_H_
