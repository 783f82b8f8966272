// A ring as a user sees it: what passes by, how far, and whether it hides behind the products that it is for; see
// ExplainRings.h.
#include "ExplainRings.h"

#include "ExplainPipeline.h"

#include "shoal/Dialect/Dist/IR/Positions.h"
#include "shoal/Dialect/Dist/Transforms/OpCost.h"
#include "shoal/Dialect/NN/IR/NN.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"

#include <map>

using namespace mlir;

namespace shoal::dist {
namespace {

/// Whether rows are in the order of zigzag, by how their positions are made.
bool areBalanced(OperandRange positions) {
  if (positions.empty())
    return false;
  for (Operation *def = positions.front().getDefiningOp(); def;
       def = def->getNumOperands() ? def->getOperand(0).getDefiningOp() : nullptr)
    if (isa<nn::ZigzagOp>(def))
      return true;
  return false;
}

/// Of the scores of a block a causal mask leaves out half where zigzag deals them out evenly. Without it the last rank
/// computes whole blocks, and all wait for that.
double getVisibleShare(Operation *op) {
  return TypeSwitch<Operation *, double>(op)
      .Case<nn::AttentionOp, nn::AttentionGradOp>(
          [](auto attention) { return attention.getCausal() && areBalanced(attention.getPositions()) ? 0.5 : 1.; })
      .Default(1.);
}

double getVisibleFlops(Operation *op) {
  auto ruled = dyn_cast<ShardingRuleOpInterface>(op);
  return ruled && !op->getNumRegions() ? getVisibleShare(op) * ruled.getFlops() : 0;
}

bool isCompute(Operation *op, int64_t position) {
  return isa_and_nonnull<nn::NNDialect>(op->getDialect()) && !passesOn(op) && !op->hasTrait<OpTrait::ConstantLike>() &&
         runsAt(op, position);
}

double getSeconds(Operation *op, MeshAttr mesh) {
  double left = isa<PermuteStartOp>(op) ? 0 : cast<ShardingRuleOpInterface>(op).getFlops() - getVisibleFlops(op);
  return toSeconds(costOf(op, mesh) - left);
}

/// Plays the block from the first hop to where the last one is waited for: compute in order, hops between the same
/// pairs one after another beside it.
void play(Ring &ring, ArrayRef<const Explanation *> hops, MeshAttr mesh, int64_t position) {
  DenseMap<Value, double> arrives;
  std::map<std::pair<const void *, const void *>, double> isFree; // by axes and pairs; asked, never walked
  double now = 0;
  size_t waiting = hops.size();
  for (Operation *op = hops.front()->op; op && waiting; op = op->getNextNode()) {
    if (auto start = dyn_cast<PermuteStartOp>(op);
        start && llvm::any_of(hops, [&](const Explanation *hop) { return hop->op == op; })) {
      double seconds = getSeconds(op, mesh);
      double &stream = isFree[{start.getAxesAttr().getAsOpaquePointer(), start.getTargetsAttr().getAsOpaquePointer()}];
      stream = std::max(stream, now) + seconds;
      arrives[start.getResult()] = stream;
      ring.transferSeconds += seconds;
    } else if (auto wait = dyn_cast<WaitOp>(op); wait && arrives.contains(wait.getOperand())) {
      double arrival = arrives.lookup(wait.getOperand());
      ring.exposedSeconds += std::max(0., arrival - now);
      now = std::max(now, arrival);
      --waiting;
    } else if (isCompute(op, position) && isa<ShardingRuleOpInterface>(op)) {
      now += getSeconds(op, mesh);
    }
  }
}

std::string printSeconds(double seconds) {
  auto [size, name] = seconds >= 1      ? std::pair(1., "s")
                      : seconds >= 1e-3 ? std::pair(1e-3, "ms")
                                        : std::pair(1e-6, "us");
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format("%.3g ", seconds / size) << name;
  return text;
}

} // namespace

Ring describeRing(ArrayRef<const Explanation *> hops, MeshAttr mesh, bool overlap) {
  Ring ring;
  // What passes by: each of it as often as the others, but for its last way home.
  llvm::MapVector<StringRef, int64_t> counts;
  for (const Explanation *hop : hops) {
    auto [what, op] = StringRef(cast<ReasonAttr>(cast<CollectiveOpInterface>(hop->op).getReasonAttr()).getAsker())
                          .split(" of nn.");
    ring.op = "nn." + op.str();
    if (counts[what]++ == 0) {
      ring.tensors.emplace_back(what.str(), hop->type);
      ring.bytesPerHop += hop->sentBytes / hop->count;
    }
  }
  ring.hops = counts.front().second;
  ring.messages = hops.size();
  int64_t position = getPositions(hops.front()->op, mesh).find_first();
  for (Operation *op = hops.front()->op; op; op = op->getNextNode())
    if (op->getName().getStringRef() == ring.op && runsAt(op, position)) {
      ring.blockFlops = getVisibleFlops(op);
      ring.blockSeconds = getSeconds(op, mesh);
      break;
    }
  play(ring, hops, mesh, position);
  if (!overlap)
    ring.exposedSeconds = ring.transferSeconds;
  return ring;
}

std::string Ring::tellTensors() const {
  // Those of one type once.
  llvm::MapVector<Type, std::string> names;
  for (const auto &[what, type] : tensors) {
    std::string &text = names[type];
    text += (text.empty() ? "" : ", ") + what;
  }
  std::string text;
  llvm::raw_string_ostream os(text);
  for (const auto &[type, what] : names)
    os << (text.empty() ? "" : "; ") << what << " " << type;
  return text;
}

std::string Ring::tellHops() const {
  return std::to_string(hops) + (hops == 1 ? " hop of " : " hops of ") + std::to_string(bytesPerHop) + " bytes";
}

std::string Ring::tellBlock() const {
  return op + " of the rows that have come, " + printFlops(blockFlops) + ", about " + printSeconds(blockSeconds) +
         " per hop";
}

bool Ring::isHidden() const { return exposedSeconds <= 0.01 * transferSeconds; }

std::string Ring::tellHidden() const {
  std::string hop = "a hop takes about " + printSeconds(transferSeconds / double(hops));
  if (isHidden())
    return "yes: " + hop;
  return (exposedSeconds > 0.9 * transferSeconds ? "no: " : "in part: ") + hop + ", and of all " +
         printSeconds(transferSeconds) + " it waits for " + printSeconds(exposedSeconds);
}

std::string tellAssumptions() {
  return llvm::formatv("times of rings are estimates for a device of {0} GFLOP/s and {1} GB/s of memory, with {2} GB/s "
                       "and {3} us per message between ranks; blocks that masks empty count as whole but under zigzag",
                       int(kFlopsPerSecond / 1e9), int(kBytesPerSecond / 1e9), int(kSentBytesPerSecond / 1e9),
                       int(kSecondsPerMessage * 1e6))
      .str();
}

} // namespace shoal::dist
