// SPDX-License-Identifier: Apache-2.0
#include "cli/command_tree.h"

#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "base/files/shell_word.h"

namespace tug {
namespace {

std::vector<const CLI::App*> CommandsOf(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App* command) { return !command->get_group().empty(); });
}

std::vector<const CLI::Option*> OptionsOf(const CLI::App& app) {
  return app.get_options([](const CLI::Option* option) { return !option->get_group().empty(); });
}

// Escapes text for roff, so that it is printed unchanged.
std::string Roff(const std::string& text) {
  std::vector<std::string> lines =
      absl::StrSplit(absl::StrReplaceAll(text, {{"\\", "\\e"}, {"-", "\\-"}}), '\n');
  for (std::string& line : lines) {
    if (absl::StartsWith(line, ".") || absl::StartsWith(line, "'")) line = "\\&" + line;
  }
  return absl::StrJoin(lines, "\n");
}

std::string Bold(const std::string& text) { return absl::StrCat("\\fB", Roff(text), "\\fR"); }

// Head of an option: "--set PATH=VALUE", "JOB", "-h,--help"
std::string OptionHead(const CLI::Option& option) {
  if (option.get_positional()) return Bold(option.get_name(/*positional=*/true));
  std::string head = Bold(option.get_name(/*positional=*/false, /*all_options=*/true));
  if (option.get_expected_max() > 0 && !option.get_type_name().empty()) {
    absl::StrAppend(&head, " \\fI", Roff(option.get_type_name()), "\\fR");
  }
  return head;
}

void AppendOptions(const CLI::App& app, std::string& page) {
  for (const CLI::Option* option : OptionsOf(app)) {
    if (option->check_name("--help")) continue;
    absl::StrAppend(&page, ".TP\n", OptionHead(*option), "\n", Roff(option->get_description()));
    if (!option->get_default_str().empty()) {
      absl::StrAppend(&page, " [", Roff(option->get_default_str()), "]");
    }
    absl::StrAppend(&page, "\n");
  }
}

// Appends the footer with its line breaks.
void AppendFooter(const CLI::App& app, std::string& page) {
  if (app.get_footer().empty()) return;
  absl::StrAppend(&page, ".PP\n.nf\n",
                  Roff(std::string(absl::StripAsciiWhitespace(app.get_footer()))), "\n.fi\n");
}

void AppendCommands(const CLI::App& app, const std::string& path, std::string& page) {
  for (const CLI::App* command : CommandsOf(app)) {
    const std::string name = absl::StrCat(path, " ", command->get_name());
    absl::StrAppend(&page, ".SS \"", Roff(name), "\"\n", Roff(command->get_description()), ".\n");
    AppendOptions(*command, page);
    AppendFooter(*command, page);
    AppendCommands(*command, name, page);
  }
}

// First sentence of the description, without its end and without the program's name.
std::string Summary(const CLI::App& app) {
  std::string text = app.get_description();
  if (const size_t colon = text.find(": "); colon != std::string::npos) text.erase(0, colon + 2);
  return text.substr(0, text.find('.'));
}

struct Completed {
  std::string cases;  // words that may follow each command
  std::string paths;  // commands within commands
};

void AppendCompletion(const CLI::App& app, const std::string& path, Completed& completed) {
  std::vector<std::string> taking;
  for (const CLI::Option* option : OptionsOf(app)) {
    for (const std::string& name : option->get_lnames()) {
      if (option->get_expected_max() > 0) taking.push_back("--" + name);
    }
  }
  absl::StrAppend(&completed.cases, "    ", Quoted(path),
                  ") commands=", Quoted(absl::StrJoin(CommandNames(app), " ")),
                  " options=", Quoted(absl::StrJoin(OptionNames(app), " ")),
                  " taking=", Quoted(absl::StrJoin(taking, " ")), " ;;\n");
  for (const CLI::App* command : CommandsOf(app)) {
    const std::string name = absl::StrCat(path, " ", command->get_name());
    absl::StrAppend(&completed.paths, completed.paths.empty() ? "" : " | ", Quoted(name));
    AppendCompletion(*command, name, completed);
  }
}

// Lines of a shell function that set `commands`, `options` and `taking` (options with a value) for
// what may follow the given words. (`path` is a special variable in zsh.)
std::string FindWords(const CLI::App& app, const std::string& words) {
  Completed completed;
  AppendCompletion(app, app.get_name(), completed);
  return absl::StrCat("  local at=", app.get_name(), " word commands options taking\n",
                      "  for word in \"", words, "\"; do\n    case \"$at $word\" in\n    ",
                      completed.paths, ") at=\"$at $word\" ;;\n    esac\n  done\n",
                      "  case \"$at\" in\n", completed.cases, "  esac\n");
}

}  // namespace

const CLI::App* FindCommand(const CLI::App& app, const std::string& name) {
  const auto found =
      app.get_subcommands([&](const CLI::App* command) { return command->get_name() == name; });
  return found.empty() ? nullptr : found.front();
}

std::vector<std::string> CommandNames(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : CommandsOf(app)) names.push_back(command->get_name());
  return names;
}

std::vector<std::string> OptionNames(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : OptionsOf(app)) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

std::string ManPage(const CLI::App& app, const std::string& version) {
  std::string page = absl::StrCat(
      ".TH ", absl::AsciiStrToUpper(app.get_name()), " 1 \"\" \"", Roff(version),
      "\" \"User Commands\"\n", ".SH NAME\n", Roff(app.get_name()), " \\- ", Roff(Summary(app)),
      "\n", ".SH SYNOPSIS\n", Bold(app.get_name()), " \\fICOMMAND\\fR [\\fIARGUMENTS\\fR]\n",
      ".SH DESCRIPTION\n", Roff(app.get_description()), "\n");
  AppendOptions(app, page);
  AppendFooter(app, page);
  absl::StrAppend(&page, ".SH COMMANDS\n");
  AppendCommands(app, app.get_name(), page);
  absl::StrAppend(&page,
                  ".SH EXIT STATUS\n0: done; 1: failed, the last line of stderr gives the reason; "
                  "2: wrong usage.\n",
                  ".SH FILES\n.TP\n.I runs/NAME\\-N\nThe folder of a run: configuration, metrics, "
                  "checkpoints, logs.\n.TP\n.I ~/.cache/tugboat\nPrograms that ",
                  Bold("tug launch"), " has copied to this host.\n");
  return page;
}

std::string JobManPage(const std::string& job_help, const std::string& version) {
  return absl::StrCat(
      ".TH TUG\\-JOB 5 \"\" \"", Roff(version), "\" \"File Formats\"\n",
      ".SH NAME\ntug\\-job \\- job file of tug\n.SH DESCRIPTION\n",
      "A job file is text in the format of protocol buffers: fields of the message JobConfig, for "
      "example\n.PP\n.nf\nname: \"mine\"\ndata { path: \"text.txt\" }\ntrain { steps: 500 "
      "}\n.fi\n.PP\n",
      "A field that is not set has its default. ", Bold("tug new"),
      " writes a job file for a text; ", Bold("tug train --set train.steps=100"),
      " sets a field for one run.\n.SH FIELDS\n.nf\n", Roff(job_help), "\n.fi\n", ".SH SEE ALSO\n",
      Bold("tug"), "(1)\n");
}

std::string BashCompletion(const CLI::App& app) {
  const std::string name = app.get_name();
  return absl::StrCat("# bash completion of ", name, ", generated from its commands\n_", name,
                      R"sh(() {
  local current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}
)sh",
                      FindWords(app, "${COMP_WORDS[@]:1:COMP_CWORD-1}"),
                      R"sh(  COMPREPLY=()
  [[ " $taking " != *" $before "* ]] || return 0
  case "$current" in
    -*) mapfile -t COMPREPLY < <(compgen -W "$options" -- "$current") ;;
    *) mapfile -t COMPREPLY < <(compgen -W "$commands" -- "$current") ;;
  esac
}
complete -o bashdefault -o default -F _)sh",
                      name, " ", name, "\n");
}

std::string ZshCompletion(const CLI::App& app) {
  const std::string name = app.get_name();
  return absl::StrCat("#compdef ", name, "\n# Generated from the commands of ", name, "\n_", name,
                      "() {\n", FindWords(app, "${(@)words[2,CURRENT-1]}"),
                      R"sh(  if [[ " $taking " == *" ${words[CURRENT-1]} "* ]]; then
    _files
  elif [[ ${words[CURRENT]} == -* ]]; then
    compadd -- ${=options}
  elif [[ -n $commands ]]; then
    compadd -- ${=commands}
  else
    _files
  fi
}
_)sh",
                      name, " \"$@\"\n");
}

}  // namespace tug
