// SPDX-License-Identifier: Apache-2.0
#ifndef TUG_PROCESS_STANDARD_STREAMS_H_
#define TUG_PROCESS_STANDARD_STREAMS_H_

// The standard streams of every command and daemon. Stderr carries messages during the work;
// writing never blocks on its reader (base/standard_error.h). Stdout carries results, written with
// stdio by a thread with no other duties: it blocks on the reader, and a failed write is an error.

#include "absl/status/status.h"

namespace tug {

// Makes descriptors 0 to 2 safe to use and sets signals, however this process was started:
//  - Opens a closed descriptor on /dev/null. Otherwise the next file that the process opens would
//    become its standard error and receive its messages.
//  - Ignores SIGPIPE, whatever libraries do to it: a reader that is gone must not end the process.
//  - Ignores SIGTTOU, here and in child processes: `stty tostop` would stop a process of another
//    process group at its first line.
//  - Ignores SIGXFSZ: beyond the file size limit (`ulimit -f`) a write fails with an error that
//    names the file, and the process continues.
//  - Resets SIGCHLD to its default action. A parent that ignores it (a service, a scheduler) passes
//    that on; the kernel would then reap our children, and their exits would go unnoticed.
// REQUIRES: called first in main, before any file is opened and any thread is started.
void PrepareStandardStreams();

// Flushes the results buffered by stdio. Errors: INTERNAL. Ends the process by SIGPIPE, as shells
// expect, if the reader of stdout is gone (`tug status | head -1`). Commands with long output call
// it periodically.
absl::Status FlushResults();

}  // namespace tug

#endif  // TUG_PROCESS_STANDARD_STREAMS_H_
