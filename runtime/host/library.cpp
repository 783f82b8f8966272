// Library functions by their numbers.
#include "host/library.h"
#include "core/error.h"
#include "host/attention.h"
#include "host/scatter_add.h"

namespace shoal::rt {

std::unique_ptr<LibraryCall> Libraries::bind(LibraryFunction function,
                                             std::span<const int64_t> params,
                                             std::span<void *const> buffers) {
  switch (function) {
  case LibraryFunction::Gemm:
    return gemms_.get(params).bind(buffers[0], buffers[1], buffers[2]);
  case LibraryFunction::Attention:
    return bindAttention(attentionShape(params.data()), buffers);
  case LibraryFunction::AttentionGrad:
    return bindAttentionGrad(attentionShape(params.data()), buffers);
  case LibraryFunction::ScatterAdd:
    return makeScatterAdd(params, buffers);
  }
  badInput("program: unknown library function ", uint32_t(function));
}

} // namespace shoal::rt
