// Sums over the functions of stages.
#include "shoal/Dialect/Pipe/Transforms/StageCosts.h"

#include "shoal/Dialect/Dist/IR/AxisRoles.h"
#include "shoal/Dialect/Dist/Transforms/OpCost.h"
#include "shoal/Dialect/Dist/Transforms/StepParts.h"
#include "shoal/Dialect/NN/IR/Roles.h"
#include "shoal/Dialect/Pipe/Transforms/Passes.h"
#include "shoal/Schedule/Profile.h"
#include "shoal/Support/Elements.h"
#include "shoal/Support/Files.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/xxhash.h"

using namespace mlir;

namespace shoal::pipe {

namespace {

constexpr double kMillisecondsPerSecond = 1e3;
constexpr uint64_t kMostProfileBytes = uint64_t(1) << 26;

double toMilliseconds(double cost) { return dist::toSeconds(cost) * kMillisecondsPerSecond; }

int64_t bytesOf(Value value) { return tensorBytes(value.getType()); }

class Estimator {
public:
  Estimator(ModuleOp module, dist::AccumulateOp loop, const Shape &shape)
      : symbols(module), loop(loop), mesh(dist::lookupMesh(module).getMesh()), shape(shape) {}

  Costs run() {
    StageCosts nothing;
    nothing.forward = nothing.backward = nothing.backwardInput = nothing.backwardWeight = 0;
    costs.stages.assign(shape.getStages(), nothing);
    for (auto call : loop.getBody().front().getOps<CallOp>())
      if (int64_t(call.getStage()) < shape.getStages())
        add(call);
    for (StageCosts &stage : costs.stages) {
      stage.backward += stage.backwardInput + stage.backwardWeight; // has either
      if (stage.backwardInput + stage.backwardWeight == 0)
        stage.backwardInput = stage.backwardWeight = stage.backward / 2;
    }
    costs.transfer = dist::kSecondsPerMessage * kMillisecondsPerSecond;
    costs.transferByte = kMillisecondsPerSecond / dist::kSentBytesPerSecond;
    costs.norm = costs.transfer;
    double rest = 0;
    for (Operation *op = loop->getNextNode(); op; op = op->getNextNode())
      rest += dist::costOf(op, mesh);
    costs.update = toMilliseconds(rest) / double(shape.ranks);
    return costs;
  }

private:
  void add(CallOp call) {
    StageCosts &stage = costs.stages[call.getStage()];
    double duration = toMilliseconds(measure(symbols.lookup<func::FuncOp>(call.getCallee())));
    switch (call.getPart()) {
    case Part::Forward:
      stage.forward += duration;
      break;
    case Part::BackwardInput:
      stage.backwardInput += duration;
      break;
    case Part::BackwardWeight:
      stage.backwardWeight += duration;
      break;
    default:
      stage.backward += duration;
    }
    for (Value result : call.getResults())
      addReaders(call, result);
  }

  /// What is sent of a value, and what is kept.
  void addReaders(CallOp call, Value value) {
    StageCosts &stage = costs.stages[call.getStage()];
    bool isKept = false, isKeptForWeight = false, isSent = false;
    for (Operation *user : value.getUsers()) {
      auto reader = dyn_cast<CallOp>(user);
      if (!reader)
        continue;
      if (reader.getStage() != call.getStage()) {
        isSent = true;
        continue;
      }
      isKept |= call.getPart() == Part::Forward;
      isKeptForWeight |= reader.getPart() == Part::BackwardWeight;
    }
    int64_t bytes = bytesOf(value);
    stage.stashBytes += isKept ? bytes : 0;
    stage.weightStashBytes += isKeptForWeight ? bytes : 0;
    if (!isSent)
      return;
    if (call.getPart() == Part::Forward) {
      stage.messageBytes += bytes;
    } else if (call.getStage() > 0) {
      StageCosts &receiver = costs.stages[call.getStage() - 1];
      receiver.cotangentBytes = receiver.cotangentBytes.value_or(0) + bytes;
    }
  }

  double measure(func::FuncOp callee) {
    double cost = 0;
    callee.getBody().walk([&](Operation *op) {
      if (op->getNumRegions() == 0 && !op->hasTrait<OpTrait::IsTerminator>())
        cost += double(dist::countRuns(op)) * dist::costOf(op, mesh);
    });
    return cost;
  }

  SymbolTable symbols;
  dist::AccumulateOp loop;
  dist::MeshAttr mesh;
  const Shape &shape;
  Costs costs;
};

} // namespace

/// The region over micro-batches whose body calls stages, if any.
static dist::AccumulateOp findStages(ModuleOp module) {
  dist::AccumulateOp loop;
  module.walk([&](dist::AccumulateOp region) {
    if (!region.getBody().front().getOps<CallOp>().empty())
      loop = region;
  });
  return loop;
}

/// Of ops that lie in one stage, which no other repeats, with their types; in no order, which a split changes.
static uint64_t fingerprint(ModuleOp module, dist::AccumulateOp loop) {
  std::vector<std::string> lines;
  SymbolTable symbols(module);
  for (auto call : loop.getBody().front().getOps<CallOp>())
    symbols.lookup<func::FuncOp>(call.getCallee()).getBody().walk([&](Operation *op) {
      if (!op->hasAttr(PipeDialect::kStageAttr))
        return;
      llvm::raw_string_ostream line(lines.emplace_back());
      line << call.getStage() << " " << op->getName() << " ";
      llvm::interleaveComma(op->getOperandTypes(), line);
      line << " -> ";
      llvm::interleaveComma(op->getResultTypes(), line);
    });
  auto step = loop->getParentOfType<func::FuncOp>();
  for (BlockArgument argument : step.getArguments())
    if (!step.getArgAttr(argument.getArgNumber(), nn::NNDialect::kInputAttr))
      llvm::raw_string_ostream(lines.emplace_back()) << "argument " << argument.getType();
  llvm::sort(lines);
  return llvm::xxh3_64bits(llvm::join(lines, "\n"));
}

/// Of one micro-batch the whole input is in the shape of a list of them.
static bool isInput(Value value) {
  if (auto reshape = value.getDefiningOp<nn::ReshapeOp>())
    value = reshape.getInput();
  return isa<BlockArgument>(value);
}

std::string describeStages(ModuleOp module, const Shape &shape) {
  dist::AccumulateOp loop = findStages(module);
  if (!loop)
    return "";
  auto step = loop->getParentOfType<func::FuncOp>();
  std::string text;
  llvm::raw_string_ostream line(text);
  line << step.getSymName() << ", " << shape.getStages() << " stages ("
       << llvm::utohexstr(fingerprint(module, loop), true, 16) << "), micro-batches of";
  for (auto [argument, input] : llvm::zip_equal(loop.getBody().getArguments(), loop.getInputs()))
    if (isInput(input)) {
      auto type = cast<RankedTensorType>(argument.getType());
      line << " ";
      llvm::interleave(type.getShape(), line, "x");
      line << "x" << type.getElementType();
    }
  dist::MeshAttr mesh = dist::lookupMesh(module).getMesh();
  for (dist::MeshAxisAttr axis : mesh.getAxes())
    if (axis.getName() != dist::getPipeAxis(mesh) && axis.getSize() > 1)
      line << ", " << axis.getName().getValue() << "=" << axis.getSize();
  return text;
}

LogicalResult readProfile(ModuleOp module, StringRef profile, std::optional<StringRef> own, Costs &costs) {
  std::string error;
  std::unique_ptr<llvm::MemoryBuffer> text = openInput(profile, kMostProfileBytes, error);
  if (!text || !applyProfile(text->getBuffer(), profile, own, costs, error))
    return module.emitError() << error;
  return success();
}

FailureOr<Costs> estimateCosts(ModuleOp module, const Shape &shape, StringRef profile) {
  dist::AccumulateOp loop = findStages(module);
  if (!loop || !dist::lookupMesh(module)) {
    module.emitError() << "costs are those of a step with functions of stages (pipe-split), got: none";
    return failure();
  }
  Costs costs = Estimator(module, loop, shape).run();
  if (profile.empty())
    return costs;
  bool isEvaluation = loop->getParentOfType<func::FuncOp>()->hasAttr(nn::kEvaluationAttr);
  std::string own = describeStages(module, shape);
  if (failed(readProfile(module, profile, isEvaluation ? std::nullopt : std::optional<StringRef>(own), costs)))
    return failure();
  return costs;
}

} // namespace shoal::pipe
