// Bytes a rank sends in a collective on a ring. The compiler's promise and the
// runtime's counters use these formulas and nothing else, each on numbers of its own:
// the compiler from types, the runtime from the arguments of its MPI calls.
#ifndef SHOAL_RT_TRAFFIC_H
#define SHOAL_RT_TRAFFIC_H

#include "shoal-rt/program.h"

namespace shoal::rt {

constexpr uint64_t elementBytes(DType type) {
  switch (type) {
  case DType::F64:
  case DType::I64:
    return 8;
  case DType::F32:
  case DType::I32:
    return 4;
  case DType::BF16:
    return 2;
  case DType::I1: // one byte each in memory
    return 1;
  }
  return 0;
}

// Whether a row's traffic is counted, that is, whether it talks to other ranks.
constexpr bool isCommunication(Opcode op) {
  return op >= Opcode::AllReduce && op <= Opcode::Barrier;
}

// The `kind` of reports. A PointToPoint row counts once per send, as "send".
constexpr const char *collectiveKind(Opcode op) {
  switch (op) {
  case Opcode::AllReduce:
    return "all_reduce";
  case Opcode::AllGather:
    return "all_gather";
  case Opcode::ReduceScatter:
    return "reduce_scatter";
  case Opcode::AllToAll:
    return "all_to_all";
  case Opcode::Broadcast:
    return "broadcast";
  case Opcode::Scatter:
    return "scatter";
  case Opcode::Gather:
    return "gather";
  case Opcode::Permute:
    return "collective_permute";
  case Opcode::PointToPoint:
    return "send";
  case Opcode::Barrier:
    return "barrier";
  default:
    return nullptr;
  }
}

// Bytes sent by the rank at `position` (0 <= position < ranks) of a group.
//   elements: of the full buffer: the gathered result of an all-gather or gather, the
//             whole input of a reduce-scatter, all-to-all or scatter, else the buffer.
//             Where a formula divides it by `ranks`, it is rounded up to a multiple.
//   root:     position of the root of a broadcast, scatter or gather.
// A permute or send is given ranks = 2 when the data leaves the rank, else 1.
constexpr uint64_t sentBytes(Opcode op, uint64_t ranks, uint64_t position, uint64_t root,
                             uint64_t elements, uint64_t bytesPerElement) {
  if (ranks <= 1)
    return 0;
  uint64_t chunk = (elements + ranks - 1) / ranks * bytesPerElement;
  uint64_t full = elements * bytesPerElement;
  switch (op) {
  case Opcode::AllReduce: // reduce-scatter, then all-gather
    return 2 * (ranks - 1) * chunk;
  case Opcode::AllGather:
  case Opcode::ReduceScatter:
  case Opcode::AllToAll:
    return (ranks - 1) * chunk;
  case Opcode::Broadcast: // a pipeline from the root; the last rank sends nothing
    return (position + ranks - root) % ranks == ranks - 1 ? 0 : full;
  case Opcode::Scatter:
    return position == root ? (ranks - 1) * chunk : 0;
  case Opcode::Gather:
    return position == root ? 0 : chunk;
  case Opcode::Permute:
  case Opcode::PointToPoint:
    return full;
  default:
    return 0;
  }
}

} // namespace shoal::rt

#endif // SHOAL_RT_TRAFFIC_H
