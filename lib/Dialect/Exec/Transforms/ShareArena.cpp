// exec-share-arena: the evaluation program's arguments that training keeps move to their places there,
// everything else behind them.
#include "Evaluation.h"
#include "Layout.h"

#include "shoal/Dialect/Exec/IR/Memory.h"
#include "shoal/Dialect/Exec/Transforms/Passes.h"

#include "llvm/ADT/StringMap.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace shoal::exec {

#define GEN_PASS_DEF_SHAREARENAPASS
#include "shoal/passes/ShoalExec.h.inc"

std::optional<ProgramPair> findPair(ModuleOp module) {
  ProgramPair pair;
  for (auto program : module.getOps<ProgramOp>())
    (program.getMode() == Mode::eval ? pair.evaluation : pair.training) = program;
  if (!pair.training || !pair.evaluation)
    return std::nullopt;
  return pair;
}

bool isKept(ArgOp argument) {
  return argument.getKind() != ArgKind::input && argument.getKind() != ArgKind::valid_rows;
}

/// Offsets of hand-written programs are any numbers; those inside an arena of this size can be moved.
constexpr int64_t kMaxArena = int64_t(1) << 61;

static LogicalResult checkArena(ProgramOp program) {
  int64_t arena = program.getArena();
  if (arena > kMaxArena)
    return program.emitOpError() << "arena must be at most 2^61 bytes, got: " << arena;
  auto check = [&](auto storage) -> LogicalResult {
    int64_t offset = storage.getOffset(), bytes = storage.getResult().getType().getNumBytes();
    if (offset <= arena && bytes <= arena - offset)
      return success();
    if (storage->hasAttr(kMemoryAttr))
      return success(); // numbered anew
    return storage.emitOpError() << "must lie inside the arena of " << arena
                                 << " bytes, got: " << bytes << " bytes at " << offset;
  };
  for (auto argument : program.getBody().getOps<ArgOp>())
    if (failed(check(argument)))
      return failure();
  for (auto buffer : program.getBody().getOps<BufferOp>())
    if (failed(check(buffer)))
      return failure();
  return success();
}

static LogicalResult shareArena(ProgramPair pair) {
  if (failed(checkArena(pair.training)) || failed(checkArena(pair.evaluation)))
    return failure();
  int64_t kept = 0; // end of what training keeps
  llvm::StringMap<int64_t> places;
  for (auto argument : pair.training.getBody().getOps<ArgOp>()) {
    if (!isKept(argument))
      continue;
    places[argument.getName()] = argument.getOffset();
    if (liesOnHost(argument))
      continue;
    int64_t end = argument.getOffset() + argument.getResult().getType().getNumBytes();
    kept = std::max<int64_t>(kept, llvm::alignTo(end, kBufferAlignment));
  }

  // Offsets of the rest keep their distances: only their start moves.
  int64_t start = pair.evaluation.getArena();
  SmallVector<ArgOp> inputs;
  for (auto argument : pair.evaluation.getBody().getOps<ArgOp>()) {
    if (!isKept(argument)) {
      inputs.push_back(argument);
      start = std::min<int64_t>(start, argument.getOffset());
      continue;
    }
    auto place = places.find(argument.getName());
    if (place == places.end())
      return argument.emitOpError() << "is no argument of the training program: \""
                                    << argument.getName() << '"';
    argument.setOffset(place->second);
  }
  auto buffers = llvm::to_vector(pair.evaluation.getBody().getOps<BufferOp>());
  for (BufferOp buffer : buffers)
    start = std::min<int64_t>(start, buffer.getOffset());
  for (ArgOp argument : inputs)
    argument.setOffset(argument.getOffset() - start + kept);
  for (BufferOp buffer : buffers)
    buffer.setOffset(buffer.getOffset() - start + kept);

  int64_t arena = std::max<int64_t>(pair.training.getArena(),
                                    pair.evaluation.getArena() - start + kept);
  pair.training.setArena(arena);
  pair.evaluation.setArena(arena);
  // What lies on the host is behind the arena that is now common; the evaluation has its masters alone there.
  numberHostArguments(pair.training);
  for (auto argument : pair.training.getBody().getOps<ArgOp>())
    places[argument.getName()] = argument.getOffset();
  for (auto argument : pair.evaluation.getBody().getOps<ArgOp>())
    if (liesOnHost(argument)) {
      argument.setOffset(places[argument.getName()]);
      pair.evaluation->setAttr(kHostBytesAttr, pair.training->getAttr(kHostBytesAttr));
    }
  return success();
}

namespace {
struct ShareArena : impl::ShareArenaPassBase<ShareArena> {
  void runOnOperation() override {
    if (auto pair = findPair(getOperation()); pair && failed(shareArena(*pair)))
      signalPassFailure();
  }
};
} // namespace

} // namespace shoal::exec
