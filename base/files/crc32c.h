// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_BASE_FILES_CRC32C_H_
#define TUG_BASE_FILES_CRC32C_H_

#include <cstdint>
#include <string_view>

namespace tug {

// CRC-32C checksum (Castagnoli: reflected polynomial 0x82F63B78), as in iSCSI and TensorFlow record
// files. For small files: table-driven, one byte at a time. Source: RFC 3720, section 12.1 and
// appendix B.4. Pure, thread-safe.
uint32_t Crc32c(std::string_view bytes);

}  // namespace tug

#endif  // TUG_BASE_FILES_CRC32C_H_
