// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_COORDINATOR_PROGRESS_REPORTED_RESIDUALS_H_
#define TUG_COORDINATOR_PROGRESS_REPORTED_RESIDUALS_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "proto/control.pb.h"

namespace tug {

// Error-feedback residuals of virtual workers, from their latest step reports (comm.push_codec). A
// residual is in the memory of the worker that made the pushes: it is lost with that worker, or
// when another worker takes over the virtual worker. Not thread-safe.
class ReportedResiduals {
 public:
  // Adds a report of the virtual worker's worker. An invalid sum of squares counts as 0.
  void Add(uint32_t node_id, const StepReport& report);

  // Forgets the residuals that `node_id` reported for virtual workers it no longer owns (`owners`:
  // by virtual worker). Returns "error-feedback residuals of virtual workers 2, 3 (norm 0.0123)",
  // or "" if there were none.
  std::string Take(uint32_t node_id, std::span<const uint32_t> owners);
  // Forgets all residuals except those of `virtual_workers`; returns as Take.
  std::string TakeAllBut(std::span<const uint32_t> virtual_workers);

 private:
  struct Residual {
    uint32_t node_id = 0;
    double squares = 0;
  };
  // Forgets the residuals of the virtual workers for which `goes` holds; returns as Take.
  template <typename Goes>
  std::string TakeWhere(Goes goes);

  std::vector<Residual> residuals_;  // by virtual worker
};

}  // namespace tug

#endif  // TUG_COORDINATOR_PROGRESS_REPORTED_RESIDUALS_H_
