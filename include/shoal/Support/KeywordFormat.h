// `custom<Keyword>` of the assembly formats: an enum attribute as a bare keyword. Included by the
// file that includes a dialect's generated op definitions.
#ifndef SHOAL_SUPPORT_KEYWORDFORMAT_H
#define SHOAL_SUPPORT_KEYWORDFORMAT_H

#include "mlir/IR/DialectImplementation.h"
#include "mlir/IR/OpImplementation.h"

namespace shoal {

template <typename EnumAttr>
mlir::ParseResult parseKeyword(mlir::OpAsmParser &parser, EnumAttr &attr) {
  auto value = mlir::FieldParser<decltype(attr.getValue())>::parse(parser);
  if (failed(value))
    return mlir::failure();
  attr = EnumAttr::get(parser.getContext(), *value);
  return mlir::success();
}

template <typename EnumAttr>
void printKeyword(mlir::OpAsmPrinter &printer, mlir::Operation *, EnumAttr attr) {
  printer << stringifyEnum(attr.getValue());
}

} // namespace shoal

#endif // SHOAL_SUPPORT_KEYWORDFORMAT_H
