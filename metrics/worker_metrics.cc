// SPDX-License-Identifier: Apache-2.0
#include "metrics/worker_metrics.h"

#include "metrics/shared_rows.h"

namespace tug {
namespace {

using F = WorkerFigures;
using S = MetricSamples;
using shared_rows::Row;

// Reads a figure of the exchange, which exists only once the worker has built its exchange.
template <auto member>
void Known(const F& figures, S& samples) {
  if (figures.ready) Field<member>(figures, samples);
}

constexpr MetricRow<F> kRows[] = {
    {"tug_step_seconds", MetricType::kHistogram, "seconds", "",
     "Step time of the worker, from the end of the previous step",
     [](const F& f, S& s) { s.Add(f.steps.seconds); }},
    {"tug_compute_seconds_total", MetricType::kCounter, "seconds", "",
     "Time spent in forward and backward passes",
     [](const F& f, S& s) { s.Add(f.steps.compute_seconds); }},
    {"tug_wait_seconds_total", MetricType::kCounter, "seconds", "",
     "Time spent waiting for weights (exposed communication)",
     [](const F& f, S& s) { s.Add(f.steps.wait_seconds); }},
    {"tug_communication_seconds_total", MetricType::kCounter, "seconds", "",
     "Time with at least one push or pull in flight",
     [](const F& f, S& s) { s.Add(f.steps.communication_seconds); }},
    {"tug_straggle_seconds_total", MetricType::kCounter, "seconds", "",
     "Artificial delay by the job's `straggler` settings",
     [](const F& f, S& s) { s.Add(f.steps.straggle_seconds); }},
    {"tug_worker_tokens_total", MetricType::kCounter, "tokens", "",
     "Tokens read by the model, without padding; in a replay, samples",
     [](const F& f, S& s) { s.Add(static_cast<double>(f.steps.tokens)); }},
    {"tug_clock", MetricType::kGauge, "steps", "", "The last step begun, 0-based",
     Field<&F::clock>},
    {"tug_push_bytes_total", MetricType::kCounter, "bytes", "",
     "Payload bytes of gradients pushed, including resent ones", Known<&F::pushed_bytes>},
    {"tug_pull_bytes_total", MetricType::kCounter, "bytes", "", "Payload bytes of weights pulled",
     Known<&F::pulled_bytes>},
    {"tug_encode_seconds_total", MetricType::kCounter, "seconds", "",
     "Time spent encoding pushes (comm.push_codec)", Known<&F::encode_seconds>},
    {"tug_pushes_resent_total", MetricType::kCounter, "messages", "",
     "Pushes and pulls resent, after comm.resend_ms without a reply or in a new view",
     Known<&F::resent>},
    {"tug_messages_lost_total", MetricType::kCounter, "messages", "",
     "Messages dropped because the peer had disconnected", Known<&F::messages_lost>},
    Row<F>(shared_rows::kWaitingBytes, Known<&F::waiting_bytes>),
    Row<F>(shared_rows::kOutstandingBytes, Known<&F::outstanding_bytes>),
    Row<F>(shared_rows::kPeakOutstandingBytes, Known<&F::most_outstanding_bytes>),
    Row<F>(shared_rows::kSocketBytes, Known<&F::socket_bytes>),
    Row<F>(shared_rows::kSentBytes, Known<&F::sent_bytes>),
    Row<F>(shared_rows::kReceivedBytes, Known<&F::received_bytes>),
    Row<F>(shared_rows::kDroppedMessages, Known<&F::messages_dropped>),
    Row<F>(shared_rows::kRefusedMessages, Known<&F::refused>),
    Row<F>(shared_rows::kDroppedPushes, Known<&F::dropped_pushes>),
    Row<F>(shared_rows::kDeferredPushes, Known<&F::deferred>),
    Row<F>(shared_rows::kHeldBytes,
           [](const F& f, S& s) {
             if (!f.ready) return;
             s.Add("weights", static_cast<double>(f.weight_bytes));
             s.Add("gradients", static_cast<double>(f.gradient_bytes));
             s.Add("shared", static_cast<double>(f.shared_bytes));
           }),
    Row<F>(shared_rows::kPredictedHeldBytes, Known<&F::predicted_held_bytes>),
};

}  // namespace

std::span<const MetricRow<WorkerFigures>> WorkerMetrics() { return kRows; }

}  // namespace tug
