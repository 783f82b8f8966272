// pipe.schedule: a schedule as lines of text.
#include "shoal/Dialect/Pipe/IR/Pipe.h"
#include "shoal/Schedule/Text.h"

#include "mlir/IR/DialectImplementation.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;

namespace shoal::pipe {

static ParseResult parsePlacementName(OpAsmParser &parser, PlacementAttr &placement) {
  StringRef name;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseKeyword(&name))
    return failure();
  std::optional<Placement> known = symbolizePlacement(name);
  if (!known)
    return parser.emitError(loc) << "placement must be loop or vee, got: " << name;
  placement = PlacementAttr::get(parser.getContext(), *known);
  return success();
}

static void printPlacementName(OpAsmPrinter &printer, Operation *, PlacementAttr placement) {
  printer << stringifyPlacement(placement.getValue());
}

static ParseResult parsePartName(OpAsmParser &parser, PartAttr &part) {
  StringRef name;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseKeyword(&name))
    return failure();
  std::optional<Part> known = symbolizePart(name);
  if (!known)
    return parser.emitError(loc) << "part must be forward, backward, backward_input or backward_weight, got: " << name;
  part = PartAttr::get(parser.getContext(), *known);
  return success();
}

static void printPartName(OpAsmPrinter &printer, Operation *, PartAttr part) {
  printer << stringifyPart(part.getValue());
}

static ParseResult parseRankLines(OpAsmParser &parser, ArrayAttr &ranks) {
  SmallVector<Attribute> lines;
  auto parseLine = [&]() -> ParseResult {
    StringAttr line;
    if (parser.parseAttribute(line))
      return failure();
    lines.push_back(line);
    return success();
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, parseLine))
    return failure();
  ranks = ArrayAttr::get(parser.getContext(), lines);
  return success();
}

static void printRankLines(OpAsmPrinter &printer, Operation *, ArrayAttr ranks) {
  printer << "[";
  printer.increaseIndent();
  llvm::interleave(
      ranks, [&](Attribute line) { printer.printNewline(), printer << line; }, [&] { printer << ","; });
  printer.decreaseIndent();
  printer.printNewline();
  printer << "]";
}

Shape ScheduleOp::getShape() {
  return {int64_t(getRanks().size()), int64_t(getMicrobatches()), int64_t(getChunks()), getPlacement()};
}

/// Reads the lines; false with an error, and the rank that it is of.
static bool readLines(ScheduleOp op, Schedule &schedule, size_t &rank, std::string &error) {
  schedule.shape = op.getShape();
  if (std::optional<ArrayRef<int64_t>> peak = op.getPeak())
    schedule.peak = peak->vec();
  schedule.ranks.resize(op.getRanks().size());
  for (rank = 0; rank < schedule.ranks.size(); ++rank)
    if (!readRank(cast<StringAttr>(op.getRanks()[rank]).getValue(), schedule.shape, rank, schedule.ranks[rank], error))
      return false;
  return true;
}

LogicalResult ScheduleOp::verify() {
  if (std::string fault = findFault(getShape()); !fault.empty())
    return emitOpError() << fault;
  std::optional<ArrayRef<int64_t>> peak = getPeak();
  if (peak && peak->size() != getRanks().size())
    return emitOpError() << "the peak needs one number per rank (" << getRanks().size() << "), got: " << peak->size();
  if (peak)
    for (int64_t number : *peak)
      if (number < 0)
        return emitOpError() << "a peak must be at least 0, got: " << number;
  Schedule schedule;
  size_t rank;
  std::string error;
  if (!readLines(*this, schedule, rank, error))
    return emitOpError() << "rank " << rank << ": " << error;
  return success();
}

Schedule ScheduleOp::getSchedule() {
  Schedule schedule;
  size_t rank;
  std::string error;
  [[maybe_unused]] bool isRead = readLines(*this, schedule, rank, error);
  assert(isRead && "the op is verified");
  return schedule;
}

ScheduleOp ScheduleOp::create(OpBuilder &builder, Location loc, StringRef name, const Schedule &schedule) {
  SmallVector<std::string> lines;
  for (int64_t rank = 0; rank < schedule.shape.ranks; ++rank)
    lines.push_back(writeRank(schedule, rank));
  SmallVector<StringRef> refs(lines.begin(), lines.end());
  return builder.create<ScheduleOp>(
      loc, builder.getStringAttr(name), PlacementAttr::get(builder.getContext(), schedule.shape.placement),
      builder.getI64IntegerAttr(schedule.shape.microbatches), builder.getI64IntegerAttr(schedule.shape.chunks),
      schedule.peak.empty() ? DenseI64ArrayAttr() : builder.getDenseI64ArrayAttr(schedule.peak),
      builder.getStrArrayAttr(refs));
}

LogicalResult CallOp::verifySymbolUses(SymbolTableCollection &symbols) {
  if (getStage() < 0)
    return emitOpError() << "a stage must be at least 0, got: " << getStage();
  auto callee = symbols.lookupNearestSymbolFrom<FunctionOpInterface>(*this, getCalleeAttr());
  if (!callee)
    return emitOpError() << "calls a function of its module, got: " << getCalleeAttr();
  if (callee.isExternal())
    return emitOpError() << "calls a function with a body, got the declaration of " << getCalleeAttr();
  auto calls = (*this)->getBlock()->getOps<CallOp>();
  auto first = llvm::find_if(calls, [&](CallOp call) { return call.getCalleeAttr() == getCalleeAttr(); });
  CallOp inner;
  if (*first == *this) // of all calls in the block that have the callee
    callee->walk([&](CallOp call) { return inner = call, WalkResult::interrupt(); });
  if (inner) {
    auto diag = emitOpError() << "calls what one stage computes, in which is no pipe.call, got: " << getCalleeAttr();
    diag.attachNote(inner.getLoc()) << "it calls " << inner.getCalleeAttr();
    return diag;
  }
  if (callee.getArgumentTypes() != ArrayRef<Type>(llvm::to_vector(getInputs().getTypes())) ||
      callee.getResultTypes() != ArrayRef<Type>(llvm::to_vector(getResults().getTypes()))) {
    auto got = FunctionType::get(getContext(), getInputs().getTypes(), getResults().getTypes());
    auto diag = emitOpError() << "must have the types of " << getCalleeAttr() << ", " << callee.getFunctionType()
                              << ", got: " << got;
    // A message has two sides.
    for (auto [input, taken] : llvm::zip(getInputs(), callee.getArgumentTypes()))
      if (auto sender = input.getDefiningOp<CallOp>(); sender && input.getType() != taken)
        diag.attachNote(sender.getLoc()) << "stage " << sender.getStage() << " sends " << input.getType()
                                         << " where stage " << getStage() << " receives " << taken;
    return diag;
  }
  return success();
}

} // namespace shoal::pipe

#define GET_OP_CLASSES
#include "shoal/Dialect/Pipe/PipeOps.cpp.inc"
