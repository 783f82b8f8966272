// What every main of this project does first.
#ifndef SHOAL_RT_STANDARD_STREAMS_H
#define SHOAL_RT_STANDARD_STREAMS_H

#include <fcntl.h>
#include <unistd.h>

namespace shoal::rt {

// Who closes a standard stream (`>&-`) wants nothing of it: it is /dev/null then. Its number must go to no file,
// socket or pipe, which would get what is printed.
inline void openStandardStreams() {
  for (int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (fcntl(stream, F_GETFD) < 0)
      open("/dev/null", O_RDWR); // gets that number, the lowest that is free
}

} // namespace shoal::rt

#endif // SHOAL_RT_STANDARD_STREAMS_H
