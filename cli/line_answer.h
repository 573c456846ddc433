// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_CLI_LINE_ANSWER_H_
#define TUG_CLI_LINE_ANSWER_H_

#include <string>

#include "absl/status/statusor.h"
#include "cli/loaded_model.h"
#include "data/text/tokenizer.h"

namespace tug {

// Reply of a model of lines to a line, which is read as a side of a line of its text
// (data/line_text.h). ENCODER_DECODER: its target by greedy decoding: the likeliest symbol each
// time, until the end symbol or model.context symbols; runs the whole model per symbol, which is
// fast enough for lines. ENCODER: its likeliest labels with their probabilities, at most three:
// "Old 97.1%, New 2.9%". Errors: INVALID_ARGUMENT for an empty or too long line,
// FAILED_PRECONDITION for a classifier without labels; those of SideOfLine and of the tokenizer.
absl::StatusOr<std::string> AnswerTo(LoadedModel& loaded, const Tokenizer& tokenizer,
                                     const std::string& line);

}  // namespace tug

#endif  // TUG_CLI_LINE_ANSWER_H_
