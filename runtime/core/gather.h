// Brings what a result or parameter is in all, from the boxes that the ranks hold, to rank 0.
#ifndef SHOAL_RT_CORE_GATHER_H
#define SHOAL_RT_CORE_GATHER_H

#include "core/piece.h"
#include "mpi/world.h"

#include <functional>

namespace shoal::rt {

// Collective. Hands each distinct box of a sharded tensor that `holders` have to `take` on rank 0, in mesh
// order: the box, its buffer. `local` is this position's buffer, if it is a holder.
using TakeBox = std::function<void(const Box &, const char *)>;
void gatherBoxes(const World &world, const Program &program, std::span<const Dim> dims, Positions holders,
                 uint64_t elementBytes, uint32_t position, const char *local, const TakeBox &take);

// The same of a tensor: each distinct piece, whose `at` is 0 in the buffer that comes with it. `local` is the tensor's
// storage at this position, if that holds it.
using TakePiece = std::function<void(const Piece &, const char *)>;
void gatherPieces(const World &world, const Program &program, const Tensor &tensor, uint32_t position,
                  const char *local, const TakePiece &take);

} // namespace shoal::rt

#endif // SHOAL_RT_CORE_GATHER_H
