// SPDX-License-Identifier: Apache-2.0
#include "process/version.h"

#include "absl/strings/str_cat.h"
#include "exchange/c_api/tug.h"
#include "proto/wire.h"

namespace tug {

std::string VersionText() {
  return absl::StrCat("tug ", TUG_VERSION_MAJOR, ".", TUG_VERSION_MINOR, ".", TUG_VERSION_PATCH,
                      " (control protocol ", kControlVersion, ", wire format ", kWireVersion, ")");
}

}  // namespace tug
