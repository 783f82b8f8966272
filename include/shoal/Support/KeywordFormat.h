// `custom<Keyword>` of the assembly formats: an enum attribute as a bare keyword. Included by the
// file that includes a dialect's generated op definitions.
#ifndef SHOAL_SUPPORT_KEYWORDFORMAT_H
#define SHOAL_SUPPORT_KEYWORDFORMAT_H

#include "mlir/IR/DialectImplementation.h"
#include "mlir/IR/OpImplementation.h"

#include <cstdint>
#include <string>

namespace shoal {

template <typename EnumAttr>
mlir::ParseResult parseKeyword(mlir::OpAsmParser &parser, EnumAttr &attr) {
  using Enum = decltype(attr.getValue());
  constexpr uint32_t kMostWords = 32; // of an enum, whose numbers begin at 0
  llvm::SMLoc place = parser.getCurrentLocation();
  llvm::StringRef word;
  (void)parser.parseOptionalKeyword(&word);
  std::string words;
  for (uint32_t number = 0; number < kMostWords; ++number) {
    llvm::StringRef known = stringifyEnum(static_cast<Enum>(number));
    if (known.empty())
      continue;
    if (known == word) {
      attr = EnumAttr::get(parser.getContext(), static_cast<Enum>(number));
      return mlir::success();
    }
    words += (words.empty() ? "" : ", ") + known.str();
  }
  return parser.emitError(place) << "expected one of " << words << ", got: " << (word.empty() ? "no word" : word);
}

template <typename EnumAttr>
void printKeyword(mlir::OpAsmPrinter &printer, mlir::Operation *, EnumAttr attr) {
  printer << stringifyEnum(attr.getValue());
}

} // namespace shoal

#endif // SHOAL_SUPPORT_KEYWORDFORMAT_H
