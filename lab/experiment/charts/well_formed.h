// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_LAB_EXPERIMENT_CHARTS_WELL_FORMED_H_
#define TUG_LAB_EXPERIMENT_CHARTS_WELL_FORMED_H_

#include <string>

namespace tug {

// Fails the test unless all elements of a page are closed in order, and it has no other '<' and no
// bare '&'.
void ExpectWellFormed(const std::string& page);

}  // namespace tug

#endif  // TUG_LAB_EXPERIMENT_CHARTS_WELL_FORMED_H_
