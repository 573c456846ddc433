#ifndef TUG_COORDINATOR_REPORTED_RESIDUALS_H_
#define TUG_COORDINATOR_REPORTED_RESIDUALS_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "proto/control.pb.h"

namespace tug {

// What pushes of virtual workers have left out, as their newest reports say (comm.push_codec with
// error feedback). It is in the memory of the worker that made the pushes, and ends with that, or
// when another worker takes the virtual worker over. Not thread-safe.
class ReportedResiduals {
 public:
  // A report of the worker that carries the virtual worker. What is no sum of squares counts as 0.
  void Add(uint32_t node_id, const StepReport& report);

  // What goes when the virtual workers that the worker carried are its own no more, but for those
  // that it owns still (`owners`: by virtual worker): "what pushes of virtual workers 2, 3 had left
  // out: norm 0.0123", or nothing. Said once.
  std::string Take(uint32_t node_id, std::span<const uint32_t> owners);
  // What goes, whoever carried it, but for that of these virtual workers: as Take.
  std::string TakeAllBut(std::span<const uint32_t> virtual_workers);

 private:
  struct Residual {
    uint32_t node_id = 0;
    double squares = 0;
  };
  // Of the virtual workers for which `goes` holds.
  template <typename Goes>
  std::string TakeWhere(Goes goes);

  std::vector<Residual> residuals_;  // by virtual worker
};

}  // namespace tug

#endif  // TUG_COORDINATOR_REPORTED_RESIDUALS_H_
