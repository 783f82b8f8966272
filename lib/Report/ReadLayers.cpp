// The program by layers: which op belongs where, what is forward, backward and update, and which layers are equal.
#include "Read.h"

#include "shoal/Dialect/Dist/IR/AxisRoles.h"
#include "shoal/Dialect/Dist/IR/Microbatches.h"
#include "shoal/Dialect/Dist/Transforms/StepParts.h"
#include "shoal/Dialect/NN/IR/Roles.h"
#include "shoal/Interfaces/Lowering.h"
#include "shoal/Support/FoldedNames.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace shoal::report {
namespace {

/// A section while it is read. Ops of one micro-batch that another has had, too, are told once.
struct Section : PageLayer {
  std::vector<PageOp> &of(dist::StepParts::Part part) {
    return part == dist::StepParts::Forward ? forward : part == dist::StepParts::Backward ? backward : update;
  }
  void add(dist::StepParts::Part part, PageOp op, std::optional<int64_t> microbatch);

private:
  /// Behind which op of a part each micro-batch is.
  llvm::SmallDenseMap<int64_t, size_t> reached[dist::StepParts::Update + 1];
};

/// Sections in the order of the forward pass.
class LayerReader {
public:
  LayerReader(func::FuncOp step, ArrayRef<dist::Explanation> explanations, std::vector<PageLayer> &layers)
      : step(step), parts(step), layers(layers) {
    for (const dist::Explanation &it : explanations)
      explained[it.op] = &it;
  }
  void read();

private:
  void findSpans();
  StringRef getLayer(Operation *op) const;
  StringRef findLayer(Operation *op, dist::StepParts::Part part) const;
  Section &sectionOf(Operation *op, dist::StepParts::Part part, bool isFirst);
  PageOp describe(Operation *op) const;
  bool isBucket(Operation *op);
  void addNamed();
  void addOwn(Section &section, const char *title);

  func::FuncOp step;
  dist::StepParts parts;
  std::vector<PageLayer> &layers;
  llvm::MapVector<StringRef, Section> named;
  Section before, between, after, buckets, rest;
  /// Of each part of the step the numbers of the first and the last op that says its layer; none: 0.
  struct Span {
    unsigned first = 0, last = 0;
  };
  Span spans[dist::StepParts::Update + 1];
  bool isMadeOfModel = false; // the program: by hand, no op of it is a pass's
  struct Place {
    StringRef layer;
    unsigned number; // of the op
  };
  DenseMap<Operation *, Place> layerOf;
  DenseMap<Operation *, const dist::Explanation *> explained;
  DenseMap<StringRef, unsigned> lastForward; // the number of an op
  unsigned number = 0;
  DenseSet<Value> inBucket;
};

} // namespace

/// An equal op right behind adds to the last.
void Section::add(dist::StepParts::Part part, PageOp op, std::optional<int64_t> microbatch) {
  std::vector<PageOp> &ops = of(part);
  auto isEqual = [&](const PageOp &other) {
    PageOp last = other;
    last.count = op.count;
    return last == op;
  };
  auto begin = ops.empty() ? ops.end() : ops.end() - 1;
  if (microbatch) {
    auto [place, isFirst] = reached[part].try_emplace(*microbatch, 0);
    begin = isFirst ? ops.begin() : ops.begin() + place->second;
  }
  auto found = std::find_if(begin, ops.end(), isEqual);
  if (found != ops.end()) {
    found->count += op.count;
  } else {
    found = ops.insert(!microbatch || begin == ops.end() ? ops.end() : begin + 1, std::move(op));
    for (auto &[other, place] : reached[part])
      place += place >= size_t(found - ops.begin());
  }
  if (microbatch)
    reached[part][*microbatch] = found - ops.begin();
}

/// "8×256×768 f32".
std::string showType(Type type) {
  if (auto future = dyn_cast<dist::FutureType>(type))
    type = future.getTensor();
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor)
    return "";
  std::string text;
  for (int64_t size : tensor.getShape())
    text += (text.empty() ? "" : "×") + std::to_string(size);
  llvm::raw_string_ostream stream(text);
  stream << (text.empty() ? "" : " ") << tensor.getElementType();
  return text;
}

PageOp LayerReader::describe(Operation *op) const {
  PageOp result;
  result.name = op->getName().stripDialect().str();
  if (op->getNumResults())
    result.shape = showType(op->getResult(0).getType());
  else if (op->getNumOperands()) // a send
    result.shape = showType(op->getOperand(0).getType());
  for (Value operand : op->getOperands()) {
    auto argument = dyn_cast<BlockArgument>(operand);
    if (!argument || argument.getOwner()->getParentOp() != step)
      continue;
    nn::ArgRole role = nn::getArgRole(step, argument.getArgNumber());
    if (role == nn::ArgRole::State || role == nn::ArgRole::Step) // follows from the parameter
      continue;
    StringRef name = nn::getArgName(step, argument.getArgNumber());
    result.arguments += (result.arguments.empty() || name.empty() ? "" : ", ") + name.str();
  }
  if (auto collective = dyn_cast<dist::CollectiveOpInterface>(op)) {
    result.isCommunication = collective.communicates();
    result.axes = dist::getAxisNames(collective.getAxesAttr());
    if (auto explanation = explained.lookup(op)) {
      result.reason = explanation->asker;
      for (const std::string &more : {explanation->change, explanation->cause})
        result.reason += (more.empty() ? "" : "\n") + more;
    }
  }
  result.isMinor = lowersAs(op, LoweringKind::View) ||
                   (!isa_and_nonnull<nn::NNDialect>(op->getDialect()) && !result.isCommunication);
  // One line for all that a bucket is cut into.
  if (isa<dist::UnpackOp>(op))
    result.shape.clear();
  if (auto pack = dyn_cast<dist::PackOp>(op))
    result.arguments = std::to_string(pack.getInputs().size()) + " ranges";
  result.count = dist::countRuns(op);
  return result;
}

/// From packing until unpacking, or until something computes on the bucket as it is.
bool LayerReader::isBucket(Operation *op) {
  bool reads = llvm::any_of(op->getOperands(), [&](Value value) { return inBucket.contains(value); });
  bool moves = reads && isa_and_nonnull<dist::DistDialect>(op->getDialect());
  if (!moves && !isa<dist::PackOp>(op))
    return false;
  if (!isa<dist::UnpackOp>(op))
    inBucket.insert(op->result_begin(), op->result_end());
  return true;
}

/// Whether the op computes a value of the model: of those of passes nothing says which one.
static bool isOfModel(Operation *op) {
  return op->hasAttr(dist::DistDialect::kIdAttr) || op->hasAttr(dist::DistDialect::kGlobalsAttr);
}

/// The ops of a step as they are counted. Constants are part of the kernels that use them.
static void walkOps(func::FuncOp step, llvm::function_ref<void(Operation *)> visit) {
  step.walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (op != step && !op->hasTrait<OpTrait::IsTerminator>() && !isa<dist::AccumulateOp>(op) &&
        !lowersAs(op, LoweringKind::Constant))
      visit(op);
  });
}

void LayerReader::findSpans() {
  walkOps(step, [&](Operation *op) { isMadeOfModel |= isOfModel(op); });
  unsigned number = 0;
  walkOps(step, [&](Operation *op) {
    ++number;
    // A gather for a layer starts ahead of it.
    if ((isMadeOfModel && !isOfModel(op)) || getLayer(op).empty())
      return;
    Span &span = spans[parts.get(op)];
    span.first = span.first ? span.first : number;
    span.last = number;
  });
}

/// The layer that an op, or the reason of a collective, says; empty for none.
StringRef LayerReader::getLayer(Operation *op) const {
  if (auto name = op->getAttrOfType<StringAttr>(nn::NNDialect::kLayerAttr))
    return name.getValue();
  auto explanation = explained.lookup(op);
  return explanation ? StringRef(explanation->layer) : StringRef();
}

/// An op that a pass made between those of the model has no layer: it is told where the newest op of the same pass
/// that it reads is, or else the first that reads it. One of the model that says none belongs to none.
StringRef LayerReader::findLayer(Operation *op, dist::StepParts::Part part) const {
  if (StringRef layer = getLayer(op); !layer.empty())
    return layer;
  if (part == dist::StepParts::Update || !isMadeOfModel || isOfModel(op))
    return {};
  unsigned newest = 0;
  StringRef layer;
  for (Value operand : op->getOperands()) {
    Operation *def = operand.getDefiningOp();
    auto found = layerOf.find(def);
    if (found == layerOf.end() || parts.get(def) != part || found->second.number <= newest)
      continue;
    newest = found->second.number;
    layer = found->second.layer;
  }
  for (Operation *user : op->getUsers()) {
    if (!layer.empty())
      break;
    if (auto name = user->getAttrOfType<StringAttr>(nn::NNDialect::kLayerAttr); name && parts.get(user) == part)
      layer = name.getValue();
  }
  return layer;
}

/// `isFirst`: of the first micro-batch, or of none.
Section &LayerReader::sectionOf(Operation *op, dist::StepParts::Part part, bool isFirst) {
  if (isBucket(op))
    return buckets;
  if (StringRef name = findLayer(op, part); !name.empty()) {
    // Ranks of a pipeline may be at other micro-batches of earlier layers.
    if (part == dist::StepParts::Forward && isFirst)
      lastForward[name] = number;
    layerOf[op] = {name, number};
    return named[name];
  }
  if (part == dist::StepParts::Update)
    return rest;
  // The backward pass goes through the layers from the last to the first.
  bool isForward = part == dist::StepParts::Forward;
  const Span &span = spans[part];
  if (!span.last || number < span.first)
    return isForward ? before : after;
  return number < span.last ? between : isForward ? after : before;
}

/// The micro-batch that an op, or what is in its region, is of.
static std::optional<int64_t> findMicrobatch(Operation *op) {
  std::optional<int64_t> found;
  op->walk([&](Operation *inner) {
    auto number = inner->getAttrOfType<IntegerAttr>(dist::kMicrobatchAttr);
    if (!number)
      return WalkResult::advance();
    found = number.getInt();
    return WalkResult::interrupt();
  });
  return found;
}

void LayerReader::read() {
  findSpans();
  walkOps(step, [&](Operation *op) {
    ++number;
    dist::StepParts::Part part = parts.get(op);
    std::optional<int64_t> microbatch = findMicrobatch(op);
    sectionOf(op, part, microbatch.value_or(0) == 0).add(part, describe(op), microbatch);
  });
  if (named.empty()) {
    llvm::append_range(before.forward, after.forward);
    after.forward.clear();
    llvm::append_range(after.backward, before.backward);
    before.backward = std::move(after.backward);
    addOwn(before, "the program");
  } else {
    addOwn(before, "before the layers");
    addNamed();
    addOwn(between, "outside layers");
    addOwn(after, "after the layers");
  }
  addOwn(buckets, "gradient buckets");
  addOwn(rest, "update");
}

/// Whether two layers differ in nothing but numbers of names.
static bool areEqual(const std::vector<PageOp> &a, const std::vector<PageOp> &b) {
  return llvm::equal(a, b, [](const PageOp &x, const PageOp &y) {
    auto withoutNames = [](PageOp op) {
      op.arguments = op.reason = "";
      return op;
    };
    return maskNumbers(x.arguments) == maskNumbers(y.arguments) && withoutNames(x) == withoutNames(y);
  });
}

static bool areEqual(StringRef a, const PageLayer &x, StringRef b, const PageLayer &y) {
  return maskNumbers(a) == maskNumbers(b) && areEqual(x.forward, y.forward) && areEqual(x.backward, y.backward) &&
         areEqual(x.update, y.update);
}

/// The texts of an op of equal layers, all numbers that differ as stars; other texts as in the first.
static std::vector<PageOp> merge(ArrayRef<const PageLayer *> equal, std::vector<PageOp> PageLayer::*pass) {
  std::vector<PageOp> merged = equal.front()->*pass;
  for (size_t at = 0; at < merged.size(); ++at)
    for (std::string PageOp::*text : {&PageOp::arguments, &PageOp::reason}) {
      std::vector<std::string> all;
      for (const PageLayer *layer : equal)
        all.push_back((layer->*pass)[at].*text);
      if (llvm::all_of(all, [&](const std::string &other) { return maskNumbers(other) == maskNumbers(all.front()); }))
        merged[at].*text = starNames(all);
    }
  return merged;
}

void LayerReader::addNamed() {
  auto order = named.takeVector();
  // The forward pass ends with the layers in their order, wherever their constants stand.
  llvm::stable_sort(order, [&](const auto &a, const auto &b) { return lastForward[a.first] < lastForward[b.first]; });
  for (size_t begin = 0, end; begin < order.size(); begin = end) {
    SmallVector<const PageLayer *> equal;
    PageLayer merged;
    for (end = begin; end < order.size(); ++end) {
      const auto &[name, layer] = order[end];
      if (!areEqual(order[begin].first, order[begin].second, name, layer))
        break;
      merged.names.push_back(name.str());
      equal.push_back(&layer);
    }
    merged.title = spanNames(merged.names);
    merged.forward = merge(equal, &PageLayer::forward);
    merged.backward = merge(equal, &PageLayer::backward);
    merged.update = merge(equal, &PageLayer::update);
    layers.push_back(std::move(merged));
  }
}

void LayerReader::addOwn(Section &section, const char *title) {
  section.title = title;
  if (section.forward.size() + section.backward.size() + section.update.size())
    layers.push_back(std::move(section));
}

void readLayers(func::FuncOp step, ArrayRef<dist::Explanation> explanations, std::vector<PageLayer> &layers) {
  LayerReader(step, explanations, layers).read();
}

} // namespace shoal::report
