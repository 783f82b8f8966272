// What a mesh axis is for, told by its name: one table for the command line, the strategies and the order in
// which axes are partitioned. A part of a split axis ("tensor.1") has the role of its origin ("tensor").
#ifndef SHOAL_DIALECT_DIST_IR_AXISROLES_H
#define SHOAL_DIALECT_DIST_IR_AXISROLES_H

#include "shoal/Dialect/Dist/IR/Dist.h"

namespace shoal::dist {

enum class AxisRole {
  Batch,    ///< splits the rows of the batch; gradients are packed before they are reduced over it
  Model,    ///< splits parameters and what is computed from them
  Pipe,     ///< splits the program into stages; no sharding names it
  Sequence, ///< splits the tokens of a row
};

/// The most devices of a mesh.
inline constexpr int64_t kMaxDevices = 1'000'000;

/// The axes that strategies take where none is named: rows of the batch, and what tensor parallelism shards.
inline constexpr llvm::StringLiteral kDataAxis = "data", kTensorAxis = "tensor", kPipeAxis = "pipe", kContextAxis = "context",
                                     kUlyssesAxis = "ulysses";

struct KnownAxis {
  llvm::StringLiteral name;
  AxisRole role;
  /// By which a user shards over it; empty where strategies take it unasked, or for the stages of a pipeline.
  llvm::StringLiteral flag = "";
};

/// The axes that --mesh may name, in the order in which messages list them.
llvm::ArrayRef<KnownAxis> getKnownAxes();

/// The role of an axis; Model for a name of the user's own, which only annotations by hand give a meaning.
AxisRole getAxisRole(llvm::StringRef axis);
/// The flag that shards over an axis; empty for none.
llvm::StringRef getAxisFlag(llvm::StringRef axis);

/// "tensor.1", and back: the axis that a part was split from, or the axis itself.
std::string getAxisPart(llvm::StringRef axis, unsigned part);
llvm::StringRef getAxisOrigin(llvm::StringRef axis);

/// Names for what has no attributes: reports, options, messages. Null axes are none.
std::vector<std::string> getAxisNames(AxesAttr axes);
std::vector<std::string> getAxisNames(MeshAttr mesh);

/// The axis along which the stages of a pipeline lie; null without a mesh, where there is none, or one rank along it.
mlir::StringAttr getPipeAxis(MeshAttr mesh);
/// The ranks along it in the mesh of the module that `op` is in; 1 without a pipeline.
int64_t getPipeRanks(mlir::Operation *op);
bool hasPipeline(mlir::Operation *op);

/// The mesh's axes that stand for `axis`: itself, or its parts, major to minor. Empty when there are none.
llvm::SmallVector<mlir::StringAttr> resolveAxis(MeshAttr mesh, llvm::StringRef axis);

} // namespace shoal::dist

#endif // SHOAL_DIALECT_DIST_IR_AXISROLES_H
