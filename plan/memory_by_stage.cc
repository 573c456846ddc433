#include "plan/memory_by_stage.h"

#include "base/check.h"

namespace tug {
namespace {

constexpr double kFp32Bytes = 4;

}  // namespace

double WorkerStateBytes(Stage stage, const StateBytes& states, double parameters,
                        uint32_t workers) {
  TUG_CHECK(workers >= 1);
  const double whole_parameters = stage == Stage::kZero3 ? 0 : states.parameters;
  const double whole_gradients =
      stage == Stage::kDataParallel || stage == Stage::kZero1 ? states.gradients : 0;
  const double whole_optimizer = stage == Stage::kDataParallel ? states.Optimizer() : 0;
  const double whole = whole_parameters + whole_gradients + whole_optimizer;
  return whole * parameters + (states.All() - whole) * parameters / workers;
}

double ParameterServerWorkerBytes(const StateBytes& states, double parameters) {
  return (states.parameters + states.gradients) * parameters;
}

double ParameterServerBytes(const StateBytes& states, double parameters, uint32_t servers) {
  TUG_CHECK(servers >= 1);
  return (kFp32Bytes + states.first_moment + states.second_moment) * parameters / servers;
}

}  // namespace tug
