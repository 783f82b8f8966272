// Micro-batch regions on shards. A micro-batch is the rows that L1 says: a device computes its part
// of each, and sums over micro-batches are reduced over devices once, outside.
#include "Partitioner.h"

#include "shoal/Dialect/NN/IR/Roles.h"
#include "shoal/Support/Elements.h"

using namespace mlir;

namespace shoal::dist {

/// How reasons call an input: by the name of the argument that it is.
static std::string nameInput(AccumulateOp op, unsigned input) {
  auto argument = dyn_cast<BlockArgument>(op.getInputs()[input]);
  auto func = argument ? dyn_cast_or_null<FunctionOpInterface>(argument.getOwner()->getParentOp()) : nullptr;
  StringRef name = func ? nn::getArgName(func, argument.getArgNumber()) : StringRef();
  return name.empty() ? "input " + std::to_string(input) + " of the micro-batches"
                      : "\"" + name.str() + "\" in micro-batches";
}

FailureOr<Value> Partitioner::exchangeMicrobatches(AccumulateOp op, unsigned input,
                                                   const Layout &wanted) {
  Value global = op.getInputs()[input];
  auto type = cast<RankedTensorType>(global.getType());
  int64_t count = op.getMicrobatches(), rows = type.getDimSize(0) / count;
  if (!values.restOf(global).dims[0].empty())
    return op->emitOpError("input ")
           << input << " is sharded along its rows by axes of this run and of a later one";
  // Seen as [micro-batch, row, ...], a shard of rows is a shard of whole micro-batches, when it
  // holds whole ones, and what is wanted is a shard of each.
  Layout have = values.layoutOf(global);
  if (count % groupSize(have.dims[0], mesh.sizes()) != 0)
    have.dims[0].clear();
  // Rows are only moved, so partial values are exchanged as they are where that is wanted.
  have.unreduced = wanted.unreduced;
  have.kind = wanted.kind;
  auto split = [](const Layout &layout, Axes micro, Axes row) {
    Layout view = layout;
    view.dims.front() = std::move(row);
    view.dims.insert(view.dims.begin(), std::move(micro));
    return view;
  };
  SmallVector<int64_t> shape(type.getShape());
  shape.front() = rows;
  shape.insert(shape.begin(), count);
  Layout from = split(have, have.dims[0], {}), to = split(wanted, {}, wanted.dims[0]);
  Layout rest = split(values.restOf(global), {}, {});

  std::string what = nameInput(op, input);
  auto local = get(op, global, have, what);
  if (failed(local))
    return failure();
  auto plan = planReshard(shape, elementBytes(type.getElementType()), mesh.sizes(), from, to);
  if (!plan)
    return op->emitOpError("input ")
           << input << " has no way from " << mesh.print(have)
           << " to a part of every micro-batch that lies as " << mesh.print(wanted);
  OpBuilder &b = builder();
  auto reshape = [&](Value value, ArrayRef<int64_t> to, const Layout &rest) {
    auto op = b.create<nn::ReshapeOp>(value.getLoc(), type.clone(to), value);
    values.annotate(op, {&rest});
    return op.getResult();
  };
  Value view = reshape(*local, localShape(shape, mesh.sizes(), from), rest);
  StringAttr asker = b.getStringAttr(what), change = b.getStringAttr("a shard of rows -> a shard of every micro-batch");
  for (const ReshardStep &step : plan->steps)
    view = values.emit(b, op.getLoc(), view, step, rest, values.reasonOf(step, op, global, asker, change));
  SmallVector<int64_t> flat = localShape(shape, mesh.sizes(), to);
  flat[1] *= flat[0];
  return reshape(view, ArrayRef(flat).drop_front(), values.restOf(global));
}

LogicalResult Partitioner::partitionAccumulate(AccumulateOp op) {
  Block &body = op.getBody().front();
  auto region = std::make_unique<Region>();
  Block &local = region->emplaceBlock();
  SmallVector<Value> inputs;
  SmallVector<Layout> argumentRests;
  for (auto [i, argument] : llvm::enumerate(body.getArguments())) {
    auto parts = annotationOf(argument);
    if (failed(parts))
      return failure();
    Value global = op.getInputs()[i];
    PlanMesh::Parts lies =
        *parts ? **parts : PlanMesh::Parts{values.layoutOf(global), values.restOf(global)};
    bool exchanges =
        op.getMicrobatches() > 1 && !lies.layout.dims.empty() && !lies.layout.dims[0].empty();
    auto input = exchanges ? exchangeMicrobatches(op, i, lies.layout)
                           : get(op, global, lies.layout, nameInput(op, i));
    if (failed(input))
      return failure();
    inputs.push_back(*input);
    auto type = mesh.localType(cast<RankedTensorType>(argument.getType()), lies.layout);
    values.define(argument, lies.layout, local.addArgument(type, argument.getLoc()), lies.rest);
    argumentRests.push_back(lies.rest);
  }

  OpBuilder inside(op.getContext()); // the region has no op yet to ask for a context
  inside.setInsertionPointToEnd(&local);
  frames.push_back({&body, inside});
  if (failed(partitionBlock(body)))
    return failure();
  SmallVector<Value> yields;
  SmallVector<Layout> layouts, rests;
  for (auto [i, value] : llvm::enumerate(body.getTerminator()->getOperands())) {
    // Sums of micro-batches may be summed over devices later, and once; other kinds may not.
    Layout layout = values.layoutOf(value);
    if (layout.kind != ReduceKind::Sum)
      layout.unreduced.clear();
    auto yielded = get(op, value, layout, "sum " + Twine(i) + " over micro-batches");
    if (failed(yielded))
      return failure();
    yields.push_back(*yielded);
    layouts.push_back(layout);
    rests.push_back(values.restOf(value));
  }
  builder().create<YieldOp>(body.getTerminator()->getLoc(), yields);
  frames.pop_back();

  OperationState state(op.getLoc(), op->getName(), inputs, TypeRange(ValueRange(yields)),
                       op->getAttrs());
  state.propertiesAttr = op->getPropertiesAsAttribute();
  state.addRegion(std::move(region));
  Operation *last =
      builder().getInsertionBlock()->empty() ? nullptr : &builder().getInsertionBlock()->back();
  Operation *made = builder().create(state);
  made->removeAttr(DistDialect::kArgShardingsAttr);
  finish(op, last, {}, SmallVector<Value>(made->getResults()), layouts, rests);
  if (mesh.hasRemaining()) {
    SmallVector<Attribute> shardings;
    for (const Layout &rest : argumentRests)
      shardings.push_back(mesh.toSharding(rest));
    made->setAttr(DistDialect::kArgShardingsAttr, ArrayAttr::get(op.getContext(), shardings));
  }
  for (auto [i, result] : llvm::enumerate(op->getResults())) {
    auto parts = annotationOf(result);
    if (failed(parts) ||
        failed(defineResult(op, i, made->getResult(i), layouts[i], rests[i], *parts)))
      return failure();
  }
  return success();
}

} // namespace shoal::dist
