// What strategies share: they find their mesh axis, and place shardings on arguments without ever contradicting
// what is written in the file. A strategy annotates and does nothing else; dist-close-arguments comes last.
#ifndef SHOAL_LIB_DIALECT_DIST_TRANSFORMS_STRATEGY_H
#define SHOAL_LIB_DIALECT_DIST_TRANSFORMS_STRATEGY_H

#include "Causes.h"

#include "shoal/Dialect/Dist/IR/AxisRoles.h"

#include "shoal/Support/SignatureEdit.h"

namespace shoal::dist {

/// The module's mesh, which has every one of `axes`, whole or in parts; else diagnosed, as a need of `strategy`.
llvm::FailureOr<MeshOp> getMeshWithAxes(mlir::ModuleOp module, llvm::ArrayRef<std::string> axes,
                                        llvm::StringRef strategy);

/// The same of axes, "data" where none is named, and what stands for them in the mesh, major to minor.
struct ResolvedAxes {
  MeshOp mesh;
  llvm::SmallVector<mlir::StringAttr> axes;
};
llvm::FailureOr<ResolvedAxes> resolveAxes(mlir::ModuleOp module, llvm::ArrayRef<std::string> named,
                                          llvm::StringRef strategy);

/// Places axes on dimensions of a function's arguments; written when it goes out of scope.
class ArgAnnotator {
public:
  ArgAnnotator(mlir::FunctionOpInterface func, MeshOp mesh);

  /// How an argument's dimension takes axes: freely; it has them already; the hand wants it without them; another
  /// dimension has one of them, by hand or because this strategy has put it there.
  enum class Answer { Free, HasThem, Closed, UsedElsewhere };
  Answer ask(unsigned index, unsigned dim, llvm::ArrayRef<mlir::StringAttr> axes) const;

  /// Diagnoses, as a need of `strategy`, the answer UsedElsewhere.
  mlir::InFlightDiagnostic emitUsedElsewhere(unsigned index, unsigned dim, llvm::ArrayRef<mlir::StringAttr> axes,
                                             llvm::StringRef strategy) const;

  /// Puts axes at the minor end of a dimension for which the answer was Free, and records why. All else of an
  /// argument that had no annotation is closed.
  void shard(unsigned index, unsigned dim, llvm::ArrayRef<mlir::StringAttr> axes, CauseAttr cause);

  /// The annotation as it will be; null when there is none.
  ShardingAttr get(unsigned index) const;
  void set(unsigned index, ShardingAttr sharding);
  /// Lays an argument as another one, for the same causes.
  void setAs(unsigned index, unsigned other);
  /// Lays an argument flat over the axes of another one that lies flat, for the same causes.
  void setFlatAs(unsigned index, unsigned other);

private:
  void copyCauses(unsigned index, unsigned other, llvm::ArrayRef<mlir::StringAttr> axes);

  mlir::FunctionOpInterface func;
  mlir::FlatSymbolRefAttr symbol;
  SignatureEdit signature;
};

} // namespace shoal::dist

#endif // SHOAL_LIB_DIALECT_DIST_TRANSFORMS_STRATEGY_H
