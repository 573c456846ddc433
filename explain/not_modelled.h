// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_EXPLAIN_NOT_MODELLED_H_
#define TUG_EXPLAIN_NOT_MODELLED_H_

// Settings of a job that the simulator does not model (prediction/scheduling.h).

#include <string>
#include <vector>

namespace tug {

class JobConfig;

struct NotModelled {
  const char* feature;  // "sync.policy other than BSP"
  const char* without;  // "sync.policy=BSP"
};

// All such settings of a job with defaults filled in. With every `without` applied, the job is
// modelled, and valid if it was. Pure.
std::vector<NotModelled> NotModelledIn(const JobConfig& config);

}  // namespace tug

#endif  // TUG_EXPLAIN_NOT_MODELLED_H_
