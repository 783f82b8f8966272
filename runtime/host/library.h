// The functions that Library rows call, found by number and bound to their buffers once.
#ifndef SHOAL_RT_HOST_LIBRARY_H
#define SHOAL_RT_HOST_LIBRARY_H

#include "host/gemm.h"
#include "host/library_call.h"

namespace shoal::rt {

class Libraries {
public:
  // `params` and `buffers` are the function's and already checked. Throws exit 1 when the library
  // cannot do it.
  std::unique_ptr<LibraryCall> bind(LibraryFunction function, std::span<const int64_t> params,
                                    std::span<void *const> buffers);

private:
  GemmCache gemms_;
};

} // namespace shoal::rt

#endif // SHOAL_RT_HOST_LIBRARY_H
