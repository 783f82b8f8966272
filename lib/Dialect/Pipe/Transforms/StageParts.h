// The parts of stages that a region over micro-batches is cut into, before they are functions.
#ifndef SHOAL_LIB_DIALECT_PIPE_TRANSFORMS_STAGEPARTS_H
#define SHOAL_LIB_DIALECT_PIPE_TRANSFORMS_STAGEPARTS_H

#include "shoal/Dialect/Dist/IR/Dist.h"
#include "shoal/Dialect/Pipe/IR/Pipe.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/SetVector.h"

#include <map>

namespace shoal::pipe {

/// A part of a stage: what one function holds.
struct PartId {
  int64_t stage;
  Part part;
  bool isForward() const { return part == Part::Forward; }
  auto key() const { return std::pair(stage, part); }
  bool operator==(const PartId &) const = default;
  bool operator<(const PartId &other) const { return key() < other.key(); }
};

/// What a part takes and gives, as values of the region.
struct PartInterface {
  llvm::SetVector<mlir::Value> inputs, outputs;
};

/// Which parts compute an op, and what they hand each other.
class StageParts {
public:
  StageParts(mlir::func::FuncOp func, dist::AccumulateOp loop, int64_t stages, bool splitsBackward);

  /// Finds them; an error where stages need what later ones make. Sums of several stages' terms may change their form.
  llvm::LogicalResult run();

  /// In the order of stages.
  const std::map<PartId, PartInterface> &getInterfaces() const { return interfaces; }
  /// The terms of each sum that the region yields.
  llvm::ArrayRef<llvm::SmallVector<mlir::Value>> getTerms() const { return terms; }
  /// The part that makes a term.
  PartId getHome(mlir::Value term) const { return copies.find(getInner(term))->second.front(); }
  bool has(mlir::Operation *op, PartId part) const { return llvm::is_contained(copies.lookup(op), part); }
  /// The part that hands a value of the region, an input of this part, to it.
  llvm::FailureOr<PartId> findSource(PartId part, mlir::Value value) const;

  /// The op of the region that makes a value, if one does.
  mlir::Operation *getInner(mlir::Value value) const {
    mlir::Operation *def = value.getDefiningOp();
    return def && def->getBlock() == &body ? def : nullptr;
  }
  /// That follow the op's operands; also of those in regions that it has.
  static llvm::SmallVector<mlir::Value> getReads(mlir::Operation *op);

private:
  llvm::LogicalResult placeOps();
  void spreadOverTerms(mlir::OpOperand &use);
  void addRepeated(llvm::SmallVectorImpl<mlir::Value> &terms);
  void place(mlir::Operation *op, bool isTerm);
  void splitBackward();
  llvm::LogicalResult connect();
  llvm::LogicalResult request(PartId part, mlir::Value value);

  Part getPass(mlir::Operation *op) const { return forward.contains(op) ? Part::Forward : Part::Backward; }
  Part getBackward() const { return splitsBackward ? Part::BackwardInput : Part::Backward; }

  mlir::Block &body;
  int64_t stages;
  bool splitsBackward;
  llvm::DenseSet<mlir::Operation *> forward;

  llvm::SmallVector<llvm::SmallVector<mlir::Value>> terms;
  llvm::DenseMap<mlir::Operation *, llvm::SmallVector<PartId, 1>> copies;
  llvm::DenseMap<mlir::Value, llvm::SmallVector<PartId, 2>> needs; // the parts that read a value
  std::map<PartId, PartInterface> interfaces;
};

} // namespace shoal::pipe

#endif // SHOAL_LIB_DIALECT_PIPE_TRANSFORMS_STAGEPARTS_H
