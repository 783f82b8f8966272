// A call of a library with its buffers, ready to be run in every step.
#ifndef SHOAL_RT_HOST_LIBRARY_CALL_H
#define SHOAL_RT_HOST_LIBRARY_CALL_H

#include <cstdint>

namespace shoal::rt {

class LibraryCall {
public:
  virtual ~LibraryCall() = default;
  virtual void run() = 0;
  // Tiles of scores of attention that it has computed so far, over all runs.
  virtual uint64_t attentionTiles() const { return 0; }
};

} // namespace shoal::rt

#endif // SHOAL_RT_HOST_LIBRARY_CALL_H
