// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_DATA_SOURCE_COMPRESSED_READER_H_
#define TUG_DATA_SOURCE_COMPRESSED_READER_H_

#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "data/source/text_reader.h"

namespace tug {

enum class Compression { kNone, kGzip, kZstd };

// Compression of a file, by its first bytes.
Compression CompressionOf(std::string_view front);

// Reads a file's bytes, decompressed; concatenated members or frames count as one file. Errors:
// those of FileError; of Read: DATA_LOSS for a damaged or cut file.
absl::StatusOr<std::unique_ptr<TextReader>> OpenBytes(const std::string& path,
                                                      Compression compression);

}  // namespace tug

#endif  // TUG_DATA_SOURCE_COMPRESSED_READER_H_
