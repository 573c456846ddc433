// SPDX-License-Identifier: Apache-2.0
#include "process/number_options.h"

#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <string>

#include "CLI/CLI.hpp"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace tug {
namespace {

// strtoull accepts a sign, and returns the largest number on overflow.
std::string CheckWhole(const std::string& text) {
  errno = 0;
  char* end = nullptr;
  std::strtoull(text.c_str(), &end, 0);
  const bool whole = !text.empty() && end == text.c_str() + text.size() && errno == 0;
  if (whole && !absl::StrContains(text, '-')) return "";
  return absl::StrCat("'", text, "' is not a non-negative whole number");
}

std::string CheckReal(const std::string& text) {
  double value = 0;
  if (absl::SimpleAtod(text, &value) && std::isfinite(value) && value >= 0) return "";
  return absl::StrCat("'", text, "' is not a non-negative number");
}

}  // namespace

void CheckNumbers(CLI::App& app) {
  for (CLI::Option* option : app.get_options([](CLI::Option*) { return true; })) {
    const std::string type = option->get_type_name();
    if (absl::StartsWith(type, "FLOAT")) option->check(CheckReal);
    if (absl::StartsWith(type, "INT") || absl::StartsWith(type, "UINT")) option->check(CheckWhole);
  }
  for (CLI::App* command : app.get_subcommands([](CLI::App*) { return true; })) {
    CheckNumbers(*command);
  }
}

}  // namespace tug
