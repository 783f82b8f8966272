// The ops of L1, buckets and regions: assembly, verifiers, the gradient of a reshard.
#include "shoal/Dialect/Dist/IR/Dist.h"

#include "shoal/Support/KeywordFormat.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace shoal::dist;

#include "shoal/Dialect/Dist/CollectiveOpInterface.cpp.inc"
#define GET_OP_CLASSES
#include "shoal/Dialect/Dist/DistOps.cpp.inc"

// Mesh.

LogicalResult MeshOp::verify() {
  auto module = dyn_cast_or_null<ModuleOp>((*this)->getParentOp());
  if (!module)
    return emitOpError("must be directly in a module");
  for (Operation &child : *module.getBody()) {
    if (&child == getOperation())
      break;
    if (auto other = dyn_cast<MeshOp>(child)) {
      InFlightDiagnostic diag = emitOpError("is the second mesh of the module; exactly one may be");
      diag.attachNote(other.getLoc()) << "the first mesh is here";
      return diag;
    }
  }
  return success();
}

// Reshard.

LogicalResult ReshardOp::verifySymbolUses(SymbolTableCollection &) {
  auto mesh = getMeshOrEmit(*this, getSharding().getMesh());
  if (failed(mesh))
    return failure();
  return verifySharding(*this, getSharding(), getInput().getType(), *mesh);
}

FailureOr<SmallVector<Value>> ReshardOp::buildVJP(OpBuilder &builder, ArrayRef<Value> cotangents,
                                                  const llvm::BitVector &needed) {
  if (!cotangents[0] || !needed.test(0))
    return SmallVector<Value>{Value()};
  // The same dimensions; whether the cotangent is partial is for propagation to find.
  ShardingAttr sharding = getSharding().withUnreduced(ReduceKindAttrEnum::sum, {});
  auto reshard = builder.create<ReshardOp>(getLoc(), cotangents[0].getType(), cotangents[0],
                                           sharding, getReasonAttr());
  return SmallVector<Value>{reshard.getResult()};
}

// Accumulate and yield.

ParseResult AccumulateOp::parse(OpAsmParser &parser, OperationState &result) {
  SmallVector<OpAsmParser::UnresolvedOperand> inputs;
  IntegerAttr microbatches;
  Region *body = result.addRegion();
  FunctionType type;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseOperandList(inputs, OpAsmParser::Delimiter::Paren) ||
      parser.parseKeyword("microbatches") || parser.parseEqual() ||
      parser.parseAttribute(microbatches, parser.getBuilder().getI64Type(), "microbatches",
                            result.attributes) ||
      parser.parseOptionalAttrDictWithKeyword(result.attributes) || parser.parseRegion(*body) ||
      parser.parseColonType(type) ||
      parser.resolveOperands(inputs, type.getInputs(), loc, result.operands))
    return failure();
  result.addTypes(type.getResults());
  return success();
}

void AccumulateOp::print(OpAsmPrinter &printer) {
  printer << '(' << getInputs() << ") microbatches = " << (int64_t)getMicrobatches();
  printer.printOptionalAttrDictWithKeyword((*this)->getAttrs(), {getMicrobatchesAttrName()});
  printer << ' ';
  printer.printRegion(getBody());
  printer << " : ";
  printer.printFunctionalType(*this);
}

LogicalResult AccumulateOp::verify() {
  int64_t microbatches = getMicrobatches();
  if (microbatches < 1)
    return emitOpError("microbatches must be at least 1, got: ") << microbatches;
  TypeRange arguments = getBody().getArgumentTypes();
  if (arguments.size() != getInputs().size())
    return emitOpError("body must have one argument per input: ")
           << getInputs().size() << ", got: " << arguments.size();
  for (auto [index, input, argument] : llvm::enumerate(getInputs().getTypes(), arguments)) {
    auto tensor = cast<RankedTensorType>(input);
    if (tensor.getRank() == 0)
      return emitOpError("input #") << index << " is a scalar and cannot be split; capture it";
    int64_t rows = tensor.getDimSize(0);
    if (rows % microbatches != 0)
      return emitOpError("rows of input #")
             << index << " must be a multiple of microbatches: " << rows << " rows, "
             << microbatches << " microbatches";
    SmallVector<int64_t> shape(tensor.getShape());
    shape[0] = rows / microbatches;
    auto expected = RankedTensorType::get(shape, tensor.getElementType());
    if (argument != expected)
      return emitOpError("body argument #")
             << index << " must be one micro-batch " << expected << ", got: " << argument;
  }
  return success();
}

/// The yield that ends a body must give what the op returns.
static LogicalResult verifyYields(Operation *op, Region &body) {
  Block &block = body.front();
  auto yield = block.empty() ? YieldOp() : dyn_cast<YieldOp>(block.back());
  if (!yield)
    return op->emitOpError("body must end with dist.yield");
  if (yield.getValues().getTypes() != op->getResultTypes())
    return op->emitOpError("must return the types that its body yields: (")
           << yield.getValues().getTypes() << "), got: (" << op->getResultTypes() << ")";
  return success();
}

LogicalResult AccumulateOp::verifyRegions() { return verifyYields(*this, getBody()); }

FailureOr<SmallVector<Value>> AccumulateOp::buildVJP(OpBuilder &, ArrayRef<Value>,
                                                     const llvm::BitVector &) {
  return emitOpError("has no gradient: differentiate first, then split into micro-batches");
}

LogicalResult GroupOp::verifyRegions() {
  if (getBody().getNumArguments() != 0)
    return emitOpError("body takes no arguments, got: ") << getBody().getNumArguments();
  // Control flow decides who sends what; what has an effect in it are messages, too.
  WalkResult walked = getBody().walk([&](Operation *op) {
    if (isa<SendOp, RecvOp>(op) || op->hasTrait<OpTrait::HasRecursiveMemoryEffects>() ||
        isMemoryEffectFree(op))
      return WalkResult::advance();
    emitOpError("holds only sends, receives and pure ops, got: ") << op->getName();
    return WalkResult::interrupt();
  });
  return walked.wasInterrupted() ? failure() : verifyYields(*this, getBody());
}

// Buckets.

/// `%a[0:4], %b[2:8]`
static ParseResult parseRanges(OpAsmParser &parser, OperationState &result,
                               SmallVectorImpl<OpAsmParser::UnresolvedOperand> &operands) {
  SmallVector<int64_t> begins, ends;
  auto parseRange = [&]() -> ParseResult {
    return failure(parser.parseOperand(operands.emplace_back()) || parser.parseLSquare() ||
                   parser.parseInteger(begins.emplace_back()) || parser.parseColon() ||
                   parser.parseInteger(ends.emplace_back()) || parser.parseRSquare());
  };
  if (parser.parseCommaSeparatedList(parseRange))
    return failure();
  Builder &builder = parser.getBuilder();
  result.addAttribute("begins", builder.getDenseI64ArrayAttr(begins));
  result.addAttribute("ends", builder.getDenseI64ArrayAttr(ends));
  return success();
}

static ParseResult parseRangesType(OpAsmParser &parser, OperationState &result,
                                   ArrayRef<OpAsmParser::UnresolvedOperand> operands) {
  FunctionType type;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseOptionalAttrDict(result.attributes) || parser.parseColonType(type) ||
      parser.resolveOperands(operands, type.getInputs(), loc, result.operands))
    return failure();
  result.addTypes(type.getResults());
  return success();
}

static void printRanges(OpAsmPrinter &printer, OperandRange operands, ArrayRef<int64_t> begins,
                        ArrayRef<int64_t> ends) {
  printer << ' ';
  llvm::interleaveComma(llvm::zip(operands, begins, ends), printer, [&](auto range) {
    auto [operand, begin, end] = range;
    printer << operand << '[' << begin << ':' << end << ']';
  });
}

/// Ranges lie in their operands; together they hold `elements`.
static LogicalResult verifyRanges(Operation *op, ArrayRef<int64_t> begins, ArrayRef<int64_t> ends,
                                  RankedTensorType result) {
  if (op->getNumOperands() == 0)
    return op->emitOpError("needs at least one operand");
  if (begins.size() != op->getNumOperands() || ends.size() != op->getNumOperands())
    return op->emitOpError("needs one range per operand: ")
           << op->getNumOperands() << ", got: " << begins.size() << " begins and " << ends.size()
           << " ends";
  uint64_t total = 0;
  for (auto [index, begin, end] : llvm::enumerate(begins, ends)) {
    auto type = cast<RankedTensorType>(op->getOperand(index).getType());
    if (type.getElementType() != result.getElementType())
      return op->emitOpError("operands and result must have one element type: ")
             << result.getElementType() << ", got: " << type.getElementType();
    if (begin < 0 || begin > end || end > type.getNumElements())
      return op->emitOpError("range #")
             << index << " must lie in the " << type.getNumElements()
             << " elements of its operand, got: [" << begin << ':' << end << ']';
    total = llvm::SaturatingAdd(total, uint64_t(end - begin));
  }
  if (total != uint64_t(result.getNumElements()))
    return op->emitOpError("ranges hold ")
           << total << " elements, the result " << result.getNumElements();
  return success();
}

ParseResult PackOp::parse(OpAsmParser &parser, OperationState &result) {
  SmallVector<OpAsmParser::UnresolvedOperand> operands;
  IntegerAttr group, at;
  Type i64 = parser.getBuilder().getI64Type();
  return failure(parseRanges(parser, result, operands) || parser.parseKeyword("group") ||
                 parser.parseAttribute(group, i64, "group", result.attributes) ||
                 parser.parseKeyword("at") ||
                 parser.parseAttribute(at, i64, "at", result.attributes) ||
                 parseRangesType(parser, result, operands));
}

void PackOp::print(OpAsmPrinter &printer) {
  printRanges(printer, getInputs(), getBegins(), getEnds());
  printer << " group " << getGroup() << " at " << getAt();
  printer.printOptionalAttrDict((*this)->getAttrs(), {"begins", "ends", "group", "at"});
  printer << " : ";
  printer.printFunctionalType(*this);
}

LogicalResult PackOp::verify() {
  constexpr uint64_t kMostGroups = uint64_t(1) << 32;
  auto type = cast<RankedTensorType>(getBucket().getType());
  if (type.getRank() != 1)
    return emitOpError("bucket must have rank 1, got: ") << type;
  if ((int64_t)getGroup() < 0 || (int64_t)getAt() < 0)
    return emitOpError("group and position must be at least 0, got: ")
           << (int64_t)getGroup() << " and " << (int64_t)getAt();
  // Groups are counted on, and positions added to, by all that read them.
  if (getGroup() >= kMostGroups)
    return emitOpError("group must be below 2^32, got: ") << getGroup();
  if (int64_t end; llvm::AddOverflow(int64_t(getAt()), type.getNumElements(), end))
    return emitOpError("must end below element 2^63 of its group, got: ")
           << type.getNumElements() << " elements at " << getAt();
  return verifyRanges(*this, getBegins(), getEnds(), type);
}

ParseResult UnpackOp::parse(OpAsmParser &parser, OperationState &result) {
  SmallVector<OpAsmParser::UnresolvedOperand> operands;
  return failure(parseRanges(parser, result, operands) ||
                 parseRangesType(parser, result, operands));
}

void UnpackOp::print(OpAsmPrinter &printer) {
  printRanges(printer, getBuckets(), getBegins(), getEnds());
  printer.printOptionalAttrDict((*this)->getAttrs(), {"begins", "ends"});
  printer << " : ";
  printer.printFunctionalType(*this);
}

LogicalResult UnpackOp::verify() {
  for (Type type : getBuckets().getTypes())
    if (cast<RankedTensorType>(type).getRank() != 1)
      return emitOpError("buckets must have rank 1, got: ") << type;
  return verifyRanges(*this, getBegins(), getEnds(), cast<RankedTensorType>(getResult().getType()));
}

// Values by position.

/// One entry per position of the module's mesh.
static FailureOr<MeshAttr> verifyPerPosition(Operation *op, ArrayRef<int64_t> entries) {
  MeshOp mesh = lookupMesh(op);
  if (!mesh)
    return op->emitOpError("has an entry per mesh position, but the module has no dist.mesh");
  int64_t devices = mesh.getMesh().getNumDevices();
  if (int64_t(entries.size()) != devices)
    return op->emitOpError("must have one entry per mesh position, ")
           << devices << ", got: " << entries.size();
  return mesh.getMesh();
}

LogicalResult PositionConstantOp::verifySymbolUses(SymbolTableCollection &) {
  return failure(failed(verifyPerPosition(*this, getValues())));
}

LogicalResult SelectOp::verifySymbolUses(SymbolTableCollection &) {
  if (failed(verifyPerPosition(*this, getChoices())))
    return failure();
  for (int64_t choice : getChoices())
    if (choice < 0 || choice >= int64_t(getInputs().size()))
      return emitOpError("must take one of ")
             << getInputs().size() << " operands, got number: " << choice;
  return success();
}
