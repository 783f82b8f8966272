// What arguments and results are made of: whole tensors, of which each rank has a piece. An argument is a piece of one
// tensor, a bucket (`dist.bucket`) holds pieces of several, or ranges of them.
#ifndef SHOAL_INTERPRETER_PARTS_H
#define SHOAL_INTERPRETER_PARTS_H

#include "shoal/Dialect/Dist/IR/Dist.h"
#include "shoal/Interpreter/Interpreter.h"

#include "mlir/Interfaces/FunctionInterfaces.h"

namespace shoal::interp {

struct Part {
  /// What it is in both the program of one device and a plan of it: its role and name, its number where the function says
  /// neither.
  std::string key;
  mlir::RankedTensorType whole; // null: no tensor
  dist::ShardingAttr sharding;  // of the whole's dimensions; null: every rank has all of it
  /// In a bucket: what it is (`nn.param`, `nn.state`; a gradient's name), the type of its piece, which of its elements
  /// are there, the element of the bucket where they begin.
  mlir::Attribute role;
  mlir::RankedTensorType inBucket;
  int64_t begin = 0, end = 0, first = 0;

  bool isInBucket() const { return inBucket != nullptr; }
};

/// One without a bucket. A result that updates a bucket is made of what the argument is.
llvm::SmallVector<Part> partsOfArgument(mlir::FunctionOpInterface func, unsigned index);
std::vector<llvm::SmallVector<Part>> partsOfResults(mlir::FunctionOpInterface func);

/// The piece of a whole tensor that a position has, as its own or before the bucket is cut. Without a mesh all of it.
Tensor takePiece(const Tensor &whole, const Part &part, dist::MeshAttr mesh, int64_t position);

/// The argument of every rank, from the whole tensors of its parts. Padding of buckets is zero.
mlir::FailureOr<TensorList> distribute(mlir::FunctionOpInterface func, unsigned argument, dist::MeshAttr mesh,
                                       const TensorList &wholes);

/// Of what the ranks have of a bucket, a part's elements at a position before the bucket was cut by `sharding`, into
/// the piece that they are of.
void takeFromBucket(llvm::ArrayRef<const Tensor *> ranks, const Part &part, dist::ShardingAttr sharding,
                    dist::MeshAttr mesh, int64_t position, Tensor &piece);

/// The first element of a rank's piece of a bucket that is padding and not zero.
std::optional<int64_t> findFilledPadding(const Tensor &piece, llvm::ArrayRef<Part> parts, dist::ShardingAttr sharding,
                                         dist::MeshAttr mesh, int64_t position);

} // namespace shoal::interp

#endif // SHOAL_INTERPRETER_PARTS_H
