// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_EXCHANGE_CHOSEN_TEXT_H_
#define TUG_EXCHANGE_CHOSEN_TEXT_H_

#include <cstdint>
#include <map>
#include <string>

#include "exchange/exchange.h"

namespace tug {

// Describes a worker's links: "pushes to server-0 as top_k_int8 (92 Mbit/s), server-1, server-2 as
// fp32 (shared memory); pulls from server-0 as int8 (90 Mbit/s)". Empty until all lanes have
// settled. `servers`: their names by node id (ServerNames). `rates` false omits rates, so that the
// text changes only when a choice does.
std::string DescribeChoices(const LinkChoices& choices,
                            const std::map<uint32_t, std::string>& servers, bool rates);

}  // namespace tug

#endif  // TUG_EXCHANGE_CHOSEN_TEXT_H_
