// Edits of a function's signature that are written once. Attribute arrays and function types are uniqued and live as
// long as the context, and MLIR's own setters make a new array of all arguments for each one that they change: a model
// of n parameters, changed one by one, would cost n² in time and in memory.
#ifndef SHOAL_SUPPORT_SIGNATUREEDIT_H
#define SHOAL_SUPPORT_SIGNATUREEDIT_H

#include "mlir/Interfaces/FunctionInterfaces.h"

namespace shoal {

/// Collects what changes in the arguments and results of a function with a body, and writes it when it goes out of
/// scope. Until then the function's own type and attributes are the old ones; new arguments and returned operands
/// exist at once.
class SignatureEdit {
public:
  explicit SignatureEdit(mlir::FunctionOpInterface func);
  SignatureEdit(const SignatureEdit &) = delete;
  ~SignatureEdit();

  /// An attribute as it will be, null when absent.
  mlir::Attribute getArgAttr(unsigned index, llvm::StringRef name) const {
    return args[index].get(name);
  }
  /// Sets an attribute; null removes it.
  void setArgAttr(unsigned index, llvm::StringRef name, mlir::Attribute attr) {
    set(args[index], name, attr);
  }
  void setResultAttr(unsigned index, llvm::StringRef name, mlir::Attribute attr) {
    set(results[index], name, attr);
  }

  /// Gives an argument another type; its users see that at once.
  void setArgType(unsigned index, mlir::Type type);
  /// Appends an argument with one attribute.
  mlir::BlockArgument addArgument(mlir::Type type, llvm::StringRef name, mlir::Attribute attr);
  /// Appends a result with one attribute, returned by the terminator of the only block.
  void addResult(mlir::Value value, llvm::StringRef name, mlir::Attribute attr);

private:
  void set(mlir::DictionaryAttr &attrs, llvm::StringRef name, mlir::Attribute attr);

  mlir::FunctionOpInterface func;
  llvm::SmallVector<mlir::DictionaryAttr> args, results;
  llvm::SmallVector<mlir::Type> argTypes, resultTypes;
  bool isRetyped = false;
};

} // namespace shoal

#endif // SHOAL_SUPPORT_SIGNATUREEDIT_H
