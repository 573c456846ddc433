// SPDX-License-Identifier: Apache-2.0
#include "process/version.h"

#include "absl/strings/str_cat.h"
#include "proto/wire.h"

namespace tug {
namespace {

constexpr char kRelease[] = "0.1.0";

}  // namespace

std::string VersionText() {
  return absl::StrCat("tug ", kRelease, " (control protocol ", kControlVersion, ", wire format ",
                      kWireVersion, ")");
}

}  // namespace tug
