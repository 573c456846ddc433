// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_COORDINATOR_SERVICE_DATA_SUMMARY_H_
#define TUG_COORDINATOR_SERVICE_DATA_SUMMARY_H_

#include <string>

#include "data/source/text_source.h"
#include "data/token_file.h"

namespace tug {

// One-line summary of a job's training text: "text: 1 file, 60 lines, 1,534 bytes, 1,234 tokens;
// labels: neg 20, pos 40". Bytes are those of the text, decompressed, without labels. Then the
// entries of a folder that are not read, if any. Long lists of labels or entries are cut, with the
// number of further ones. REQUIRES: `file` is undamaged and made from `text`.
std::string DataSummary(const TextSource& text, const TokenFile& file);

}  // namespace tug

#endif  // TUG_COORDINATOR_SERVICE_DATA_SUMMARY_H_
