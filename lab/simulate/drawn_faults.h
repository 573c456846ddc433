// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_LAB_SIMULATE_DRAWN_FAULTS_H_
#define TUG_LAB_SIMULATE_DRAWN_FAULTS_H_

#include "lab/simulate/draw.h"
#include "lab/simulate/fault_event.h"
#include "lab/simulate/scenario.h"

namespace tug {

// Draws one fault of any kind.
FaultEvent DrawFault(Draw& draw);
// Adds up to four faults, and possibly a stop or the death of the whole job, to a scenario whose
// job and cluster are drawn.
void DrawFaults(Draw& draw, Scenario& scenario);
// Sorts the faults, and sets what depends on them: the longest time of the run, and the checks of
// it.
void DescribeFaults(Scenario& scenario);
// Whether virtual workers may move to another worker.
bool MovesWorker(FaultKind kind);

}  // namespace tug

#endif  // TUG_LAB_SIMULATE_DRAWN_FAULTS_H_
