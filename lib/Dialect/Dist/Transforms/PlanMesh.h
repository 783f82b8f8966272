// The mesh as the partitioner sees it: axes by number, and which of them this run partitions.
// Shardings are split into the part over those axes (a Layout) and the part that stays annotated.
#ifndef SHOAL_LIB_DIALECT_DIST_TRANSFORMS_PLANMESH_H
#define SHOAL_LIB_DIALECT_DIST_TRANSFORMS_PLANMESH_H

#include "ReshardPlan.h"

#include "shoal/Dialect/Dist/IR/Dist.h"

#include <string>

namespace shoal::dist {

class PlanMesh {
public:
  /// `partitioned` names the axes of this run; empty: all. Diagnoses unknown axes at `mesh`.
  static llvm::FailureOr<PlanMesh> get(MeshOp mesh, llvm::ArrayRef<std::string> partitioned);

  llvm::ArrayRef<int64_t> sizes() const { return axisSizes; }
  mlir::StringAttr name(unsigned axis) const { return attr.getAxes()[axis].getName(); }
  bool isPartitioned(unsigned axis) const { return inRun[axis]; }
  /// Whether some annotation names axes of a later run, so that values must stay annotated.
  bool hasRemaining() const { return remaining; }
  mlir::MLIRContext *getContext() const { return attr.getContext(); }

  /// What a sharding says of this run's axes, and of the others. A dimension may mix both only
  /// with this run's axes major, and where shards nest; diagnosed at `op` otherwise.
  struct Parts {
    Layout layout;
    Layout rest;
  };
  llvm::FailureOr<Parts> split(mlir::Location loc, ShardingAttr sharding,
                               mlir::RankedTensorType type) const;

  Layout whole(int64_t rank) const;
  ShardingAttr toSharding(const Layout &layout) const;
  /// `base` with the axes of `layout` put at the minor end of each dimension.
  ShardingAttr extend(ShardingAttr base, const Layout &layout) const;
  /// The tag of a value that this run lays further as `layout`. Null where shards of shards are not
  /// the shards over both axes, because sizes do not divide: no sharding tells how the value lies.
  GlobalAttr extend(GlobalAttr tag, const Layout &layout) const;
  AxesAttr toAxes(llvm::ArrayRef<unsigned> axes) const;
  /// Of a tensor, or of a future of one.
  template <typename Shaped>
  Shaped localType(Shaped type, const Layout &layout) const {
    return llvm::cast<Shaped>(type.clone(localShape(type.getShape(), axisSizes, layout)));
  }
  /// Of every mesh position its linear position along axes, major to minor.
  llvm::SmallVector<int64_t> indicesAlong(llvm::ArrayRef<unsigned> axes) const;

  /// `[{"x"}, {}]`, `[{}] sum{"data"}`: for reasons and messages.
  std::string print(const Layout &layout) const;

private:
  /// Whether a sharding among an op's attributes names an axis of a later run.
  bool namesRemaining(mlir::Attribute attributes) const;

  mlir::FlatSymbolRefAttr symbol;
  MeshAttr attr;
  llvm::SmallVector<int64_t> axisSizes;
  llvm::SmallVector<bool> inRun;
  bool remaining = false;
};

/// `{"x", "y"}`.
std::string printAxes(llvm::ArrayRef<mlir::StringAttr> axes);

} // namespace shoal::dist

#endif // SHOAL_LIB_DIALECT_DIST_TRANSFORMS_PLANMESH_H
