// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_EXCHANGE_CHOSEN_TEXT_H_
#define TUG_EXCHANGE_CHOSEN_TEXT_H_

#include <span>
#include <string>

#include "exchange/encode/codec_chooser.h"
#include "exchange/exchange.h"

namespace tug {

// Describes a worker's links: "pushes to server 1 as top_k_int8 (92 Mbit/s); pulls from server 1 as
// int8 (90 Mbit/s)". Empty until all lanes have settled. `rates` false omits rates, so that the
// text changes only when a choice does.
std::string DescribeChoices(const LinkChoices& choices, bool rates);

// Formats chosen per server: "server 1 as top_k_int8 (92 Mbit/s), servers 2, 3 as fp32 (shared
// memory)". Empty until all lanes have settled. `names`: of the methods. `rates` false omits rates,
// so that the text changes only when a choice does.
std::string DescribeChosen(std::span<const CodecChooser::Chosen> chosen,
                           std::span<const std::string> names, bool rates);

}  // namespace tug

#endif  // TUG_EXCHANGE_CHOSEN_TEXT_H_
