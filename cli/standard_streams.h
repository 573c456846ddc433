#ifndef TUG_CLI_STANDARD_STREAMS_H_
#define TUG_CLI_STANDARD_STREAMS_H_

namespace tug {

// Makes descriptors 0 to 2 safe to use, whatever started this process:
//  - A closed one is opened on /dev/null. Otherwise the next file that the process opens becomes
//    its standard error, and lines for people go into that file.
//  - SIGTTOU is ignored, here and in child processes: `stty tostop` would stop a process of
//    another process group at its first line.
// REQUIRES: called first in main, before any file is opened and any thread is started.
void PrepareStandardStreams();

}  // namespace tug

#endif  // TUG_CLI_STANDARD_STREAMS_H_
