// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_LAB_EXPERIMENT_SECTIONS_EXCHANGE_POINTS_H_
#define TUG_LAB_EXPERIMENT_SECTIONS_EXCHANGE_POINTS_H_

// Cases of an experiment that differ in their way to exchange: what was measured of each, and what
// the formulas predict (exchange_cost.h). Pure, thread-safe.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lab/experiment/measures/run_figures.h"
#include "lab/experiment/measures/spread.h"
#include "lab/experiment/results/exchange_case.h"
#include "lab/experiment/results/experiment_results.h"
#include "lab/experiment/sections/exchange_cost.h"

namespace tug {

struct ExchangePoint {
  std::string name;   // labels of the axes that set the way to exchange: "zero3"
  std::string group;  // names and labels of all other axes: "link 200mbit"
  ExchangeCase exchange;
  uint32_t workers = 1;
  std::string link;                     // "none", "200mbit"
  std::optional<RepeatSpread> step_ms;  // none: not measured
  std::optional<RepeatSpread> link_mb;  // per step, over the busiest link in its busier direction
  double model_bytes = 0;               // pushed by a worker in a step; 0: unknown
  // alpha from the file, beta of the link's TCP payload, gamma 0. None: no formula holds, since
  // there is no link, nodes are assigned to hosts differently, or the bytes are not those of FP32.
  std::optional<LinkCost> link_cost;
  std::optional<ExchangeCost> cost;  // none: no link_cost, or the size of the model is unknown
  // First repeat: bytes over the link of each host in a step, and the memory of the worker and of
  // the server that hold most.
  std::vector<HostBytes> hosts;
  std::optional<NodeHeldBytes> worker_held, server_held;

  // Memory of the worker, plus that of the server next to it, if any. None: not measured.
  std::optional<double> HeldOnHost() const;
};

// In the order of cases; skips cases without a formula.
std::vector<ExchangePoint> ExchangePointsOf(const ExperimentResults& results);

// Points of the same group together, in the order of the first of each.
std::vector<std::vector<const ExchangePoint*>> GroupsOf(const std::vector<ExchangePoint>& points);

// For each name, the first point with memory figures.
std::vector<const ExchangePoint*> MemoryPoints(const std::vector<ExchangePoint>& points);

}  // namespace tug

#endif  // TUG_LAB_EXPERIMENT_SECTIONS_EXCHANGE_POINTS_H_
