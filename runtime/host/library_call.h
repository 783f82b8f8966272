// A call of a library with its buffers, ready to be run in every step.
#ifndef SHOAL_RT_HOST_LIBRARY_CALL_H
#define SHOAL_RT_HOST_LIBRARY_CALL_H

namespace shoal::rt {

class LibraryCall {
public:
  virtual ~LibraryCall() = default;
  virtual void run() = 0;
};

} // namespace shoal::rt

#endif // SHOAL_RT_HOST_LIBRARY_CALL_H
