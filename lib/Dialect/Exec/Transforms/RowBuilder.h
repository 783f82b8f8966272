// Builds the rows of a rank program: buffers of a placement as SSA values, and one method per kind
// of row. Offsets and waits come later.
#ifndef SHOAL_LIB_DIALECT_EXEC_TRANSFORMS_ROWBUILDER_H
#define SHOAL_LIB_DIALECT_EXEC_TRANSFORMS_ROWBUILDER_H

#include "Layout.h"
#include "MessageStreams.h"
#include "PermuteStreams.h"
#include "Placement.h"

#include "shoal/Interfaces/Lowering.h"

#include "mlir/IR/Builders.h"

namespace shoal::exec {

class RowBuilder {
public:
  RowBuilder(ProgramOp program, Placement &placement, const mlir::SymbolTable &symbols,
             int64_t commStream)
      : builder(program.getBody()), program(program), placement(placement), symbols(symbols),
        commStream(commStream) {}

  /// The argument's storage is an exec.arg that the caller has made.
  void setStorage(unsigned storage, mlir::Value buffer) { storages[storage] = buffer; }

  /// The buffer of a value, in its own shape.
  mlir::Value bufferOf(mlir::Value value);
  mlir::Value rangeOf(Place place, llvm::ArrayRef<int64_t> shape);
  /// The same at a multiple of 64 bytes, a copy where need be for an op to read, unless any place will do.
  mlir::Value aligned(mlir::Operation *reader, mlir::Value tensor, bool mayBeUnaligned);

  /// Gives messages of the step that wait for no others, and permutations that are waited for later, streams of their
  /// own, where there is more than one stream.
  llvm::LogicalResult assignStreams(mlir::func::FuncOp step, dist::MeshAttr mesh);
  /// The rows of an op, at the positions that run it.
  llvm::LogicalResult build(mlir::Operation *op, dist::MeshAttr mesh);
  void copy(mlir::Location loc, mlir::Value from, mlir::Value to, llvm::StringRef name,
            mlir::DenseI64ArrayAttr at = {});
  mlir::OpBuilder &getBuilder() { return builder; }
  const PacedRows &getPaced() const { return paced; }

private:
  llvm::LogicalResult buildRows(mlir::Operation *op, dist::MeshAttr mesh);
  void call(CallOp op);
  mlir::Value workspace(int64_t bytes, Memory memory = Memory::device);
  llvm::LogicalResult library(LoweringOpInterface op);
  llvm::LogicalResult collective(mlir::Operation *op, dist::MeshAttr mesh);
  llvm::LogicalResult group(dist::GroupOp op, dist::MeshAttr mesh);
  llvm::LogicalResult messages(mlir::Location loc, llvm::ArrayRef<mlir::Operation *> ops,
                               dist::MeshAttr mesh);
  void copies(mlir::Operation *op);
  void select(dist::SelectOp op, dist::MeshAttr mesh);
  mlir::StringAttr nameOf(mlir::Operation *op, dist::AxesAttr axes);

  mlir::OpBuilder builder;
  ProgramOp program;
  Placement &placement;
  const mlir::SymbolTable &symbols;
  int64_t commStream;
  llvm::DenseMap<unsigned, mlir::Value> storages;
  llvm::DenseMap<std::tuple<unsigned, int64_t, mlir::Type>, mlir::Value> views;
  llvm::DenseMap<std::pair<mlir::Value, mlir::Attribute>, mlir::Value> alignedCopies; // by the positions of who reads
  MessageStreams messageStreams;
  llvm::DenseMap<mlir::Operation *, int64_t> permuteStreams;
  PacedRows paced;
  int64_t buckets = 0;
};

} // namespace shoal::exec

#endif // SHOAL_LIB_DIALECT_EXEC_TRANSFORMS_ROWBUILDER_H
