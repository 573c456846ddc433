#ifndef TUG_CLI_STANDARD_STREAMS_H_
#define TUG_CLI_STANDARD_STREAMS_H_

// The standard streams of every command and daemon. Stderr carries what a process says while it
// works, and nobody waits for its reader (base/standard_error.h). Stdout carries results, written
// with stdio by a thread that has nothing else to do: that thread waits for the reader, and a
// result that cannot be written is an error.

#include "absl/status/status.h"

namespace tug {

// Makes descriptors 0 to 2 safe to use and sets signals, whatever started this process:
//  - A closed one is opened on /dev/null. Otherwise the next file that the process opens becomes
//    its standard error, and lines for people go into that file.
//  - SIGPIPE is ignored, whatever libraries do to it: a reader that is gone ends nothing.
//  - SIGTTOU is ignored, here and in child processes: `stty tostop` would stop a process of
//    another process group at its first line.
//  - SIGXFSZ is ignored: beyond the limit of file size (`ulimit -f`) a write fails, and an error
//    names the file, instead of a signal that ends the process.
//  - SIGCHLD has its default action. A parent that ignores it (a service, a scheduler) passes that
//    on; the kernel then reaps our children, and nobody learns that one ended.
// REQUIRES: called first in main, before any file is opened and any thread is started.
void PrepareStandardStreams();

// Writes what stdio holds back of the results. Errors: INTERNAL. Ends the process by SIGPIPE, as a
// shell expects, if the reader of stdout is gone (`tug status | head -1`). Commands that write for
// long call it now and then.
absl::Status FlushResults();

}  // namespace tug

#endif  // TUG_CLI_STANDARD_STREAMS_H_
