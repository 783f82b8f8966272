// The local values that stand for a global one: one per layout it was needed in, so that a value is
// gathered or reduced once however many users want it so. Also emits the collectives of a plan.
#ifndef SHOAL_LIB_DIALECT_DIST_TRANSFORMS_LOCALVALUES_H
#define SHOAL_LIB_DIALECT_DIST_TRANSFORMS_LOCALVALUES_H

#include "Causes.h"
#include "PlanMesh.h"

#include "mlir/IR/Builders.h"

#include <map>

namespace shoal::dist {

class LocalValues {
public:
  explicit LocalValues(const PlanMesh &mesh) : mesh(mesh) {}

  /// `local` holds `global` in `layout`; `rest` is its layout over the axes of later runs.
  void define(mlir::Value global, const Layout &layout, mlir::Value local, const Layout &rest);
  /// Where the value's annotation says another layout than the one it was made in.
  void setAnnotated(mlir::Value global, const Layout &layout) {
    entries.find(global)->second.annotated = layout;
  }

  /// The layout that the value is annotated with, and over the axes of later runs.
  const Layout &layoutOf(mlir::Value global) const;
  const Layout &restOf(mlir::Value global) const;

  /// Bytes that one rank sends to have the value in a layout; nothing when it cannot be had.
  std::optional<int64_t> cost(mlir::Value global, const Layout &to) const;

  /// The cheapest way between two layouts; equal questions are answered once.
  const std::optional<ReshardPlan> &plan(mlir::RankedTensorType type, const Layout &from,
                                         const Layout &to) const;

  /// The value in a layout, by collectives built at `builder` where no one needed it so before; `what` says as what
  /// `user` needs it. Diagnoses at `user` a layout that cannot be had.
  llvm::FailureOr<mlir::Value> get(mlir::OpBuilder &builder, mlir::Operation *user,
                                   mlir::Value global, const Layout &to, const llvm::Twine &what);

  /// The value in a layout, from the annotated one by collectives of its own that serve no later user.
  llvm::FailureOr<mlir::Value> fetchAgain(mlir::OpBuilder &builder, mlir::Operation *user, mlir::Value global,
                                          const Layout &to, const llvm::Twine &what);

  /// Emits one step; the result is annotated with `rest`.
  mlir::Value emit(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value input,
                   const ReshardStep &step, const Layout &rest, ReasonAttr reason) const;

  /// Why a step is taken towards `user`, which needs `global`: with the annotations that brought the axes that it
  /// moves, those of the value and those that `user` knows.
  ReasonAttr reasonOf(const ReshardStep &step, mlir::Operation *user, mlir::Value global, mlir::StringAttr what,
                      mlir::StringAttr change) const;

  /// Annotates results of a new op for later runs; removes annotations when there are none.
  void annotate(mlir::Operation *op, llvm::ArrayRef<const Layout *> rests) const;

private:
  struct Entry {
    mlir::RankedTensorType type; // null for what no collective takes: an index, a future
    Layout annotated, rest;
    llvm::SmallVector<std::pair<Layout, mlir::Value>, 2> variants;
  };
  std::optional<std::pair<ReshardPlan, mlir::Value>> plan(const Entry &entry,
                                                          const Layout &to) const;

  const PlanMesh &mesh;
  llvm::DenseMap<mlir::Value, Entry> entries;
  /// Plans by shape, size of an element and both layouts.
  mutable std::map<std::vector<int64_t>, std::optional<ReshardPlan>> plans;
};

} // namespace shoal::dist

#endif // SHOAL_LIB_DIALECT_DIST_TRANSFORMS_LOCALVALUES_H
