// The state of one function's partition: what its values are locally, and where local ops go.
// Partition.cpp drives it, PartitionOps.cpp builds ops on shards, PartitionAccumulate.cpp
// micro-batch regions.
#ifndef SHOAL_LIB_DIALECT_DIST_TRANSFORMS_PARTITIONER_H
#define SHOAL_LIB_DIALECT_DIST_TRANSFORMS_PARTITIONER_H

#include "FactorSharding.h"
#include "LocalValues.h"

#include "shoal/Support/SignatureEdit.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace shoal::dist {

class Partitioner {
public:
  Partitioner(const PlanMesh &mesh, mlir::func::FuncOp func)
      : mesh(mesh), func(func), signature(func), values(mesh) {}

  llvm::LogicalResult run();

private:
  llvm::LogicalResult partitionBlock(mlir::Block &block);
  llvm::LogicalResult partitionOp(mlir::Operation *op);
  llvm::LogicalResult partitionRuled(ShardingRuleOpInterface op);
  llvm::LogicalResult partitionUnruled(mlir::Operation *op);
  llvm::LogicalResult partitionReshard(ReshardOp op);
  llvm::LogicalResult partitionAccumulate(AccumulateOp op);
  llvm::LogicalResult partitionReturn(mlir::func::ReturnOp op);
  llvm::LogicalResult decompose(ShardingRuleOpInterface op, const OpSharding &sharding);
  void placeSource(mlir::Operation *part, mlir::Operation *op, const OpSharding &sharding);

  /// What the annotation of a value says; nothing when it has none.
  llvm::FailureOr<std::optional<PlanMesh::Parts>> annotationOf(mlir::Value value);
  /// The layouts of results over the axes of later runs, by the op's rule, where nothing is annotated.
  llvm::SmallVector<Layout> inferRests(mlir::Operation *op, const ShardingRule &rule,
                                       llvm::function_ref<const Layout &(mlir::Value)> restOf) const;
  std::optional<OpSharding> chooseCheapest(ShardingRuleOpInterface op, const ShardingRule &rule,
                                           llvm::ArrayRef<const Layout *> wanted);
  llvm::FailureOr<OpSharding> choose(ShardingRuleOpInterface op, const ShardingRule &rule,
                                     llvm::ArrayRef<const Layout *> wanted);

  llvm::FailureOr<mlir::Value> getOperand(mlir::Operation *op, mlir::Value value,
                                          const Layout &layout, const llvm::Twine &what);
  /// The value in `layout`, built in the block where it is defined; `what` it is to `user`.
  llvm::FailureOr<mlir::Value> get(mlir::Operation *user, mlir::Value value, const Layout &layout,
                                   const llvm::Twine &what);
  mlir::Value maskPadding(mlir::Operation *op, mlir::Value local, mlir::Value global,
                          const Layout &layout, unsigned dim, double fill);
  /// Interchanges rows so that a device's part of every micro-batch lies together.
  llvm::FailureOr<mlir::Value> exchangeMicrobatches(AccumulateOp op, unsigned input,
                                                    const Layout &wanted);

  /// The linear position along axes, times `scale`: this device's, or that of the device `back` places before it,
  /// cyclically.
  mlir::Value axisIndex(mlir::OpBuilder &b, mlir::Location loc, llvm::ArrayRef<unsigned> axes, int64_t scale,
                        int64_t back = 0);
  /// A number for each place along axes, this device's.
  mlir::Value placeConstant(mlir::OpBuilder &b, mlir::Location loc, llvm::ArrayRef<unsigned> axes,
                            llvm::ArrayRef<int64_t> values);
  /// Why `op` sends parts of `global`, which are `what`, between the devices of axes.
  ReasonAttr reasonOfPassing(mlir::Operation *op, mlir::Value global, llvm::ArrayRef<unsigned> axes,
                             llvm::StringRef what, llvm::StringRef where);
  /// What LocalizeContext::startShift asks, for `global`.
  mlir::Value startShift(mlir::OpBuilder &b, mlir::Operation *op, mlir::Value local, mlir::Value global,
                         llvm::ArrayRef<unsigned> axes, int64_t forward, llvm::StringRef what);
  /// Annotates and tags what was built for `op` from its local operands since `last`.
  void finish(mlir::Operation *op, mlir::Operation *last, llvm::ArrayRef<mlir::Value> operands,
              llvm::ArrayRef<mlir::Value> results, llvm::ArrayRef<Layout> layouts, llvm::ArrayRef<Layout> rests);
  /// Where axes came from, for the partition of those that remain.
  void keepWhy(mlir::Operation *op, mlir::Operation *local) const;
  GlobalAttr tagOf(mlir::Operation *op, unsigned result, const Layout &layout);
  /// Defines a result that was made in `made`, and brings it into the annotated layout.
  llvm::LogicalResult defineResult(mlir::Operation *op, unsigned result, mlir::Value local,
                                   const Layout &made, const Layout &rest,
                                   const std::optional<PlanMesh::Parts> &wanted);
  llvm::LogicalResult setBoundary(bool isArgument, unsigned index, mlir::RankedTensorType type,
                                  const Layout &layout, const Layout &rest);

  mlir::OpBuilder &builder() { return frames.back().second; }

  const PlanMesh &mesh;
  mlir::func::FuncOp func;
  SignatureEdit signature; // what arguments and results are pieces of
  LocalValues values;
  /// Masked forms of local values, by dimension and fill: operands of several reductions share
  /// them.
  llvm::DenseMap<mlir::Value, llvm::SmallVector<std::tuple<unsigned, double, mlir::Value>, 1>>
      masks;
  /// The op whose operands were last sent around a ring, and the number of that ring.
  mlir::Operation *ringOp = nullptr;
  int64_t ring = -1;
  /// Blocks being rebuilt, outermost first, with where their local ops go.
  llvm::SmallVector<std::pair<mlir::Block *, mlir::OpBuilder>, 2> frames;

  friend class ShardContext;
};

} // namespace shoal::dist

#endif // SHOAL_LIB_DIALECT_DIST_TRANSFORMS_PARTITIONER_H
