// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_LAUNCH_REMOTE_PROGRAM_H_
#define TUG_LAUNCH_REMOTE_PROGRAM_H_

// Protocol between `tug attach`, on the launcher's host, and `tug attend`, on the program's host,
// over one connection.
//
// Downstream: a line, ToLine of the program to run; then bytes, each the number of a signal for the
// program; 0 only shows that the launcher is alive. Upstream: the program's output, and lines that
// begin with kControl: "begun", "ready LINE" (written to its --ready-fd), "ended WAIT_STATUS".

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace tug {

inline constexpr char kControl = '\x01';
inline constexpr char kBegun[] = "begun";
inline constexpr char kReady[] = "ready ";
inline constexpr char kEnded[] = "ended ";
inline constexpr char kAlive = 0;

// Placeholders in the program's arguments: the address of its host, and the number of a descriptor
// from which a line is passed up as "ready".
inline constexpr char kAddressArgument[] = "{address}";
inline constexpr char kReadyArgument[] = "{ready}";

struct RemoteProgram {
  std::string name;                     // "worker-0"
  std::vector<std::string> argv;        // without argv[0], which is the attending program
  std::string folder;                   // working folder, if the host has it
  std::string input;                    // readable at /dev/stdin
  std::string keys;                     // see Program::keys
  std::vector<std::string> peers;       // for kAddressArgument: arguments of AddressToward
  std::vector<std::string> interfaces;  // for kAddressArgument: arguments of AddressToward
  std::string run_dir;                  // its logs/ keeps the output, if the folder exists
  absl::Duration silence;               // after which the launcher counts as dead
  bool detached = false;                // it outlives the launcher
  bool ends_in_order = false;           // on SIGINT; the other programs end when this one does
  // Slurm sends SIGTERM to every process of a job at once. The program ignores SIGTERM and SIGHUP,
  // so that no node leaves before the job ends; `tug attend` handles SIGTERM for the coordinator.
  bool ignores_stop = false;
};

// Interval of the signs of life of `tug attach`: several per `silence`.
absl::Duration AliveInterval(const RemoteProgram& program);

// One line, without its end. Errors: INVALID_ARGUMENT: a field is not UTF-8.
absl::StatusOr<std::string> ToLine(const RemoteProgram& program);
// Errors: INVALID_ARGUMENT.
absl::StatusOr<RemoteProgram> ParseRemoteProgram(const std::string& line);

// Input file of `tug attach`.
struct Attachment {
  std::vector<std::string> connection;  // argv of ssh or srun, with the command that attends
  bool by_srun = false;                 // srun; false: ssh
  std::string host;                     // for messages
  std::string prefix;                   // of every printed line
  std::string log_path;                 // file for the program's last words
  RemoteProgram program;
};
// Errors: INVALID_ARGUMENT.
absl::StatusOr<std::string> ToText(const Attachment& attachment);
absl::StatusOr<Attachment> ParseAttachment(const std::string& text);

}  // namespace tug

#endif  // TUG_LAUNCH_REMOTE_PROGRAM_H_
