#ifndef TUG_BASE_SAME_SECRET_H_
#define TUG_BASE_SAME_SECRET_H_

#include "absl/strings/string_view.h"

namespace tug {

// Takes as long for any two texts of one length.
bool SameSecret(absl::string_view one, absl::string_view other);

}  // namespace tug

#endif  // TUG_BASE_SAME_SECRET_H_
