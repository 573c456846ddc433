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

inline constexpr RowText kWaitingBytes = {"tug_queue_waiting_bytes", MetricType::kGauge, "bytes",
                                          "lane",
                                          "Payload bytes queued for sending, waiting for priority "
                                          "and credit: a worker's pushes, a lane's weights"};

inline constexpr RowText kOutstandingBytes = {
    "tug_queue_outstanding_bytes", MetricType::kGauge, "bytes", "lane",
    "Payload bytes sent and not acknowledged: a worker's pushes, a lane's weights"};

inline constexpr RowText kPeakOutstandingBytes = {
    "tug_queue_most_outstanding_bytes", MetricType::kGauge, "bytes", "lane",
    "Peak payload bytes sent and not acknowledged; per lane, to one worker"};

inline constexpr RowText kSocketBytes = {
    "tug_socket_bytes_total", MetricType::kCounter, "bytes", "lane",
    "Bytes sent through sockets, headers included; excludes shared memory"};

inline constexpr RowText kSentBytes = {
    "tug_sent_bytes_total", MetricType::kCounter, "bytes", "lane",
    "Bytes of messages sent, headers and shared memory included"};

inline constexpr RowText kReceivedBytes = {
    "tug_received_bytes_total", MetricType::kCounter, "bytes", "lane",
    "Bytes of messages received, headers and shared memory included"};

inline constexpr RowText kDroppedMessages = {"tug_messages_dropped_total", MetricType::kCounter,
                                             "messages", "lane",
                                             "Malformed or hostile messages, dropped"};

inline constexpr RowText kRefusedMessages = {"tug_messages_refused_total", MetricType::kCounter,
                                             "messages", "lane",
                                             "Messages of an old view or timeline, refused"};

inline constexpr RowText kDroppedPushes = {
    "tug_pushes_dropped_total", MetricType::kCounter, "messages", "lane",
    "Pushes that arrived too late for their update (sync.policy BACKUP)"};

inline constexpr RowText kDeferredPushes = {"tug_pushes_deferred_total", MetricType::kCounter,
                                            "messages", "lane",
                                            "Pushes deferred for lack of memory in a lane"};

inline constexpr RowText kHeldBytes = {
    "tug_held_bytes", MetricType::kGauge, "bytes", "kind",
    "Peak memory held for training, by kind: weights, gradients, optimizer state, sums, cached "
    "weights of other lanes, memory shared with other processes"};

inline constexpr RowText kPredictedHeldBytes = {
    "tug_predicted_held_bytes", MetricType::kGauge, "bytes", "",
    "Predicted tug_held_bytes, sum of all kinds except shared memory"};

}  // namespace tug::shared_rows

#endif  // TUG_METRICS_SHARED_ROWS_H_
