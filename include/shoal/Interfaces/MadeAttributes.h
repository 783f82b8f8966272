// Which attributes of a dialect only passes write: a model (L1) by hand that has one would be taken for their work. A
// program by hand on a later level may have those of its level.
#ifndef SHOAL_INTERFACES_MADEATTRIBUTES_H
#define SHOAL_INTERFACES_MADEATTRIBUTES_H

#include "mlir/IR/DialectInterface.h"
#include "llvm/ADT/STLExtras.h"

namespace shoal {

/// An attribute and the passes that write it, as a message names them.
struct MadeAttribute {
  llvm::StringLiteral name, makers;
};

/// What a dialect says of its attributes: it lists those of passes.
class MadeAttributes : public mlir::DialectInterface::Base<MadeAttributes> {
public:
  MadeAttributes(mlir::Dialect *dialect, llvm::ArrayRef<MadeAttribute> list) : Base(dialect), list(list) {}

  /// The passes that write the attribute; empty for those that users write.
  llvm::StringRef getMakers(llvm::StringRef name) const {
    const auto *made = llvm::find_if(list, [&](const MadeAttribute &entry) { return entry.name == name; });
    return made == list.end() ? llvm::StringRef() : llvm::StringRef(made->makers);
  }

private:
  llvm::ArrayRef<MadeAttribute> list;
};

} // namespace shoal

#endif // SHOAL_INTERFACES_MADEATTRIBUTES_H
