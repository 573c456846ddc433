#ifndef TUG_CLI_NUMBER_OPTIONS_H_
#define TUG_CLI_NUMBER_OPTIONS_H_

namespace CLI {
class App;
}  // namespace CLI

namespace tug {

// Makes every option of `app` and of its commands that holds a number refuse text that is not one:
// nan, inf, negative numbers, numbers too large for the type, the empty text. No option of tug
// takes such a value; an option's own range is checked as well. An option holds a number if its
// type name says so (FLOAT, INT, UINT). Call it once, after all options have been added.
void CheckNumbers(CLI::App& app);

}  // namespace tug

#endif  // TUG_CLI_NUMBER_OPTIONS_H_
