// pipe-schedule: a schedule of a generator or of a file becomes an op.
#include "CostOptions.h"
#include "ScheduleFile.h"

#include "shoal/Dialect/Pipe/Transforms/Passes.h"
#include "shoal/Schedule/Check.h"
#include "shoal/Schedule/Generate.h"
#include "shoal/Schedule/Simulate.h"

using namespace mlir;

namespace shoal::pipe {

#define GEN_PASS_DEF_SCHEDULEPASS
#include "shoal/passes/ShoalPipe.h.inc"

namespace {

class SchedulePass : public WithCosts<impl::SchedulePassBase<SchedulePass>> {
public:
  using WithCosts::WithCosts;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (Operation *other = SymbolTable::lookupSymbolIn(module, symbol)) {
      module.emitError() << "symbol must be a new name, got: " << symbol.getValue();
      other->emitRemark() << "has it already";
      return signalPassFailure();
    }
    std::optional<Schedule> made = file.empty() ? fromGenerator(module) : fromFile(module);
    if (!made)
      return signalPassFailure();
    OpBuilder builder = OpBuilder::atBlockEnd(module.getBody());
    Location loc = file.empty() ? module.getLoc() : getScheduleFileLoc(&getContext(), file);
    ScheduleOp::create(builder, loc, symbol, *made);
  }

private:
  std::optional<Schedule> fail(Operation *op, const Twine &message) { return fail(op->getLoc(), message); }
  std::optional<Schedule> fail(Location loc, const Twine &message) {
    emitError(loc) << message;
    return std::nullopt;
  }

  std::optional<Schedule> fromGenerator(ModuleOp module) {
    llvm::StringRef name = schedule.empty() ? "1f1b" : llvm::StringRef(schedule);
    GenerateOptions options;
    std::optional<Optimizer> known = symbolizeOptimizer(optimizer.empty() ? "none" : llvm::StringRef(optimizer));
    if (!known)
      return fail(module, "optimizer must be none, update or norm, got: " + optimizer.getValue());
    options.optimizer = *known;
    options.isForwardOnly = forwardOnly;
    Shape shape{ranks == 0 ? 2 : ranks, microbatches == 0 ? 4 : microbatches,
                chunks == 0 ? getDefaultChunks(name) : chunks};
    std::string error = findFault(shape);
    if (!error.empty())
      return fail(module, error);
    FailureOr<Costs> costs = readCosts(module, shape);
    if (failed(costs))
      return std::nullopt;
    options.costs = *costs;
    std::optional<Schedule> made = generate(name, shape, options, error);
    if (!made)
      return fail(module, error);
    if (messages)
      addMessages(*made, *costs);
    return made;
  }

  std::optional<Schedule> fromFile(ModuleOp module) {
    for (const auto *option : {&schedule, &optimizer})
      if (!option->empty())
        return fail(module, "the order is that of the file: " + option->ArgStr +
                                " must not be said, got: " + option->getValue());
    FailureOr<Schedule> read = readScheduleFile(&getContext(), file);
    if (failed(read))
      return std::nullopt;
    if (forwardOnly) {
      for (std::vector<Action> &actions : read->ranks)
        llvm::erase_if(actions, [](const Action &action) { return action.kind != ActionKind::Forward; });
      read->peak.clear();
    }
    for (auto [option, value] : {std::pair(&ranks, read->shape.ranks),
                                 {&microbatches, read->shape.microbatches},
                                 {&chunks, read->shape.chunks}})
      if (*option != 0 && *option != value)
        return fail(getScheduleFileLoc(&getContext(), file),
                    option->ArgStr + " must be that of the file (" + Twine(value) +
                        "), got: " + Twine(option->getValue()));
    FailureOr<Costs> costs = readCosts(module, read->shape);
    if (failed(costs))
      return std::nullopt;
    // Messages are derived from what is complete; what is not is for pipe-verify to tell.
    if (messages && !read->hasMessages() && !check(*read))
      addMessages(*read, *costs);
    return *read;
  }
};

} // namespace

} // namespace shoal::pipe
