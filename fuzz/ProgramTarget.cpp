// Rank programs: whatever passes the check must be readable, by every part of the runtime that
// reads it, without a look outside of the blob or the arena.
#include "Target.h"
#include "core/footprint.h"
#include "core/options.h"
#include "core/parameters.h"
#include "core/piece.h"
#include "core/program.h"
#include "shoal-rt/traffic.h"

#include <vector>

using namespace shoal;
using namespace shoal::rt;

namespace {

// Larger programs are checked, but not walked: the fuzzer should not wait for memory.
constexpr uint64_t kMaxArena = 1 << 20;
constexpr uint32_t kMaxPositions = 64;

// Every operand, at both ends of its range; the address sanitizer watches the arena.
void touch(std::vector<char> &arena, const View &view) {
  uint64_t bytes = view.elements * elementBytes(view.dtype);
  if (bytes == 0)
    return;
  volatile char *at = arena.data() + view.offset;
  at[0] = at[0];
  at[bytes - 1] = at[bytes - 1];
}

void touchMatrix(std::vector<char> &arena, const View &view, int64_t rows, int64_t columns,
                 int64_t ld, int64_t batches, int64_t stride) {
  uint64_t size = elementBytes(view.dtype);
  uint64_t last = uint64_t(batches - 1) * uint64_t(stride) + uint64_t(rows - 1) * uint64_t(ld) +
                  uint64_t(columns - 1);
  fuzz::require(last < view.elements, "a matrix must lie inside its view");
  volatile char *at = arena.data() + view.offset;
  at[last * size + size - 1] = at[last * size + size - 1];
}

void walkRows(const Program &program, uint32_t position, std::vector<char> &arena) {
  for (const Instr &instr : program.instrs()) {
    std::span<const uint32_t> operands = program.operands(instr);
    std::span<const int64_t> params = program.params(instr);
    for (uint32_t view : operands)
      touch(arena, program.views()[view]);
    for (const Peer &peer : program.peers(instr)) {
      touch(arena, program.views()[peer.view]);
      uint32_t other = program.peerOf(peer, position);
      fuzz::require(other == kNone || other < program.numPositions(), "a peer must exist");
    }
    if (instr.op == Opcode::Library && LibraryFunction(instr.a) == LibraryFunction::Gemm) {
      bool ta = params[kGemmTransA], tb = params[kGemmTransB];
      int64_t m = params[kGemmM], n = params[kGemmN], k = params[kGemmK], b = params[kGemmBatch];
      touchMatrix(arena, program.views()[operands[0]], ta ? k : m, ta ? m : k, params[kGemmLdA], b,
                  params[kGemmStrideA]);
      touchMatrix(arena, program.views()[operands[1]], tb ? n : k, tb ? k : n, params[kGemmLdB], b,
                  params[kGemmStrideB]);
      touchMatrix(arena, program.views()[operands[2]], m, n, params[kGemmLdC], b,
                  params[kGemmStrideC]);
    }
    if (isCommunication(instr.op) && instr.a != kNone) {
      std::span<const uint32_t> axes = program.axesOf(program.groups()[instr.a]);
      fuzz::require(program.linear(position, axes) < program.extent(axes), "a member has a place");
      if (!operands.empty())
        sentBytes(instr.op, program.extent(axes), program.linear(position, axes),
                  params.empty() ? 0 : uint64_t(params[0]),
                  program.views()[operands[0]].elements, 8);
    }
    if (instr.op == Opcode::Wait)
      fuzz::require(uint64_t(params[0]) < program.header().numEvents, "an event must exist");
  }
}

void walkPiece(const Program &program, const Piece &piece, uint32_t view, std::vector<char> &arena) {
  uint64_t size = elementBytes(program.views()[view].dtype);
  uint64_t globalElements = 1;
  for (const BoxDim &dim : piece.box.dims)
    globalElements *= dim.global;
  fuzz::require(piece.at + piece.elements() <= program.views()[view].elements, "a piece must lie inside its storage");
  piece.forEachRun([&](uint64_t global, uint64_t local, uint64_t count) {
    fuzz::require(global + count <= globalElements, "a piece must lie inside its tensor");
    volatile char *at = arena.data() + program.views()[view].offset;
    at[(local + count) * size - 1] = at[local * size];
  });
}

void walkBoxes(const Program &program, std::span<const Dim> dims, uint32_t view, uint32_t position,
               std::vector<char> &arena) {
  walkPiece(program, pieceOf(boxOf(program, dims, position)), view, arena);
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  fuzz::expectOneLine([&] {
    Program program(data, size);
    const char *help[] = {"program", "--help"};
    parseOptions(2, help, program);
    if (program.header().arenaBytes > kMaxArena || program.numPositions() > kMaxPositions)
      return;
    std::vector<char> arena(program.header().arenaBytes);
    for (uint32_t position = 0; position < program.numPositions(); ++position) {
      fuzz::require(program.positionOfRank(program.deviceIds()[position]) == position,
                    "each rank has one position");
      walkRows(program, position, arena);
      countBytes(program, position);
      for (uint32_t row : program.rowsAt(position))
        fuzz::require(row < program.instrs().size(), "a row must exist");
      for (const Arg &arg : program.args())
        walkBoxes(program, program.dims(arg), arg.view, position, arena);
      for (const Result &result : program.results())
        walkBoxes(program, program.dims(result), result.view, position, arena);
      for (const Tensor &tensor : program.tensors()) {
        walkPiece(program, pieceOf(program, tensor, position), tensor.view, arena);
        fuzz::require(!firstHolders(program, shardingAxes(program, tensor), program.holders(tensor)).empty(),
                      "a tensor must be held");
        program.fileShape(tensor);
      }
      initializeArguments(program, position, /*seed=*/1, /*file=*/nullptr, arena.data());
    }
  });
  return 0;
}
