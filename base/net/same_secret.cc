// SPDX-License-Identifier: Apache-2.0
#include "base/net/same_secret.h"

#include <openssl/crypto.h>

namespace tug {

bool SameSecret(absl::string_view one, absl::string_view other) {
  return one.size() == other.size() && CRYPTO_memcmp(one.data(), other.data(), one.size()) == 0;
}

}  // namespace tug
