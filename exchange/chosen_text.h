#ifndef TUG_EXCHANGE_CHOSEN_TEXT_H_
#define TUG_EXCHANGE_CHOSEN_TEXT_H_

#include <span>
#include <string>

#include "exchange/codec_chooser.h"
#include "exchange/exchange.h"

namespace tug {

// What a worker says of its links, "pushes to server 1 as top_k_int8 (92 Mbit/s); pulls from server
// 1 as int8 (90 Mbit/s)"; empty as long as something has not settled. With `rates` false, the same
// without rates: whether anything has changed.
std::string DescribeChoices(const LinkChoices& choices, bool rates);

// "server 1 as top_k_int8 (92 Mbit/s), servers 2, 3 as fp32 (shared memory)": what is chosen, by
// server; empty as long as a lane has not settled. `names`: of the methods. With `rates` false, the
// same without rates: whether it has changed.
std::string DescribeChosen(std::span<const CodecChooser::Chosen> chosen,
                           std::span<const std::string> names, bool rates);

}  // namespace tug

#endif  // TUG_EXCHANGE_CHOSEN_TEXT_H_
