#ifndef TUG_BASE_CRC32C_H_
#define TUG_BASE_CRC32C_H_

#include <cstdint>
#include <string_view>

namespace tug {

// The checksum CRC-32C (Castagnoli: reflected polynomial 0x82F63B78), as iSCSI and TensorFlow's
// record files have it. For small files: a table, a byte at a time. Source: RFC 3720, section 12.1
// and appendix B.4. Pure, thread-safe.
uint32_t Crc32c(std::string_view bytes);

}  // namespace tug

#endif  // TUG_BASE_CRC32C_H_
