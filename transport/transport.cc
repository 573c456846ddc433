// SPDX-License-Identifier: Apache-2.0
#include "transport/transport.h"

#include "absl/strings/str_cat.h"

namespace tug {

std::string PeerName(PeerId peer) {
  if ((peer & kWorkerBit) != 0) return absl::StrCat("node ", peer & ~kWorkerBit);
  if (peer == 0) return "peer 0";
  return absl::StrCat("lane ", peer - 1);
}

}  // namespace tug
