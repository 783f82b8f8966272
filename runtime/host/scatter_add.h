// Rows added up by their numbers: the gradient of a table of embeddings.
#ifndef SHOAL_RT_HOST_SCATTER_ADD_H
#define SHOAL_RT_HOST_SCATTER_ADD_H

#include "host/library_call.h"
#include "shoal-rt/program.h"

#include <memory>
#include <span>

namespace shoal::rt {

// `params` as ScatterAddParam says and `buffers` ids, values, [offset], output, [workspace]; both are
// already checked.
std::unique_ptr<LibraryCall> makeScatterAdd(std::span<const int64_t> params,
                                            std::span<void *const> buffers);

} // namespace shoal::rt

#endif // SHOAL_RT_HOST_SCATTER_ADD_H
