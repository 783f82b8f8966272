// A function's arguments and results while some are replaced by others, written once.
#ifndef SHOAL_LIB_DIALECT_DIST_TRANSFORMS_SIGNATURE_H
#define SHOAL_LIB_DIALECT_DIST_TRANSFORMS_SIGNATURE_H

#include "shoal/Dialect/Dist/IR/Dist.h"
#include "shoal/Dialect/NN/IR/Roles.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseMap.h"

namespace shoal::dist {

class Signature {
public:
  explicit Signature(mlir::func::FuncOp func);
  ~Signature();
  Signature(const Signature &) = delete;

  mlir::DictionaryAttr getArgAttrs(mlir::BlockArgument argument) const { return arguments.lookup(argument); }
  /// A new argument in front of `other`.
  mlir::BlockArgument insertBefore(mlir::BlockArgument other, mlir::Type type, mlir::DictionaryAttr attrs);
  /// The argument goes, when nothing reads it any more.
  void erase(mlir::BlockArgument argument) { dead.insert(argument); }

  /// A new result in front of the one that has the name in the role, if there is one.
  void insertResultBefore(llvm::StringRef role, llvm::StringRef name, mlir::Value value, mlir::DictionaryAttr attrs);
  void eraseResult(llvm::StringRef role, llvm::StringRef name);

private:
  struct Result {
    mlir::DictionaryAttr attrs;
    bool isDead = false;
    llvm::SmallVector<std::pair<mlir::Value, mlir::DictionaryAttr>, 1> before; // new ones
  };
  static mlir::DictionaryAttr withIndex(mlir::DictionaryAttr attrs, unsigned index);
  std::optional<unsigned> find(llvm::StringRef role, llvm::StringRef name) const;

  mlir::func::FuncOp func;
  llvm::DenseMap<mlir::BlockArgument, mlir::DictionaryAttr> arguments;
  llvm::DenseSet<mlir::BlockArgument> dead;
  llvm::SmallVector<Result> results;
  llvm::DenseMap<std::pair<mlir::StringAttr, mlir::StringAttr>, unsigned> named;
};

} // namespace shoal::dist

#endif // SHOAL_LIB_DIALECT_DIST_TRANSFORMS_SIGNATURE_H
