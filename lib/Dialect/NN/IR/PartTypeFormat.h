// `custom<PartType>` of the assembly formats: the type of an input, and of the part of it that a shard has where that
// is another one. Included by the file that includes the generated op definitions.
#ifndef SHOAL_LIB_DIALECT_NN_IR_PARTTYPEFORMAT_H
#define SHOAL_LIB_DIALECT_NN_IR_PARTTYPEFORMAT_H

#include "mlir/IR/OpImplementation.h"

namespace shoal::nn {

inline mlir::ParseResult parsePartType(mlir::OpAsmParser &parser, mlir::Type &whole, mlir::Type &part) {
  if (parser.parseType(whole))
    return mlir::failure();
  part = whole;
  return mlir::success(failed(parser.parseOptionalArrow()) || succeeded(parser.parseType(part)));
}

inline void printPartType(mlir::OpAsmPrinter &printer, mlir::Operation *, mlir::Type whole, mlir::Type part) {
  printer << whole;
  if (part != whole)
    printer << " -> " << part;
}

} // namespace shoal::nn

#endif // SHOAL_LIB_DIALECT_NN_IR_PARTTYPEFORMAT_H
