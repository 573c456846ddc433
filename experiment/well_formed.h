#ifndef TUG_EXPERIMENT_WELL_FORMED_H_
#define TUG_EXPERIMENT_WELL_FORMED_H_

#include <string>

namespace tug {

// Fails the test unless every element of a page is closed, in order, and nothing else has a '<' or
// a bare '&'.
void ExpectWellFormed(const std::string& page);

}  // namespace tug

#endif  // TUG_EXPERIMENT_WELL_FORMED_H_
