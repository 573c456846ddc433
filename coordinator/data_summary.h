#ifndef TUG_COORDINATOR_DATA_SUMMARY_H_
#define TUG_COORDINATOR_DATA_SUMMARY_H_

#include <string>

#include "data/text_source.h"
#include "data/token_file.h"

namespace tug {

// What a job is about to learn from, on one line: "text: 1 file, 60 lines, 1,234 tokens; labels:
// neg 20, pos 40". Running text has bytes in place of lines. Then the entries of a folder that are
// not read, if any. Of many labels or entries the first ones, and how many more there are.
// REQUIRES: `file` is damaged nowhere, and made from `text`.
std::string DataSummary(const TextSource& text, const TokenFile& file);

}  // namespace tug

#endif  // TUG_COORDINATOR_DATA_SUMMARY_H_
