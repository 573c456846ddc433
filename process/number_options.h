// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_PROCESS_NUMBER_OPTIONS_H_
#define TUG_PROCESS_NUMBER_OPTIONS_H_

namespace CLI {
class App;
}  // namespace CLI

namespace tug {

// Makes every numeric option of `app` and its subcommands refuse text that is not a valid number:
// nan, inf, negative numbers, numbers too large for the type, empty text. No option of tug takes
// such a value; an option's own range is checked as well. An option is numeric if its type name
// says so (FLOAT, INT, UINT). Call once, after all options have been added.
void CheckNumbers(CLI::App& app);

}  // namespace tug

#endif  // TUG_PROCESS_NUMBER_OPTIONS_H_
