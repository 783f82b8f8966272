// What a rank program is at each mesh position: positions at which the same of it runs and is held are one class, so
// that who asks what a rank does, asks once for all that do the same.
#ifndef SHOAL_DIALECT_EXEC_IR_POSITIONCLASSES_H
#define SHOAL_DIALECT_EXEC_IR_POSITIONCLASSES_H

#include "shoal/Dialect/Exec/IR/Exec.h"

namespace shoal::exec {

struct PositionClass {
  llvm::SmallVector<int64_t> positions; ///< in order
  llvm::SmallVector<ArgOp> arguments;   ///< held there, in order
  /// Rows that run and waits, in order.
  llvm::SmallVector<mlir::Operation *, 0> steps;
};

class PositionClasses {
public:
  /// Follows `exec.at` and the ends of messages. Valid until rows or waits change.
  explicit PositionClasses(ProgramOp program);

  llvm::ArrayRef<PositionClass> get() const { return classes; }
  unsigned size() const { return classes.size(); }
  const PositionClass &operator[](unsigned number) const { return classes[number]; }

  /// The classes that run a row or wait, or hold an argument, in order.
  llvm::ArrayRef<unsigned> of(mlir::Operation *op) const;
  /// The positions of some classes, in order, as `exec.at` has them; null when they are all.
  mlir::DenseI64ArrayAttr getPositions(llvm::ArrayRef<unsigned> numbers) const;

private:
  ProgramOp program;
  int64_t positions;
  llvm::SmallVector<PositionClass> classes;
  llvm::SmallVector<unsigned> everyClass;
  llvm::DenseMap<mlir::Attribute, llvm::SmallVector<unsigned>> classesOf; // by `exec.at`
};

} // namespace shoal::exec

#endif // SHOAL_DIALECT_EXEC_IR_POSITIONCLASSES_H
