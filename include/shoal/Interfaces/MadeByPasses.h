// Which attributes and ops of a dialect only passes write: a model (L1) by hand that has one would be taken for their
// work. A program by hand on a later level may have those of its level.
#ifndef SHOAL_INTERFACES_MADEBYPASSES_H
#define SHOAL_INTERFACES_MADEBYPASSES_H

#include "mlir/IR/DialectInterface.h"
#include "mlir/IR/Operation.h"
#include "llvm/ADT/STLExtras.h"

namespace shoal {

/// The name of an attribute or op, and the passes that write it, as a message names them.
struct Made {
  llvm::StringLiteral name, makers;
};

/// What a dialect says of its attributes and ops: it lists those of passes.
class MadeByPasses : public mlir::DialectInterface::Base<MadeByPasses> {
public:
  MadeByPasses(mlir::Dialect *dialect, llvm::ArrayRef<Made> list) : Base(dialect), list(list) {}

  /// The passes that write what has this name; empty for what users write.
  llvm::StringRef getMakers(llvm::StringRef name) const {
    const auto *made = llvm::find_if(list, [&](const Made &entry) { return entry.name == name; });
    return made == list.end() ? llvm::StringRef() : llvm::StringRef(made->makers);
  }

private:
  llvm::ArrayRef<Made> list;
};

/// The passes that write an attribute or op of the dialect; empty for what users write.
inline llvm::StringRef getMakers(mlir::Dialect *dialect, llvm::StringRef name) {
  auto *made = dialect ? dialect->getRegisteredInterface<MadeByPasses>() : nullptr;
  return made ? made->getMakers(name) : llvm::StringRef();
}
inline llvm::StringRef getMakers(mlir::Operation *op) {
  return getMakers(op->getDialect(), op->getName().getStringRef());
}

} // namespace shoal

#endif // SHOAL_INTERFACES_MADEBYPASSES_H
