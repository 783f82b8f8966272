// Text of the `nn` attributes. Floats are printed with the fewest digits that read back exactly, so
// that a module survives any number of round trips.
#include "shoal/Dialect/NN/IR/NN.h"

#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

#include <charconv>
#include <cmath>

using namespace mlir;
using namespace shoal::nn;

#include "shoal/Dialect/NN/NNEnums.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "shoal/Dialect/NN/NNAttrs.cpp.inc"

void NNDialect::registerAttributes() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "shoal/Dialect/NN/NNAttrs.cpp.inc"
      >();
}

static void printExact(AsmPrinter &printer, const llvm::APFloat &value) {
  char digits[64];
  auto end = std::to_chars(digits, digits + sizeof(digits), value.convertToDouble()).ptr;
  StringRef text(digits, end - digits);
  // The lexer's float literals need a point: 1e-05 is written 1.0e-05.
  size_t exponent = text.find('e');
  StringRef mantissa = text.substr(0, exponent);
  printer << mantissa;
  if (!mantissa.contains('.'))
    printer << ".0";
  if (exponent != StringRef::npos)
    printer << text.substr(exponent);
}

static ParseResult parseFinite(AsmParser &parser, llvm::APFloat &value) {
  double number;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseFloat(number))
    return failure();
  if (!std::isfinite(number))
    return parser.emitError(loc) << "must be a finite number, got: " << number;
  value = llvm::APFloat(number);
  return success();
}

static ParseResult parseString(AsmParser &parser, StringAttr &attr) {
  std::string text;
  if (parser.parseString(&text))
    return failure();
  attr = StringAttr::get(parser.getContext(), text);
  return success();
}

/// How many numbers follow the name of a distribution, in parentheses.
static unsigned getNumInitValues(Init init) {
  switch (init) {
  case Init::constant:
    return 1;
  case Init::uniform:
  case Init::normal:
    return 2;
  case Init::zeros:
  case Init::ones:
  case Init::kaiming_uniform:
  case Init::xavier_uniform:
    return 0;
  }
  llvm_unreachable("unknown initial distribution");
}

// #nn.input.

Attribute InputAttr::parse(AsmParser &parser, Type) {
  StringAttr name;
  if (parser.parseLess() || parseString(parser, name))
    return {};
  bool batched = true;
  if (succeeded(parser.parseOptionalComma())) {
    if (parser.parseKeyword("unbatched"))
      return {};
    batched = false;
  }
  if (parser.parseGreater())
    return {};
  return InputAttr::get(parser.getContext(), name, batched);
}

void InputAttr::print(AsmPrinter &printer) const {
  printer << '<' << getName();
  if (!getBatched())
    printer << ", unbatched";
  printer << '>';
}

// #nn.indices.

Attribute IndicesAttr::parse(AsmParser &parser, Type) {
  int64_t size, ignored;
  if (parser.parseLess())
    return {};
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseInteger(size))
    return {};
  bool mayIgnore = succeeded(parser.parseOptionalComma());
  if (mayIgnore && (parser.parseKeyword("ignored") || parser.parseEqual() || parser.parseInteger(ignored)))
    return {};
  if (parser.parseGreater())
    return {};
  if (size < 1)
    return parser.emitError(loc) << "indices must be of at least 1 row or class, got: " << size, Attribute();
  return IndicesAttr::get(parser.getContext(), size, mayIgnore ? std::optional(ignored) : std::nullopt);
}

void IndicesAttr::print(AsmPrinter &printer) const {
  printer << '<' << getSize();
  if (getIgnored())
    printer << ", ignored = " << *getIgnored();
  printer << '>';
}

// #nn.param.

Attribute ParamAttr::parse(AsmParser &parser, Type) {
  StringAttr name;
  StringRef keyword;
  if (parser.parseLess() || parseString(parser, name) || parser.parseComma() ||
      parser.parseKeyword("init") || parser.parseEqual())
    return {};
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseKeyword(&keyword))
    return {};
  std::optional<Init> init = symbolizeInit(keyword);
  if (!init) {
    parser.emitError(loc) << "initial distribution must be one of zeros, ones, constant, uniform, "
                             "normal, kaiming_uniform, xavier_uniform, got: "
                          << keyword;
    return {};
  }
  llvm::APFloat values[2] = {llvm::APFloat(0.0), llvm::APFloat(0.0)};
  unsigned count = getNumInitValues(*init);
  if (count && parser.parseLParen())
    return {};
  for (unsigned i = 0; i < count; ++i)
    if ((i && parser.parseComma()) || parseFinite(parser, values[i]))
      return {};
  if (count && parser.parseRParen())
    return {};
  DenseI64ArrayAttr file;
  if (succeeded(parser.parseOptionalComma())) {
    SmallVector<int64_t> shape;
    if (parser.parseKeyword("file") || parser.parseEqual())
      return {};
    SMLoc shapeLoc = parser.getCurrentLocation();
    if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, [&]() -> ParseResult {
          return parser.parseInteger(shape.emplace_back());
        }))
      return {};
    if (shape.empty())
      return parser.emitError(shapeLoc) << "the shape in files must have dimensions, got: []", Attribute();
    for (int64_t size : shape)
      if (size < 1)
        return parser.emitError(shapeLoc) << "sizes of the shape in files must be at least 1, got: " << size,
               Attribute();
    file = DenseI64ArrayAttr::get(parser.getContext(), shape);
  }
  if (parser.parseGreater())
    return {};
  if (*init == Init::uniform && values[0] > values[1]) {
    parser.emitError(loc) << "uniform must have its lower bound first, got: ("
                          << values[0].convertToDouble() << ", " << values[1].convertToDouble() << ")";
    return {};
  }
  if (*init == Init::normal && values[1].isNegative()) {
    parser.emitError(loc) << "normal must have a standard deviation of at least 0, got: "
                          << values[1].convertToDouble();
    return {};
  }
  return ParamAttr::get(parser.getContext(), name, *init, values[0], values[1], file);
}

void ParamAttr::print(AsmPrinter &printer) const {
  printer << '<' << getName() << ", init = " << stringifyInit(getInit());
  unsigned count = getNumInitValues(getInit());
  if (count) {
    printer << '(';
    printExact(printer, getA());
    if (count == 2) {
      printer << ", ";
      printExact(printer, getB());
    }
    printer << ')';
  }
  if (getFile()) {
    printer << ", file = [";
    llvm::interleaveComma(getFile().asArrayRef(), printer.getStream());
    printer << ']';
  }
  printer << '>';
}

// #nn.buffer.

Attribute BufferAttr::parse(AsmParser &parser, Type) {
  StringAttr name;
  llvm::APFloat init(0.0);
  if (parser.parseLess() || parseString(parser, name) || parser.parseComma() ||
      parser.parseKeyword("init") || parser.parseEqual() || parseFinite(parser, init) ||
      parser.parseGreater())
    return {};
  return BufferAttr::get(parser.getContext(), name, init);
}

void BufferAttr::print(AsmPrinter &printer) const {
  printer << '<' << getName() << ", init = ";
  printExact(printer, getInit());
  printer << '>';
}

// #nn.state.

Attribute StateAttr::parse(AsmParser &parser, Type) {
  StringAttr name, of;
  llvm::APFloat init(0.0);
  if (parser.parseLess() || parseString(parser, name) || parser.parseComma() ||
      parser.parseKeyword("of") || parser.parseEqual() || parseString(parser, of) ||
      parser.parseComma() || parser.parseKeyword("init") || parser.parseEqual() ||
      parseFinite(parser, init) || parser.parseGreater())
    return {};
  return StateAttr::get(parser.getContext(), name, of, init);
}

void StateAttr::print(AsmPrinter &printer) const {
  printer << '<' << getName() << ", of = " << getOf() << ", init = ";
  printExact(printer, getInit());
  printer << '>';
}
