// pipe-schedule: a schedule of a generator or of a file becomes an op.
#include "CostOptions.h"
#include "ScheduleFile.h"
#include "SplitStages.h"

#include "shoal/Dialect/NN/IR/Roles.h"
#include "shoal/Dialect/Pipe/Transforms/Passes.h"
#include "shoal/Dialect/Pipe/Transforms/StageCosts.h"
#include "shoal/Schedule/Check.h"
#include "shoal/Schedule/Generate.h"
#include "shoal/Schedule/Simulate.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

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

  std::optional<Schedule> refuse(const Fault &fault, ArrayRef<int64_t> lines) {
    InFlightDiagnostic error =
        emitError(getScheduleFileLoc(&getContext(), file, fault.rank < 0 ? 0 : lines[fault.rank])) << fault.message;
    for (const std::string &note : fault.notes)
      error.attachNote(getScheduleFileLoc(&getContext(), file)) << note;
    return std::nullopt;
  }

  /// By which messages stand between the actions of a rank. Of a step they stand where a rank of equal stages would be
  /// waiting: a place further ahead would cost the memory of what arrives, whatever an estimate says that it saves.
  Costs getPace(const Schedule &schedule, const Costs &costs) const {
    return estimate ? Costs::uniform(schedule.shape) : costs;
  }

  /// As options say them, or of the module's own step, which is cut only here and then left as it was.
  FailureOr<Costs> findCosts(ModuleOp module, const Schedule &schedule) {
    if (!estimate) {
      FailureOr<Costs> costs = readCosts(module, schedule.shape);
      // What one rank runs is not cut. Of more ranks nobody says here which stages they have.
      std::optional<StringRef> own = schedule.shape.ranks == 1 ? std::optional<StringRef>("") : std::nullopt;
      if (failed(costs) || (!costsFile.empty() && failed(readProfile(module, costsFile, own, *costs))))
        return failure();
      return costs;
    }
    OwningOpRef<ModuleOp> copy = module.clone();
    if (failed(splitStages(*copy, schedule.shape.getStages(), splitsBackward(schedule))))
      return failure();
    return estimateCosts(*copy, schedule.shape, costsFile);
  }

  FailureOr<Optimizer> readOptimizer(ModuleOp module) {
    std::optional<Optimizer> known = symbolizeOptimizer(optimizer.empty() ? "none" : llvm::StringRef(optimizer));
    if (!known)
      return module.emitError() << "optimizer must be none, update or norm, got: " << optimizer;
    return *known;
  }

  std::optional<Schedule> fromGenerator(ModuleOp module) {
    llvm::StringRef name = schedule.empty() ? "1f1b" : llvm::StringRef(schedule);
    GenerateOptions options;
    FailureOr<Optimizer> known = readOptimizer(module);
    if (failed(known))
      return std::nullopt;
    options.optimizer = *known;
    options.isForwardOnly = forwardOnly;
    Shape shape{ranks == 0 ? 2 : ranks, microbatches == 0 ? 4 : microbatches,
                chunks == 0 ? getDefaultChunks(name) : chunks};
    std::string error = findFault(shape);
    if (!error.empty())
      return fail(module, error);
    std::optional<Schedule> made = generate(name, shape, options, error);
    if (!made)
      return fail(module, error);
    FailureOr<Costs> costs = findCosts(module, *made);
    if (failed(costs))
      return std::nullopt;
    options.costs = *costs;
    made = generate(name, shape, options, error);
    assert(made && "costs change the order only");
    if (messages)
      addMessages(*made, getPace(*made, *costs));
    return made;
  }

  std::optional<Schedule> fromFile(ModuleOp module) {
    if (!schedule.empty())
      return fail(module, "the order is that of the file: schedule must not be said, got: " + schedule.getValue());
    std::vector<int64_t> lines;
    Shape said{ranks, microbatches, chunks};
    FailureOr<Schedule> read = readScheduleFile(&getContext(), file, fileText, said, &lines);
    FailureOr<Optimizer> step = readOptimizer(module);
    if (failed(read) || failed(step))
      return std::nullopt;
    std::optional<Fault> fault;
    if (forwardOnly) {
      for (std::vector<Action> &actions : read->ranks)
        llvm::erase_if(actions, [](const Action &action) { return action.kind != ActionKind::Forward; });
      read->peak.clear();
    } else if (!optimizer.empty()) {
      fault = setOptimizer(*read, *step);
    }
    bool hasGradients = llvm::any_of(module.getOps<func::FuncOp>(), nn::hasGradient);
    if (!fault)
      fault = check(*read, hasGradients);
    if (fault)
      return refuse(*fault, lines);
    bool needsMessages = messages && !read->hasMessages();
    // The profile is for who simulates the order, and refused here.
    bool readsCosts = !costsFile.empty() || (!estimate && needsMessages);
    FailureOr<Costs> costs = readsCosts ? findCosts(module, *read) : FailureOr<Costs>(Costs::uniform(read->shape));
    if (failed(costs))
      return std::nullopt;
    if (needsMessages)
      addMessages(*read, getPace(*read, *costs));
    return *read;
  }
};

} // namespace

} // namespace shoal::pipe
