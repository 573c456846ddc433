#ifndef TUG_EXPERIMENT_EXCHANGE_POINTS_H_
#define TUG_EXPERIMENT_EXCHANGE_POINTS_H_

// Cases of an experiment that differ in their way to exchange, with what was measured of each
// beside what the formulas say (exchange_cost.h). Pure, thread-safe.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "experiment/exchange_case.h"
#include "experiment/exchange_cost.h"
#include "experiment/experiment_results.h"
#include "experiment/run_figures.h"
#include "experiment/spread.h"

namespace tug {

struct ExchangePoint {
  std::string name;   // labels of the axes that set the way to exchange: "zero3"
  std::string group;  // names and labels of all others: "link 200mbit"
  ExchangeCase exchange;
  uint32_t workers = 1;
  std::string link;                     // "none", "200mbit"
  std::optional<RepeatSpread> step_ms;  // none: nothing was measured
  std::optional<RepeatSpread> link_mb;  // over the busiest link in its busier direction, in a step
  double model_bytes = 0;               // that a worker pushes in a step; 0: not known
  // alpha as the file says, beta that of the link's TCP payload, gamma 0. None: no formula holds,
  // since there is no link, nodes are dealt otherwise to hosts, or bytes are not those of FP32.
  std::optional<LinkCost> link_cost;
  std::optional<ExchangeCost> cost;  // none: the size of the model is not known either
  // Of the first repeat: over the link of each host in a step, and what the worker and the server
  // hold that hold most.
  std::vector<HostBytes> hosts;
  std::optional<NodeHeldBytes> worker_held, server_held;

  // What the worker holds, and the server beside it, if there is one. None: not measured.
  std::optional<double> HeldOnHost() const;
};

// In the order of cases; those of which there is no formula are left out.
std::vector<ExchangePoint> ExchangePointsOf(const ExperimentResults& results);

// Points that belong together, in order of the first of each.
std::vector<std::vector<const ExchangePoint*>> GroupsOf(const std::vector<ExchangePoint>& points);

// Of each name the first point with something in memory.
std::vector<const ExchangePoint*> MemoryPoints(const std::vector<ExchangePoint>& points);

}  // namespace tug

#endif  // TUG_EXPERIMENT_EXCHANGE_POINTS_H_
