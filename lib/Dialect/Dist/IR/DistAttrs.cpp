// Attributes of the dist dialect: their textual forms, which follow Shardy's, and the rules that
// need no mesh to be checked.
#include "shoal/Dialect/Dist/IR/AxisRoles.h"
#include "shoal/Dialect/NN/IR/NN.h"
#include "shoal/Support/Names.h"

#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace shoal;
using namespace shoal::dist;

#include "shoal/Dialect/Dist/DistEnums.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "shoal/Dialect/Dist/DistAttrs.cpp.inc"
#define GET_TYPEDEF_CLASSES
#include "shoal/Dialect/Dist/DistTypes.cpp.inc"

void DistDialect::registerAttributesAndTypes() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "shoal/Dialect/Dist/DistAttrs.cpp.inc"
      >();
  addTypes<
#define GET_TYPEDEF_LIST
#include "shoal/Dialect/Dist/DistTypes.cpp.inc"
      >();
}

// Reasons.

std::string CauseAttr::getText(StringAttr known) const {
  std::string text = getStrategy() ? getStrategy().str() + " shards " : "";
  text += getWhat().getValue();
  if (getLayer() && getLayer() != known)
    text += " in " + getLayer().str();
  return text;
}

std::string ReasonAttr::getAskerText(bool namesLayer) const {
  return getAsker().str() + (getLayer() && namesLayer ? " in " + getLayer().str() : "");
}

std::string ReasonAttr::getCauseText(StringAttr known) const {
  std::string text;
  for (CauseAttr cause : getCauses())
    text += (text.empty() ? "" : "; ") + cause.getText(known);
  return text;
}

std::string ReasonAttr::getText() const {
  std::string text = getAskerText();
  if (getChange())
    text += ": " + getChange().str();
  if (!getCauses().empty())
    text += "; " + getCauseText();
  return text;
}

StringAttr shoal::dist::getReasonText(Attribute reason) {
  if (auto structured = dyn_cast_or_null<ReasonAttr>(reason))
    return StringAttr::get(reason.getContext(), structured.getText());
  return dyn_cast_or_null<StringAttr>(reason);
}

// Text.

static ParseResult parseText(AsmParser &parser, StringAttr &text) {
  std::string words;
  if (parser.parseString(&words))
    return failure();
  // Without a type: axes are compared by identity.
  text = StringAttr::get(parser.getContext(), words);
  return success();
}

static void printText(AsmPrinter &printer, StringAttr text) { printer.printAttributeWithoutType(text); }

static void printAxisList(AsmPrinter &printer, ArrayRef<StringAttr> axes) {
  printer << '{';
  llvm::interleaveComma(axes, printer, [&](StringAttr axis) { printText(printer, axis); });
  printer << '}';
}

static ParseResult parseAxisList(AsmParser &parser, SmallVectorImpl<StringAttr> &axes) {
  return parser.parseCommaSeparatedList(AsmParser::Delimiter::Braces,
                                        [&] { return parseText(parser, axes.emplace_back()); });
}

/// A part of a reason that may be left out: its keyword and its text.
static ParseResult parseOptionalText(AsmParser &parser, StringRef keyword, StringAttr &text) {
  return failed(parser.parseOptionalKeyword(keyword)) ? ParseResult(success()) : parseText(parser, text);
}

static void printOptionalText(AsmPrinter &printer, StringRef keyword, StringAttr text) {
  if (!text)
    return;
  printer << ' ' << keyword << ' ';
  printText(printer, text);
}

// Not by a declared format, which says a fault of the parser's twice.
Attribute CauseAttr::parse(AsmParser &parser, Type) {
  StringAttr what, layer, strategy;
  if (parser.parseLess() || parseText(parser, what) || parseOptionalText(parser, "in", layer) ||
      parseOptionalText(parser, "by", strategy) || parser.parseGreater())
    return {};
  return get(parser.getContext(), what, layer, strategy);
}

void CauseAttr::print(AsmPrinter &printer) const {
  printer << '<';
  printText(printer, getWhat());
  printOptionalText(printer, "in", getLayer());
  printOptionalText(printer, "by", getStrategy());
  printer << '>';
}

Attribute ReasonAttr::parse(AsmParser &parser, Type) {
  StringAttr asker, layer, change;
  SmallVector<CauseAttr> causes;
  auto parseCause = [&] { return parser.parseCustomAttributeWithFallback(causes.emplace_back()); };
  if (parser.parseLess() || parseText(parser, asker) || parseOptionalText(parser, "in", layer) ||
      parseOptionalText(parser, "moves", change) ||
      (succeeded(parser.parseOptionalKeyword("because")) && parser.parseCommaSeparatedList(parseCause)) ||
      parser.parseGreater())
    return {};
  return get(parser.getContext(), asker, layer, change, causes);
}

void ReasonAttr::print(AsmPrinter &printer) const {
  printer << '<';
  printText(printer, getAsker());
  printOptionalText(printer, "in", getLayer());
  printOptionalText(printer, "moves", getChange());
  if (!getCauses().empty()) {
    printer << " because ";
    printer.printStrippedAttrOrType(getCauses());
  }
  printer << '>';
}

Attribute AxesAttr::parse(AsmParser &parser, Type) {
  SMLoc loc = parser.getCurrentLocation();
  SmallVector<StringAttr> axes;
  if (parseAxisList(parser, axes))
    return {};
  return getChecked([&] { return parser.emitError(loc); }, parser.getContext(), axes);
}

void AxesAttr::print(AsmPrinter &printer) const { printAxisList(printer, getAxes()); }

Attribute FlatAttr::parse(AsmParser &parser, Type) {
  SMLoc loc = parser.getCurrentLocation();
  SmallVector<StringAttr> axes;
  if (parser.parseLess() || parseAxisList(parser, axes))
    return {};
  bool perUse = succeeded(parser.parseOptionalComma());
  if ((perUse && parser.parseKeyword("per_use")) || parser.parseGreater())
    return {};
  return getChecked([&] { return parser.emitError(loc); }, parser.getContext(), axes, perUse);
}

void FlatAttr::print(AsmPrinter &printer) const {
  printer << '<';
  printAxisList(printer, getAxes());
  printer << (getPerUse() ? ", per_use>" : ">");
}

// Those of buckets are written out, since a generated parser adds a line with names of C++ to each error.

Attribute GlobalAttr::parse(AsmParser &parser, Type) {
  SMLoc loc = parser.getCurrentLocation();
  int64_t id;
  RankedTensorType type;
  ShardingAttr sharding;
  if (parser.parseLess() || parser.parseInteger(id) || parser.parseComma() || parser.parseType(type) ||
      parser.parseComma() || parser.parseCustomAttributeWithFallback(sharding) || parser.parseGreater())
    return {};
  return getChecked([&] { return parser.emitError(loc); }, parser.getContext(), id, type, sharding);
}

void GlobalAttr::print(AsmPrinter &printer) const {
  printer << '<' << getId() << ", " << getType() << ", ";
  printer.printStrippedAttrOrType(getSharding());
  printer << '>';
}

Attribute MemberAttr::parse(AsmParser &parser, Type) {
  SMLoc loc = parser.getCurrentLocation();
  Attribute role;
  RankedTensorType type;
  GlobalAttr global;
  if (parser.parseLess() || parser.parseAttribute(role) || parser.parseComma() || parser.parseType(type))
    return {};
  // All elements, without a range.
  int64_t begin = 0, end = type.hasStaticShape() ? type.getNumElements() : 0;
  if (succeeded(parser.parseOptionalLSquare()) && (parser.parseInteger(begin) || parser.parseColon() ||
                                                   parser.parseInteger(end) || parser.parseRSquare()))
    return {};
  if (succeeded(parser.parseOptionalKeyword("of")) && parser.parseCustomAttributeWithFallback(global))
    return {};
  if (parser.parseGreater())
    return {};
  return getChecked([&] { return parser.emitError(loc); }, parser.getContext(), role, type, begin, end, global);
}

void MemberAttr::print(AsmPrinter &printer) const {
  printer << '<' << getRole() << ", " << getType();
  if (!isWhole())
    printer << '[' << getBegin() << ':' << getEnd() << ']';
  if (getGlobal()) {
    printer << " of ";
    printer.printStrippedAttrOrType(getGlobal());
  }
  printer << '>';
}

Attribute BucketAttr::parse(AsmParser &parser, Type) {
  SMLoc loc = parser.getCurrentLocation();
  SmallVector<MemberAttr> members;
  if (parser.parseLess() || parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, [&] {
        return parser.parseCustomAttributeWithFallback(members.emplace_back());
      }) || parser.parseGreater())
    return {};
  return getChecked([&] { return parser.emitError(loc); }, parser.getContext(), members);
}

void BucketAttr::print(AsmPrinter &printer) const {
  printer << "<[";
  printer.printStrippedAttrOrType(getMembers());
  printer << "]>";
}

Attribute MeshAxisAttr::parse(AsmParser &parser, Type) {
  StringAttr name;
  int64_t size;
  if (parseText(parser, name) || parser.parseEqual() || parser.parseInteger(size))
    return {};
  return get(parser.getContext(), name, size);
}

void MeshAxisAttr::print(AsmPrinter &printer) const {
  printText(printer, getName());
  printer << '=' << getSize();
}

Attribute MeshAttr::parse(AsmParser &parser, Type) {
  SMLoc loc = parser.getCurrentLocation();
  SmallVector<MeshAxisAttr> axes;
  SmallVector<int64_t> deviceIds;
  auto parseAxis = [&]() -> ParseResult {
    axes.push_back(llvm::dyn_cast_or_null<MeshAxisAttr>(MeshAxisAttr::parse(parser, {})));
    return success(axes.back() != nullptr);
  };
  if (parser.parseLess() || parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, parseAxis))
    return {};
  if (succeeded(parser.parseOptionalComma()) &&
      (parser.parseKeyword("device_ids") || parser.parseEqual() ||
       parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, [&] {
         return parser.parseInteger(deviceIds.emplace_back());
       })))
    return {};
  if (parser.parseGreater())
    return {};
  return getChecked([&] { return parser.emitError(loc); }, parser.getContext(), axes, deviceIds);
}

void MeshAttr::print(AsmPrinter &printer) const {
  printer << "<[";
  llvm::interleaveComma(getAxes(), printer, [&](MeshAxisAttr axis) { axis.print(printer); });
  printer << ']';
  if (!getDeviceIds().empty()) {
    printer << ", device_ids=[";
    llvm::interleaveComma(getDeviceIds(), printer);
    printer << ']';
  }
  printer << '>';
}

Attribute DimShardingAttr::parse(AsmParser &parser, Type) {
  SMLoc loc = parser.getCurrentLocation();
  SmallVector<StringAttr> axes;
  bool closed = true;
  auto parseElement = [&]() -> ParseResult {
    if (!closed)
      return parser.emitError(parser.getCurrentLocation(), "'?' must be the last in a dimension");
    if (succeeded(parser.parseOptionalQuestion())) {
      closed = false;
      return success();
    }
    return parseText(parser, axes.emplace_back());
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Braces, parseElement))
    return {};
  int64_t priority = 0;
  StringRef keyword;
  SMLoc priorityLoc = parser.getCurrentLocation();
  if (succeeded(parser.parseOptionalKeyword(&keyword)) &&
      (!keyword.consume_front("p") || keyword.getAsInteger(10, priority))) {
    parser.emitError(priorityLoc, "priority of a dimension must be p0, p1, ..., got: ") << keyword;
    return {};
  }
  return getChecked([&] { return parser.emitError(loc); }, parser.getContext(), axes, closed,
                    priority);
}

void DimShardingAttr::print(AsmPrinter &printer) const {
  printer << '{';
  llvm::interleaveComma(getAxes(), printer, [&](StringAttr axis) { printText(printer, axis); });
  if (!getIsClosed())
    printer << (getAxes().empty() ? "?" : ", ?");
  printer << '}';
  if (getPriority() != 0)
    printer << 'p' << getPriority();
}

Attribute ShardingAttr::parse(AsmParser &parser, Type) {
  SMLoc loc = parser.getCurrentLocation();
  FlatSymbolRefAttr mesh;
  SmallVector<DimShardingAttr> dims;
  auto kind = ReduceKindAttrEnum::sum;
  SmallVector<StringAttr> unreduced;
  auto parseDim = [&]() -> ParseResult {
    dims.push_back(llvm::dyn_cast_or_null<DimShardingAttr>(DimShardingAttr::parse(parser, {})));
    return success(dims.back() != nullptr);
  };
  if (parser.parseLess() || parser.parseAttribute(mesh) || parser.parseComma() ||
      parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, parseDim))
    return {};
  if (succeeded(parser.parseOptionalComma())) {
    StringRef keyword;
    if (parser.parseKeyword("unreduced") || parser.parseEqual())
      return {};
    SMLoc kindLoc = parser.getCurrentLocation();
    if (parser.parseKeyword(&keyword))
      return {};
    auto parsed = symbolizeReduceKindAttrEnum(keyword);
    if (!parsed) {
      parser.emitError(kindLoc, "unreduced kind must be sum, max or min, got: ") << keyword;
      return {};
    }
    kind = *parsed;
    if (parseAxisList(parser, unreduced))
      return {};
    if (unreduced.empty()) { // it would print as a sharding without it
      parser.emitError(kindLoc, "unreduced must name at least one axis");
      return {};
    }
  }
  if (parser.parseGreater())
    return {};
  return getChecked([&] { return parser.emitError(loc); }, parser.getContext(), mesh, dims, kind,
                    unreduced);
}

void ShardingAttr::print(AsmPrinter &printer) const {
  printer << '<' << getMesh() << ", [";
  llvm::interleaveComma(getDims(), printer, [&](DimShardingAttr dim) { dim.print(printer); });
  printer << ']';
  if (!getUnreducedAxes().empty()) {
    printer << ", unreduced=" << stringifyReduceKindAttrEnum(getUnreducedKind());
    printAxisList(printer, getUnreducedAxes());
  }
  printer << '>';
}

// Rules.

static LogicalResult verifyDistinct(function_ref<InFlightDiagnostic()> emitError,
                                    ArrayRef<StringAttr> axes,
                                    llvm::SmallPtrSetImpl<StringAttr> &seen) {
  for (StringAttr axis : axes)
    if (!seen.insert(axis).second)
      return emitError() << "axis " << axis << " is used twice";
  return success();
}

LogicalResult AxesAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                               ArrayRef<StringAttr> axes) {
  llvm::SmallPtrSet<StringAttr, 4> seen;
  return verifyDistinct(emitError, axes, seen);
}

LogicalResult FlatAttr::verify(function_ref<InFlightDiagnostic()> emitError, ArrayRef<StringAttr> axes, bool) {
  if (axes.empty())
    return emitError() << "a bucket lies sharded over at least one axis, got: {}";
  return AxesAttr::verify(emitError, axes);
}

// 2^63 and above come from the parser as negative.
LogicalResult GlobalAttr::verify(function_ref<InFlightDiagnostic()> emitError, int64_t id, RankedTensorType,
                                 ShardingAttr) {
  return id >= 0 ? success() : emitError() << "id must be from 0 to 2^63 - 1, got: " << id;
}

LogicalResult MemberAttr::verify(function_ref<InFlightDiagnostic()> emitError, Attribute role, RankedTensorType type,
                                 int64_t begin, int64_t end, GlobalAttr global) {
  if (!mlir::isa<nn::ParamAttr, nn::BufferAttr, nn::StateAttr, StringAttr>(role))
    return emitError() << "a member of a bucket must be #nn.param, #nn.buffer, #nn.state or the name of a gradient, got: "
                       << role;
  if (!type.hasStaticShape() || type.getNumElements() == 0)
    return emitError() << "a member of a bucket must have at least 1 element, got: " << type;
  if (begin < 0 || begin >= end || end > type.getNumElements())
    return emitError() << "the range of a member must hold elements of " << type << ", got: [" << begin << ":" << end
                       << "]";
  if (global && global.getType().getElementType() != type.getElementType())
    return emitError() << "a member of type " << type << " is no piece of " << global.getType();
  return success();
}

LogicalResult BucketAttr::verify(function_ref<InFlightDiagnostic()> emitError, ArrayRef<MemberAttr> members) {
  if (members.empty())
    return emitError() << "a bucket must have at least 1 member";
  int64_t elements = 0;
  for (MemberAttr member : members)
    if (llvm::AddOverflow(elements, member.getNumElements(), elements))
      return emitError() << "the elements of a bucket must fit 63 bits";
  return success();
}

LogicalResult MeshAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                               ArrayRef<MeshAxisAttr> axes, ArrayRef<int64_t> deviceIds) {
  llvm::SmallPtrSet<StringAttr, 4> seen;
  // Passes and reports visit every device; no machine comes near.
  int64_t devices = 1;
  for (MeshAxisAttr axis : axes) {
    if (StringRef rule = shoal::brokenNameRule(axis.getName()); !rule.empty())
      return emitError() << "axis name must " << rule << ", got: " << axis.getName();
    if (!seen.insert(axis.getName()).second)
      return emitError() << "axis " << axis.getName() << " is named twice";
    if (axis.getSize() < 1)
      return emitError() << "axis size must be at least 1, got: " << axis.getSize();
    if (llvm::MulOverflow(devices, axis.getSize(), devices) || devices > kMaxDevices)
      return emitError() << "mesh must have at most " << kMaxDevices
                         << " devices; the product of its axis sizes is larger";
  }
  if (deviceIds.empty())
    return success();
  if ((int64_t)deviceIds.size() != devices)
    return emitError() << "device_ids must name each of the " << devices
                       << " devices once, got: " << deviceIds.size() << " ids";
  llvm::BitVector named(devices);
  for (int64_t id : deviceIds) {
    if (id < 0 || id >= devices || named.test(id))
      return emitError() << "device_ids must be a permutation of 0.." << devices - 1
                         << ", got: " << id << (id < 0 || id >= devices ? "" : " twice");
    named.set(id);
  }
  return success();
}

LogicalResult DimShardingAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                      ArrayRef<StringAttr> axes, bool, int64_t priority) {
  if (priority < 0)
    return emitError() << "priority must be at least 0, got: " << priority;
  llvm::SmallPtrSet<StringAttr, 4> seen;
  return verifyDistinct(emitError, axes, seen);
}

LogicalResult ShardingAttr::verify(function_ref<InFlightDiagnostic()> emitError, FlatSymbolRefAttr,
                                   ArrayRef<DimShardingAttr> dims, ReduceKindAttrEnum,
                                   ArrayRef<StringAttr> unreduced) {
  llvm::SmallPtrSet<StringAttr, 4> seen;
  for (DimShardingAttr dim : dims)
    if (failed(verifyDistinct(emitError, dim.getAxes(), seen)))
      return failure();
  for (StringAttr axis : unreduced)
    if (seen.contains(axis))
      return emitError() << "axis " << axis << " is unreduced and also shards a dimension";
  return verifyDistinct(emitError, unreduced, seen);
}

// Buckets.

StringAttr MemberAttr::getName() const {
  return llvm::TypeSwitch<Attribute, StringAttr>(getRole())
      .Case<nn::ParamAttr, nn::BufferAttr, nn::StateAttr>([](auto role) { return role.getName(); })
      .Default([](Attribute role) { return mlir::cast<StringAttr>(role); });
}

RankedTensorType MemberAttr::getWholeType() const { return getGlobal() ? getGlobal().getType() : getType(); }

int64_t BucketAttr::getNumElements() const {
  int64_t elements = 0;
  for (MemberAttr member : getMembers())
    elements += member.getNumElements();
  return elements;
}

// Mesh.

std::optional<int64_t> MeshAttr::getAxisSize(StringAttr axis) const {
  for (MeshAxisAttr a : getAxes())
    if (a.getName() == axis)
      return a.getSize();
  return std::nullopt;
}

int64_t MeshAttr::getSize(ArrayRef<StringAttr> axes) const {
  int64_t size = 1;
  for (StringAttr axis : axes)
    size *= *getAxisSize(axis);
  return size;
}

int64_t MeshAttr::getNumDevices() const {
  int64_t devices = 1;
  for (MeshAxisAttr axis : getAxes())
    devices *= axis.getSize();
  return devices;
}

unsigned MeshAttr::getAxisIndex(StringAttr axis) const {
  for (auto [index, a] : llvm::enumerate(getAxes()))
    if (a.getName() == axis)
      return index;
  llvm_unreachable("axis is not of this mesh");
}

SmallVector<int64_t> MeshAttr::getCoordinates(int64_t position) const {
  SmallVector<int64_t> coordinates(getAxes().size());
  for (unsigned i = getAxes().size(); i-- > 0;) {
    coordinates[i] = position % getAxes()[i].getSize();
    position /= getAxes()[i].getSize();
  }
  return coordinates;
}

int64_t MeshAttr::getIndexAlong(int64_t position, ArrayRef<StringAttr> axes) const {
  SmallVector<int64_t> coordinates = getCoordinates(position);
  int64_t index = 0;
  for (StringAttr axis : axes)
    index = index * *getAxisSize(axis) + coordinates[getAxisIndex(axis)];
  return index;
}

int64_t MeshAttr::getPositionAlong(int64_t position, ArrayRef<StringAttr> axes,
                                   int64_t index) const {
  SmallVector<int64_t> coordinates = getCoordinates(position);
  for (StringAttr axis : llvm::reverse(axes)) {
    int64_t size = *getAxisSize(axis);
    coordinates[getAxisIndex(axis)] = index % size;
    index /= size;
  }
  int64_t linear = 0;
  for (auto [axis, coordinate] : llvm::zip_equal(getAxes(), coordinates))
    linear = linear * axis.getSize() + coordinate;
  return linear;
}

// Sharding.

ShardingAttr ShardingAttr::getReplicated(FlatSymbolRefAttr mesh, int64_t rank, bool closed) {
  auto dim = DimShardingAttr::get(mesh.getContext(), {}, closed, 0);
  SmallVector<DimShardingAttr> dims(rank, dim);
  return get(mesh.getContext(), mesh, dims, ReduceKindAttrEnum::sum, {});
}

bool ShardingAttr::sameLayout(ShardingAttr other) const {
  if (!other || getMesh() != other.getMesh() || getDims().size() != other.getDims().size())
    return false;
  for (auto [a, b] : llvm::zip(getDims(), other.getDims()))
    if (a.getAxes() != b.getAxes())
      return false;
  // Partial axes combine in any order.
  ArrayRef<StringAttr> mine = getUnreducedAxes(), theirs = other.getUnreducedAxes();
  return mine.size() == theirs.size() &&
         llvm::all_of(mine, [&](StringAttr axis) { return llvm::is_contained(theirs, axis); }) &&
         (mine.empty() || getUnreducedKind() == other.getUnreducedKind());
}

bool ShardingAttr::isReplicated() const {
  return getUnreducedAxes().empty() &&
         llvm::all_of(getDims(), [](DimShardingAttr dim) { return dim.getAxes().empty(); });
}

ShardingAttr ShardingAttr::withDims(ArrayRef<DimShardingAttr> dims) const {
  return get(getContext(), getMesh(), dims, getUnreducedKind(), getUnreducedAxes());
}

ShardingAttr ShardingAttr::withUnreduced(ReduceKindAttrEnum kind, ArrayRef<StringAttr> axes) const {
  // One spelling of "nothing is unreduced", so that equal layouts are equal attributes.
  return get(getContext(), getMesh(), getDims(), axes.empty() ? ReduceKindAttrEnum::sum : kind,
             axes);
}

bool ShardingAttr::uses(StringAttr axis) const {
  return llvm::is_contained(getUnreducedAxes(), axis) ||
         llvm::any_of(getDims(),
                      [&](DimShardingAttr dim) { return llvm::is_contained(dim.getAxes(), axis); });
}

RankedTensorType ShardingAttr::getLocalType(RankedTensorType global, MeshAttr mesh) const {
  SmallVector<int64_t> shape;
  for (auto [size, dim] : llvm::zip(global.getShape(), getDims()))
    shape.push_back(shardSize(size, mesh.getSize(dim.getAxes())));
  return RankedTensorType::get(shape, global.getElementType(), global.getEncoding());
}
