#ifndef TUG_CLI_REMOTE_PROGRAM_H_
#define TUG_CLI_REMOTE_PROGRAM_H_

// What passes between `tug attach`, on the host of the launcher, and `tug attend`, on the host of a
// program, over one connection.
//
// Downward: a line, ToLine of what to run; then bytes, each the number of a signal for the program;
// 0 says only that the launcher lives. Upward: what the program says, and lines that begin with
// kControl: "begun", "ready LINE" (what it wrote to its --ready-fd), "ended WAIT_STATUS".

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

// In an argument of the program: the address of its host, and the number of a descriptor from which
// a line is passed up as "ready".
inline constexpr char kAddressArgument[] = "{address}";
inline constexpr char kReadyArgument[] = "{ready}";

struct RemoteProgram {
  std::string name;                     // "worker-0"
  std::vector<std::string> argv;        // without argv[0]: it is the program that attends
  std::string folder;                   // to run in, if the host has it
  std::string input;                    // that it may read at /dev/stdin
  std::string keys;                     // as Program's
  std::vector<std::string> peers;       // for kAddressArgument, as `AddressToward` takes them
  std::vector<std::string> interfaces;  // the same
  std::string run_dir;                  // what it says is kept in its logs/, if it is there
  absl::Duration silence;               // of the launcher, that is taken for its death
  bool detached = false;                // it outlives the launcher
  bool ends_in_order = false;           // by SIGINT; the others end when it does
  // Slurm sends SIGTERM to every process of a job at once. The program ignores SIGTERM and SIGHUP,
  // so that no node leaves before the job ends; `tug attend` obeys SIGTERM for the coordinator.
  bool ignores_stop = false;
};

// How often `tug attach` says that it lives: several times in a silence.
absl::Duration AliveInterval(const RemoteProgram& program);

// A line, without its end. Errors: INVALID_ARGUMENT: what is to be sent is not UTF-8.
absl::StatusOr<std::string> ToLine(const RemoteProgram& program);
// Errors: INVALID_ARGUMENT.
absl::StatusOr<RemoteProgram> ParseRemoteProgram(const std::string& line);

// What `tug attach` needs: a file.
struct Attachment {
  std::vector<std::string> connection;  // argv of ssh or srun, with the command that attends
  bool by_srun = false;                 // which of the two
  std::string host;                     // for messages
  std::string prefix;                   // of every line that the program says
  std::string log_path;                 // what it said last is written there
  RemoteProgram program;
};
// Errors: the same.
absl::StatusOr<std::string> ToText(const Attachment& attachment);
absl::StatusOr<Attachment> ParseAttachment(const std::string& text);

}  // namespace tug

#endif  // TUG_CLI_REMOTE_PROGRAM_H_
