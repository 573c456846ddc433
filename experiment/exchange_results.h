#ifndef TUG_EXPERIMENT_EXCHANGE_RESULTS_H_
#define TUG_EXPERIMENT_EXCHANGE_RESULTS_H_

// What `tug experiment exchange` found out, apart from how it is told (exchange_text.h) and drawn
// (exchange_report.h), beside what the alpha-beta model says (exchange_cost.h). Functions are pure
// and thread-safe.

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "experiment/exchange_case.h"
#include "experiment/exchange_cost.h"
#include "experiment/run_figures.h"

namespace tug {

// Over the link of a host, in the whole job, as its network interface counts: all headers, what was
// sent again, and heartbeats are among them.
struct LinkTraffic {
  uint64_t sent_bytes = 0;
  uint64_t received_bytes = 0;
};

// A case on a link, with a model of one size.
struct ExchangeRun {
  ExchangeCase exchange;
  std::string link;            // "none", "200mbit"
  double bits_per_second = 0;  // of it; 0: none
  // Of a model, FP32, as it was planned; 0: it is the job's, as big as it turns out to be.
  double planned_bytes = 0;
  uint32_t workers = 2;  // a virtual worker each
  uint64_t warm_up = 0;  // steps that are not measured
  RunFigures figures;
  std::vector<LinkTraffic> hosts;  // as the case deals nodes to them; none without links
  std::string error;               // that the job ended with: there are no figures. Empty: none

  // Over the measured steps: how long one takes, and a worker's waiting for weights in it. NaN:
  // nothing was measured.
  double StepSeconds() const;
  double LeastStepSeconds() const;
  double MostStepSeconds() const;
  double WaitSeconds() const;
  // Of a model: planned, or what a worker pushes in a step. NaN: not known.
  double ModelBytes() const;
  // Of a step, the job's over its steps, so the first weights are among them. None: no links.
  std::optional<double> HostSentBytes(size_t host) const;
  std::optional<double> HostReceivedBytes(size_t host) const;
  // Of the host and direction with most of them.
  std::optional<double> BusiestBytes() const;
  // Of the worker that held most for training, and the server. None: not measured.
  std::optional<HeldBytes> WorkerHeld() const;
  std::optional<HeldBytes> ServerHeld() const;
};

struct ExchangeResults {
  std::string command;  // as it was called
  std::vector<std::pair<std::string, std::string>> settings;
  uint32_t workers = 2;
  double alpha_seconds = 0;             // of a message, as it was said
  std::vector<ExchangeCase> cases;      // in the order named
  std::vector<std::string> link_names;  // in the order named
  std::vector<double> sizes;            // of models, planned, bytes; {0}: the job's own
  std::vector<ExchangeRun> runs;

  // null: not run.
  const ExchangeRun* Find(const ExchangeCase& exchange, const std::string& link,
                          double planned_bytes) const;
  // alpha as it was said, beta that of the link's TCP payload, gamma 0. None: no link.
  std::optional<LinkCost> CostOf(const std::string& link) const;
  // None: no link, or the size of the model is not known.
  std::optional<ExchangeCost> CostOf(const ExchangeRun& run) const;
  // Of those that were run on it.
  const ExchangeRun* Fastest(const std::string& link, double planned_bytes) const;
};

// The run that says what a case holds: the first link's of the largest model. Null: none.
const ExchangeRun* MemoryRun(const ExchangeResults& results, const ExchangeCase& exchange);

// Of a worker's host: what the worker holds, and the server beside it, if there is one. None: not
// measured.
std::optional<double> HeldOnHost(const ExchangeRun& run);

}  // namespace tug

#endif  // TUG_EXPERIMENT_EXCHANGE_RESULTS_H_
