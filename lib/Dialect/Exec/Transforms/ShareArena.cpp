// exec-share-arena: the evaluation program's arguments that training keeps move to their places there,
// everything else behind them.
#include "Evaluation.h"
#include "Layout.h"

#include "shoal/Dialect/Exec/IR/ArenaUse.h"
#include "shoal/Dialect/Exec/Transforms/Passes.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace shoal::exec {

#define GEN_PASS_DEF_SHAREARENAPASS
#include "shoal/passes/ShoalExec.h.inc"

bool outlivesStep(ArgOp argument) {
  return argument.getKind() != ArgKind::input && argument.getKind() != ArgKind::valid_rows;
}

/// Offsets of hand-written programs are any numbers; those inside an arena of this size can be moved.
constexpr int64_t kMaxArena = int64_t(1) << 61;

static LogicalResult checkArenas(ProgramOp program) {
  for (Memory memory : {Memory::device, Memory::host})
    if (int64_t bytes = getArenaBytes(program, memory); bytes > kMaxArena)
      return program.emitOpError() << "arena must be at most 2^61 bytes, got: " << bytes;
  auto check = [&](auto storage) -> LogicalResult {
    int64_t offset = storage.getOffset(), bytes = storage.getResult().getType().getNumBytes();
    int64_t arena = getArenaBytes(program, getMemory(storage.getResult()));
    if (offset <= arena && bytes <= arena - offset)
      return success();
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

/// In one memory, of programs whose kept arguments are the same.
static void shareArena(Programs pair, const PositionClasses &stepClasses, const PositionClasses &evaluationClasses,
                       Memory memory) {
  // Per class, the end of what training keeps.
  SmallVector<int64_t> kept(stepClasses.size(), 0);
  for (auto argument : pair.step.getBody().getOps<ArgOp>()) {
    if (!outlivesStep(argument) || getMemory(argument.getResult()) != memory)
      continue;
    int64_t end = argument.getOffset() + argument.getResult().getType().getNumBytes();
    for (unsigned number : stepClasses.of(argument))
      kept[number] = std::max<int64_t>(kept[number], llvm::alignTo(end, kBufferAlignment));
  }
  // Per class, where the rest begins.
  int64_t size = getArenaBytes(pair.evaluation, memory);
  SmallVector<int64_t> starts(evaluationClasses.size(), size);
  llvm::DenseSet<Operation *> touched;
  for (auto [start, at] : llvm::zip_equal(starts, evaluationClasses.get()))
    for (auto [buffer, span] : findSpans(at)) {
      touched.insert(buffer);
      if (getMemory(buffer.getResult()) == memory)
        start = std::min<int64_t>(start, buffer.getOffset());
    }
  auto forRest = [&](auto visit) {
    for (auto argument : pair.evaluation.getBody().getOps<ArgOp>())
      if (!outlivesStep(argument) && getMemory(argument.getResult()) == memory)
        visit(argument, evaluationClasses.of(argument));
    for (auto buffer : pair.evaluation.getBody().getOps<BufferOp>())
      if (getMemory(buffer.getResult()) == memory)
        visit(buffer, touched.contains(buffer) ? ArrayRef<unsigned>() : evaluationClasses.of(buffer));
  };
  forRest([&](auto storage, ArrayRef<unsigned> numbers) {
    for (unsigned number : numbers)
      starts[number] = std::min<int64_t>(starts[number], storage.getOffset());
  });
  // Offsets of the rest keep their distances: it moves as a whole, to where each class has room for it.
  llvm::DenseMap<int64_t, unsigned> stepClassOf;
  for (auto [number, at] : llvm::enumerate(stepClasses.get()))
    for (int64_t position : at.positions)
      stepClassOf[position] = number;
  int64_t distance = std::numeric_limits<int64_t>::min();
  for (auto [start, at] : llvm::zip_equal(starts, evaluationClasses.get()))
    for (int64_t position : at.positions)
      distance = std::max(distance, kept[stepClassOf[position]] - start);
  forRest([&](auto storage, ArrayRef<unsigned>) { storage.setOffset(storage.getOffset() + distance); });
  int64_t arena = std::max(getArenaBytes(pair.step, memory), size + distance);
  setArenaBytes(pair.step, memory, arena);
  setArenaBytes(pair.evaluation, memory, arena);
}

static LogicalResult shareArenas(Programs pair) {
  if (failed(checkArenas(pair.step)) || failed(checkArenas(pair.evaluation)))
    return failure();
  llvm::StringMap<ArgOp> places;
  for (auto argument : pair.step.getBody().getOps<ArgOp>())
    if (outlivesStep(argument))
      places[argument.getName()] = argument;
  for (auto argument : pair.evaluation.getBody().getOps<ArgOp>()) {
    if (!outlivesStep(argument))
      continue;
    ArgOp place = places.lookup(argument.getName());
    if (!place)
      return argument.emitOpError() << "is no argument of the training program: \""
                                    << argument.getName() << '"';
    argument.setOffset(place.getOffset());
  }
  PositionClasses stepClasses(pair.step), evaluationClasses(pair.evaluation);
  shareArena(pair, stepClasses, evaluationClasses, Memory::device);
  shareArena(pair, stepClasses, evaluationClasses, Memory::host);
  return success();
}

namespace {
struct ShareArena : impl::ShareArenaPassBase<ShareArena> {
  void runOnOperation() override {
    if (llvm::hasNItemsOrLess(getOperation().getOps<ProgramOp>(), 1))
      return; // nobody to share with
    FailureOr<Programs> programs = findPrograms(getOperation());
    if (failed(programs) || (programs->evaluation && failed(shareArenas(*programs))))
      signalPassFailure();
  }
};
} // namespace

} // namespace shoal::exec
