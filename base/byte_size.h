// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_BASE_BYTE_SIZE_H_
#define TUG_BASE_BYTE_SIZE_H_

#include <cstdint>
#include <string>

namespace tug {

// Shortest exact form: "4 KiB", "1536 KiB", "100 B". Pure.
std::string ByteSizeText(uint64_t bytes);

}  // namespace tug

#endif  // TUG_BASE_BYTE_SIZE_H_
