// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_METRICS_SHARED_ROWS_H_
#define TUG_METRICS_SHARED_ROWS_H_

#include "metrics/metric_row.h"

// Rows common to workers and servers, without their read functions.
namespace tug::shared_rows {

// The fields of MetricRow except `read`.
struct RowText {
  const char* name;
  MetricType type;
  const char* unit;
  const char* label;
  const char* help;
};

template <typename Figures>
constexpr MetricRow<Figures> Row(const RowText& text,
                                 void (*read)(const Figures&, MetricSamples&)) {
  return {text.name, text.type, text.unit, text.label, text.help, read};
}

inline constexpr RowText kWaitingBytes = {
    "tug_queue_waiting_bytes", MetricType::kGauge, "bytes", "lane",
    "Payloads that wait for their turn and for credit: a worker's pushes, a lane's weights"};

inline constexpr RowText kOutstandingBytes = {
    "tug_queue_outstanding_bytes", MetricType::kGauge, "bytes", "lane",
    "Payloads sent and not known to be received: a worker's pushes, a lane's weights"};

inline constexpr RowText kMostOutstandingBytes = {"tug_queue_most_outstanding_bytes",
                                                  MetricType::kGauge, "bytes", "lane",
                                                  "The most at a time; of a lane, to one worker"};

inline constexpr RowText kSocketBytes = {
    "tug_socket_bytes_total", MetricType::kCounter, "bytes", "lane",
    "Given to sockets, headers included: all that is sent but through shared memory"};

inline constexpr RowText kSentBytes = {
    "tug_sent_bytes_total", MetricType::kCounter, "bytes", "lane",
    "Messages sent, headers included, through shared memory too"};

inline constexpr RowText kReceivedBytes = {
    "tug_received_bytes_total", MetricType::kCounter, "bytes", "lane",
    "Messages received, headers included, through shared memory too"};

inline constexpr RowText kDroppedMessages = {"tug_messages_dropped_total", MetricType::kCounter,
                                             "messages", "lane",
                                             "Malformed or hostile messages, dropped"};

inline constexpr RowText kRefusedMessages = {"tug_messages_refused_total", MetricType::kCounter,
                                             "messages", "lane",
                                             "Messages of an old view or timeline, refused"};

inline constexpr RowText kDroppedPushes = {
    "tug_pushes_dropped_total", MetricType::kCounter, "messages", "lane",
    "Pushes that came too late for their update (sync.policy BACKUP)"};

inline constexpr RowText kDeferredPushes = {"tug_pushes_deferred_total", MetricType::kCounter,
                                            "messages", "lane",
                                            "Pushes that a lane had no memory for yet"};

inline constexpr RowText kHeldBytes = {
    "tug_held_bytes", MetricType::kGauge, "bytes", "kind",
    "Held for training, the most at a time: weights, gradients, optimizer state, sums, "
    "weights cached for others, memory shared with other processes"};

inline constexpr RowText kPredictedHeldBytes = {
    "tug_predicted_held_bytes", MetricType::kGauge, "bytes", "",
    "What the formulas say of all that, but for shared memory"};

}  // namespace tug::shared_rows

#endif  // TUG_METRICS_SHARED_ROWS_H_
