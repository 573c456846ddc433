#include "cli/standard_streams.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

namespace tug {

void PrepareStandardStreams() {
  // open() returns the lowest free descriptor: in ascending order, that is `stream` itself.
  for (int stream = STDIN_FILENO; stream <= STDERR_FILENO; ++stream) {
    if (fcntl(stream, F_GETFD) >= 0 || errno != EBADF) continue;
    if (open("/dev/null", O_RDWR) != stream) _exit(1);  // nowhere to say why
  }
  signal(SIGTTOU, SIG_IGN);
}

}  // namespace tug
