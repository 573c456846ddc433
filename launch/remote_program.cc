// SPDX-License-Identifier: Apache-2.0
#include "launch/remote_program.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"

namespace tug {
namespace {

using Json = nlohmann::json;

absl::StatusOr<std::string> Dump(const Json& json) {
  try {
    return json.dump(-1, ' ', /*ensure_ascii=*/true);
  } catch (const Json::exception&) {
    return absl::InvalidArgumentError(
        "a path, an argument or the job file is not UTF-8, and cannot be sent to other hosts: "
        "rename or re-encode it");
  }
}

Json JsonOf(const RemoteProgram& program) {
  return {{"name", program.name},
          {"argv", program.argv},
          {"folder", program.folder},
          {"input", program.input},
          {"keys", program.keys},
          {"peers", program.peers},
          {"interfaces", program.interfaces},
          {"run_dir", program.run_dir},
          {"silence_ms", absl::ToInt64Milliseconds(program.silence)},
          {"detached", program.detached},
          {"ends_in_order", program.ends_in_order},
          {"ignores_sigterm", program.ignores_stop}};
}

// Throws Json's exceptions.
RemoteProgram ProgramOf(const Json& json) {
  RemoteProgram program;
  json.at("name").get_to(program.name);
  json.at("argv").get_to(program.argv);
  json.at("folder").get_to(program.folder);
  json.at("input").get_to(program.input);
  json.at("keys").get_to(program.keys);
  json.at("peers").get_to(program.peers);
  json.at("interfaces").get_to(program.interfaces);
  json.at("run_dir").get_to(program.run_dir);
  program.silence = absl::Milliseconds(json.at("silence_ms").get<int64_t>());
  json.at("detached").get_to(program.detached);
  json.at("ends_in_order").get_to(program.ends_in_order);
  json.at("ignores_sigterm").get_to(program.ignores_stop);
  return program;
}

Attachment AttachmentOf(const Json& json) {
  Attachment attachment;
  json.at("connection").get_to(attachment.connection);
  json.at("by_srun").get_to(attachment.by_srun);
  json.at("host").get_to(attachment.host);
  json.at("prefix").get_to(attachment.prefix);
  json.at("log_path").get_to(attachment.log_path);
  attachment.program = ProgramOf(json.at("program"));
  return attachment;
}

template <typename Parsed>
absl::StatusOr<Parsed> Parse(const std::string& text, Parsed (*of)(const Json&)) {
  try {
    return of(Json::parse(text));
  } catch (const Json::exception& error) {
    return absl::InvalidArgumentError(
        absl::StrCat("invalid message from `tug launch`: ", error.what(),
                     "; run the same version of tug on all hosts"));
  }
}

}  // namespace

absl::Duration AliveInterval(const RemoteProgram& program) {
  return std::min(absl::Seconds(1), program.silence / 5);
}

absl::StatusOr<std::string> ToLine(const RemoteProgram& program) { return Dump(JsonOf(program)); }

absl::StatusOr<RemoteProgram> ParseRemoteProgram(const std::string& line) {
  return Parse(line, ProgramOf);
}

absl::StatusOr<std::string> ToText(const Attachment& attachment) {
  return Dump({{"connection", attachment.connection},
               {"by_srun", attachment.by_srun},
               {"host", attachment.host},
               {"prefix", attachment.prefix},
               {"log_path", attachment.log_path},
               {"program", JsonOf(attachment.program)}});
}

absl::StatusOr<Attachment> ParseAttachment(const std::string& text) {
  return Parse(text, AttachmentOf);
}

}  // namespace tug
