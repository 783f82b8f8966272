// Messages of a pipeline, and sums over its stages; see ExplainPipeline.h.
#include "ExplainPipeline.h"
#include "PlanMesh.h"

#include "shoal/Dialect/Dist/IR/AxisRoles.h"
#include "shoal/Dialect/Dist/IR/Messages.h"
#include "shoal/Dialect/NN/IR/NN.h"
#include "shoal/Interfaces/Origin.h"

#include "shoal-rt/timeline.h"

using namespace mlir;

namespace shoal::dist {

bool isOfPipeline(ReasonAttr reason) {
  return reason && llvm::any_of(reason.getCauses(), [](CauseAttr cause) {
           return cause.getStrategy() && cause.getStrategy().getValue() == kPipelineStrategy;
         });
}

/// Who receives what is sent behind the micro-batches: the next that says the same. Null for none.
static RecvOp findReceiver(SendOp send) {
  for (Operation *op = send->getNextNode(); op; op = op->getNextNode())
    if (auto recv = dyn_cast<RecvOp>(op); recv && recv.getReasonAttr() == send.getReasonAttr())
      return recv;
  return {};
}

/// What a sum becomes: the first of a gradient that updates a parameter, and a result of the step. It keeps its number
/// of elements on the way; what has another is made of it. Empty where it becomes neither.
static std::string nameSum(Operation *op) {
  llvm::SetVector<Value> reached;
  auto follow = [&](Operation *user) {
    if (auto send = dyn_cast<SendOp>(user))
      user = findReceiver(send);
    if (user)
      reached.insert(user->result_begin(), user->result_end());
  };
  follow(op);
  for (size_t next = 0; next < reached.size(); ++next) {
    Value value = reached[next];
    for (OpOperand &use : value.getUses()) {
      Operation *user = use.getOwner();
      auto func = dyn_cast_or_null<FunctionOpInterface>(user->getParentOp());
      if (func && user->hasTrait<OpTrait::IsTerminator>())
        return nameResult(func, use.getOperandNumber());
      if (auto update = dyn_cast<nn::OptimizerUpdateOpInterface>(user)) {
        auto parameter = dyn_cast<BlockArgument>(update.getParam());
        if (func && parameter && update.getGrad() == value)
          return "the gradient of " + nameArgument(func, parameter.getArgNumber());
        continue;
      }
      auto isAsLarge = [&](Type made) {
        auto type = dyn_cast<RankedTensorType>(made), own = dyn_cast<RankedTensorType>(value.getType());
        return type && own && type.getNumElements() == own.getNumElements();
      };
      if (passesOn(user) || isa<CollectiveOpInterface>(user) || llvm::all_of(user->getResultTypes(), isAsLarge))
        follow(user);
    }
  }
  return "";
}

/// A value that has its terms in stages of different ranks, or that these share.
static void tellSum(Explanation &it, const StepParts &parts, bool isNorm) {
  // A message is of the part that its receiver is of, as the sum is.
  auto send = dyn_cast<SendOp>(it.op);
  Operation *made = send ? findReceiver(send) : it.op;
  if (parts.hasGradients() && made)
    it.part = StepParts::kNames[parts.get(made)];
  std::string what = isNorm ? "the global norm of the gradients" : nameSum(it.op);
  if (!what.empty() && StringRef(it.asker).starts_with("a sum over stages")) // else it is named
    it.asker += ": " + what;
  it.cause = kPipelineStrategy.str() +
             (send ? ": stages of different ranks share it" : ": its terms are in stages of different ranks");
  it.removal = "stages that share it on one rank: fewer ranks of " + printAxes(it.axes.getAxes()) +
               ", or other boundaries (pipe.stage)";
  if (isNorm)
    it.removal = "gradients that are not clipped by their global norm (--clip-grad-norm)";
}

void tellPipeline(Explanation &it, const StepParts &parts) {
  auto scope = it.op->getAttrOfType<StringAttr>(origin::kScope);
  rt::ActionLabel action = scope ? rt::parseActionLabel(scope.getValue()) : rt::ActionLabel();
  if (action.kind != 'S')
    return tellSum(it, parts, action.kind == 'N');
  it.part = !parts.hasGradients() ? "" : StepParts::kNames[action.backward ? StepParts::Backward : StepParts::Forward];
  if (std::string suffix = " of micro-batch " + std::to_string(action.microbatch);
      StringRef(it.asker).ends_with(suffix)) // it is the same in each
    it.asker.resize(it.asker.size() - suffix.size());
  it.cause = kPipelineStrategy.str() + ": the two stages are on different ranks, and " +
             (action.backward ? "cotangents go back" : "activations go on") + " from one to the other";
  it.removal = "both stages on one rank: fewer ranks of " + printAxes(it.axes.getAxes()) +
               ", or other boundaries (pipe.stage)";
}

llvm::BitVector getPlaces(const llvm::BitVector &positions, MeshAttr mesh, StringAttr axis) {
  llvm::BitVector places(*mesh.getAxisSize(axis));
  for (unsigned position : positions.set_bits())
    places.set(mesh.getIndexAlong(position, axis));
  return places;
}

std::string tellPlaces(const llvm::BitVector &positions, MeshAttr mesh) {
  StringAttr axis = getPipeAxis(mesh);
  if (!axis || positions.all())
    return "";
  llvm::BitVector coordinates = getPlaces(positions, mesh, axis);
  if (coordinates.all())
    return "";
  std::string text = axis.str();
  for (unsigned coordinate : coordinates.set_bits())
    text += (coordinate == unsigned(coordinates.find_first()) ? " " : ", ") + std::to_string(coordinate);
  return text;
}

std::string tellRank(int64_t position, MeshAttr mesh) {
  if (!getPipeAxis(mesh))
    return "mesh position " + std::to_string(position);
  std::string text;
  for (auto [axis, coordinate] : llvm::zip_equal(getAxisNames(mesh), mesh.getCoordinates(position)))
    text += (text.empty() ? "" : ", ") + axis + " " + std::to_string(coordinate);
  return text;
}

} // namespace shoal::dist
