// The reference interpreter: runs an L1 function on one device, or an L2 function on all ranks of
// its mesh in one process. Plain, slow and obviously right; the oracle of the tests and of
// `--verify-plan`. Collectives do what their definition says, padding that a definition leaves
// unspecified holds NaN (floats) or `kPaddingInt` (integers), so that a missing mask is seen.
#ifndef SHOAL_INTERPRETER_INTERPRETER_H
#define SHOAL_INTERPRETER_INTERPRETER_H

#include "shoal/Interpreter/Tensor.h"

#include "mlir/IR/Operation.h"
#include "llvm/ADT/SmallVector.h"

#include <functional>
#include <vector>

namespace mlir {
class DialectRegistry;
namespace func {
class FuncOp;
} // namespace func
} // namespace mlir

namespace shoal::dist {
class MeshAttr;
class ShardingAttr;
} // namespace shoal::dist

namespace shoal::interp {

/// Attaches the reference semantics of the `nn` ops (ReferenceOpInterface).
void registerReferenceModels(mlir::DialectRegistry &registry);

enum class Precision {
  Program, ///< float results are rounded to their element type after every op
  F64,     ///< everything stays in double, whatever the element type
};

/// What integers hold where a shard has padding.
inline constexpr int64_t kPaddingInt = -1234567890;

struct RunOptions {
  Precision precision = Precision::F64;
  /// Sees the results of every op that has some, right after it ran; not where `dist.at` has it run elsewhere.
  /// `position` is the mesh position of the rank, 0 on one device.
  std::function<void(mlir::Operation *op, int64_t position, llvm::ArrayRef<const Tensor *> results)>
      observer;
};

/// The arguments, or the results, of one rank; of a result that only other positions have a tensor without a type.
using TensorList = std::vector<Tensor>;

/// Runs an L1 function. Reshards are the identity; collectives are an error. Fails after an error
/// at the op that cannot be run.
mlir::FailureOr<TensorList> runGlobal(mlir::func::FuncOp func, const TensorList &arguments,
                                      const RunOptions &options = {});

/// Runs an L2 function on every position of the mesh, one list of arguments per position. A
/// deadlock, collectives that do not match, and sends whose receive has another type are errors.
mlir::FailureOr<std::vector<TensorList>> runLocal(mlir::func::FuncOp func, dist::MeshAttr mesh,
                                                  const std::vector<TensorList> &arguments,
                                                  const RunOptions &options = {});

/// The shard of a whole tensor that a mesh position holds; elements past the end are padding. A
/// partial sharding gives the first device along the unreduced axes the value and the others the
/// identity of the reduction.
Tensor takeShard(const Tensor &whole, dist::ShardingAttr sharding, dist::MeshAttr mesh,
                 int64_t position);

/// The whole-tensor index of the first element of a position's shard, one per dimension.
llvm::SmallVector<int64_t> shardOffsets(llvm::ArrayRef<int64_t> localShape,
                                        dist::ShardingAttr sharding, dist::MeshAttr mesh,
                                        int64_t position);

/// Rounds to the tensor's element type (floats under Precision::Program; integers wrap always).
void normalize(Tensor &tensor, Precision precision);

} // namespace shoal::interp

#endif // SHOAL_INTERPRETER_INTERPRETER_H
