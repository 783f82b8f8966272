// Moves nn ops into kernels: clusters (KernelClusters.h) become functions, equal ones once, and the
// step calls them. Decides which results overwrite the argument they replace.
#include "HostValues.h"
#include "KernelClusters.h"
#include "RandomIds.h"
#include "Widening.h"

#include "shoal/Dialect/Dist/IR/Microbatches.h"
#include "shoal/Dialect/Dist/IR/Positions.h"
#include "shoal/Dialect/Exec/Transforms/Passes.h"
#include "shoal/Dialect/Exec/Transforms/StepFunction.h"
#include "shoal/Dialect/NN/IR/Roles.h"
#include "shoal/Dialect/NN/IR/Updates.h"
#include "shoal/Interfaces/Lowering.h"
#include "shoal/Interfaces/Origin.h"
#include "shoal/Support/DeadOps.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;

namespace shoal::exec {

#define GEN_PASS_DEF_OUTLINEKERNELSPASS
#include "shoal/passes/ShoalExec.h.inc"

namespace {

/// A value through views, which share its buffer: the value itself first.
static SmallVector<Value> viewsOf(Value value) {
  SmallVector<Value> aliases = {value};
  for (unsigned i = 0; i < aliases.size(); ++i)
    for (Operation *user : aliases[i].getUsers())
      if (lowersAs(user, LoweringKind::View))
        aliases.push_back(user->getResult(0));
  return aliases;
}

/// The value through views and through the tensors that lie in it where it is a bucket: all that reads its bytes.
static SmallVector<Value> partsOf(Value value) {
  SmallVector<Value> aliases = {value};
  for (unsigned i = 0; i < aliases.size(); ++i)
    for (Operation *user : aliases[i].getUsers())
      if (lowersAs(user, LoweringKind::View) || isa<dist::UnpackOp>(user))
        aliases.push_back(user->getResult(0));
  return aliases;
}

/// Whether the op adds to a sum over micro-batches that nobody else reads.
static bool isRunningSum(Operation *op) {
  return op->hasAttr(dist::kRunningSumAttr) && op->getOperand(0).hasOneUse() &&
         op->getOperand(0).getType() == op->getResult(0).getType() &&
         op->getOperand(1).getType() == op->getResult(0).getType();
}

/// The views of a value and of the sums that it begins.
static SmallVector<Value> sumsOf(Value value) {
  SmallVector<Value> aliases = viewsOf(value);
  for (unsigned i = 0; i < aliases.size(); ++i)
    for (Operation *user : aliases[i].getUsers())
      if (isRunningSum(user) && user->getOperand(0) == aliases[i])
        llvm::append_range(aliases, viewsOf(user->getResult(0)));
  return aliases;
}

/// Whether the value ends in a bucket, where it lies at any multiple of its element size.
static bool entersBucket(Value value) {
  return llvm::any_of(sumsOf(value), [](Value alias) {
    return llvm::any_of(alias.getUsers(), [](Operation *user) { return isa<dist::PackOp>(user); });
  });
}

static bool leavesBucket(Value value) {
  return stripViews(value).getDefiningOp<dist::UnpackOp>() != nullptr;
}

/// The signature and body of a kernel before it has a name.
struct Kernel {
  SmallVector<Value> inputs, results; // values of the step
  SmallVector<int64_t> inplace;       // per result
};

/// The kernels of a module, which its step functions share.
struct KernelTable {
  llvm::StringMap<func::FuncOp> byText;
  unsigned counter = 0;
};

class Outliner {
public:
  Outliner(ModuleOp module, func::FuncOp step, KernelTable &kernels)
      : module(module), step(step), symbols(module), block(step.getBody().front()),
        kernels(kernels), graph(block), hostOps(findHostOps(step)) {}

  void run() {
    orderProducts();
    graph.fuse();
    placeSums();
    placeUpdates();
    rebuild();
  }

private:
  void orderProducts();
  void placeSums();
  void placeUpdates();
  void receiveLast(Value argument, unsigned receiver);
  bool mayMeet(unsigned a, unsigned b) const;
  bool mayOverwrite(const Cluster &cluster, Value argument, Value result) const;
  void rebuild();
  Kernel signatureOf(unsigned node) const;
  func::FuncOp getOrCreate(const Kernel &kernel, ArrayRef<Operation *> ops);

  ModuleOp module;
  func::FuncOp step;
  SymbolTable symbols;
  Block &block;
  KernelTable &kernels;
  ClusterGraph graph;
  llvm::DenseSet<Operation *> hostOps;
  DenseMap<Value, Value> overwritten;         // result -> argument of the step
  DenseMap<Value, OpOperand *> sumsInPlace; // result -> the use of the sum it is one more term of
};

} // namespace

/// Kernels copy the constants they use. Who else needs one (a matmul, a collective, the function's
/// results) reads it from memory, written by a kernel that does nothing but that.
static void storeForeignConstants(Block &block) {
  auto isForeign = [&](OpOperand &use) {
    return !lowersAs(use.getOwner(), LoweringKind::Kernel) || use.getOwner()->getBlock() != &block;
  };
  for (Operation &op : llvm::make_early_inc_range(block)) {
    if (!lowersAs(&op, LoweringKind::Constant) || llvm::none_of(op.getUses(), isForeign))
      continue;
    OpBuilder builder(&op);
    builder.setInsertionPointAfter(&op);
    Value constant = op.getResult(0);
    auto stored = builder.create<nn::BroadcastOp>(op.getLoc(), constant.getType(), constant);
    // Where somebody reads it.
    if (dist::MeshOp mesh = dist::lookupMesh(&op)) {
      llvm::BitVector at(mesh.getMesh().getNumDevices());
      for (OpOperand &use : constant.getUses())
        if (isForeign(use))
          at |= dist::getReadPositions(use, mesh.getMesh());
      if (at.any())
        dist::setPositions(stored, at);
    }
    constant.replaceUsesWithIf(stored, isForeign);
  }
}

/// Whether a sum lies in a buffer of its own, which the next term may be added to: arguments and constants do not, nor
/// views of anything, and of what `dist` makes only shards.
static bool ownsBuffer(Value sum) {
  Operation *def = sum.getDefiningOp();
  return isa_and_nonnull<AddToOp, dist::ReduceScatterOp>(def) ||
         (def && stripViews(sum) == sum && !lowersAs(def, LoweringKind::Constant) &&
          !isa_and_nonnull<dist::DistDialect>(def->getDialect()));
}

/// What a group of messages hands out of what lies outside is used by that name: who looks for its readers finds all.
static void forwardThroughGroups(Block &block) {
  for (auto group : block.getOps<dist::GroupOp>()) {
    ValueRange yielded = group.getBody().front().getTerminator()->getOperands();
    for (auto [result, value] : llvm::zip_equal(group.getResults(), yielded))
      if (value.getParentRegion() == block.getParent())
        result.replaceAllUsesWith(value);
  }
}

static void copyPositions(Operation *from, Operation *to) {
  if (Attribute at = from->getAttr(dist::DistDialect::kAtAttr))
    to->setAttr(dist::DistDialect::kAtAttr, at);
}

/// Products that are added to a sum which is there already go to its buffer.
static void addProductsInPlace(Block &block) {
  for (Operation &op : llvm::make_early_inc_range(block)) {
    if (!isRunningSum(&op) || !ownsBuffer(op.getOperand(0)))
      continue;
    Value term = op.getOperand(1);
    while (term.hasOneUse() && lowersAs(term.getDefiningOp(), LoweringKind::View))
      term = term.getDefiningOp()->getOperand(0);
    auto product = term.getDefiningOp<LoweringOpInterface>();
    if (!product || !term.hasOneUse() || product.getLoweringKind() != LoweringKind::Library || !product.canAdd() ||
        product->getNumResults() != 1 || product->getBlock() != &block ||
        product->getAttr(dist::DistDialect::kAtAttr) != op.getAttr(dist::DistDialect::kAtAttr))
      continue;
    OpBuilder builder(&op);
    auto sum = builder.create<AddToOp>(op.getLoc(), op.getResult(0).getType(), op.getOperand(0), op.getOperand(1));
    copyPositions(&op, sum);
    copyOrigin(&op, sum);
    op.getResult(0).replaceAllUsesWith(sum);
    op.erase();
  }
}

/// The call that adds to a sum runs when that is there.
void Outliner::orderProducts() {
  for (auto sum : block.getOps<AddToOp>()) {
    std::optional<unsigned> before = graph.producerOf(sum.getSum()),
                            product = graph.producerOf(stripViews(sum.getTerm()));
    bool isOrdered = before && product && graph.addOrder(*before, *product);
    assert(isOrdered && "a term needs no sum of its own kind");
    (void)isOrdered;
  }
}

/// Other terms are added by kernels that write over the sum.
void Outliner::placeSums() {
  for (Operation &op : block) {
    if (!isRunningSum(&op))
      continue;
    Value sum = op.getOperand(0), result = op.getResult(0);
    std::optional<unsigned> node = graph.nodeOf(&op), before = graph.producerOf(sum);
    if (node && before && *before != *node && graph[*node].kernel && ownsBuffer(sum) &&
        mayOverwrite(graph[*node], sum, result))
      sumsInPlace[result] = &op.getOpOperand(0);
  }
}

/// An update may overwrite its argument when the kernel reads the old value only at the place it
/// then writes, and only on the way to the new value.
bool Outliner::mayOverwrite(const Cluster &cluster, Value argument, Value result) const {
  SetVector<Operation *> ancestors; // of the result, within the kernel
  ancestors.insert(result.getDefiningOp());
  for (unsigned i = 0; i < ancestors.size(); ++i)
    for (Value operand : ancestors[i]->getOperands())
      if (Operation *def = operand.getDefiningOp(); def && llvm::is_contained(cluster.ops, def))
        ancestors.insert(def);
  bool reads = false;
  for (Operation *op : cluster.ops) {
    if (!llvm::is_contained(op->getOperands(), argument))
      continue;
    reads = true;
    if (!ancestors.contains(op) || !isElementwise(op) ||
        cast<ShapedType>(op->getResult(0).getType()).getShape() !=
            cast<ShapedType>(argument.getType()).getShape())
      return false;
  }
  return reads;
}

/// What is gathered, or comes from another memory, in place of an argument comes behind all that reads the old value,
/// so that it may be received there.
void Outliner::receiveLast(Value argument, unsigned receiver) {
  for (Value alias : partsOf(argument))
    for (unsigned reader : graph.usersOf(alias))
      if (reader != receiver && mayMeet(reader, receiver))
        graph.addOrder(reader, receiver);
}

/// Whether some mesh position runs both nodes.
bool Outliner::mayMeet(unsigned a, unsigned b) const {
  return dist::mayMeet(graph[a].ops.front(), graph[b].ops.front());
}

void Outliner::placeUpdates() {
  auto yield = cast<func::ReturnOp>(step.getBody().front().getTerminator());
  llvm::SmallDenseSet<Value> taken;
  SmallVector<std::optional<unsigned>> updated = nn::updatedArguments(step);
  for (auto [value, number] : llvm::zip_equal(yield.getOperands(), updated)) {
    std::optional<unsigned> node = graph.producerOf(value);
    if (!number || !node || overwritten.count(value))
      continue;
    Value argument = step.getArgument(*number);
    if (isa<dist::AllGatherOp, TransferOp>(value.getDefiningOp()))
      receiveLast(argument, *node);
    if (!graph[*node].kernel || argument.getType() != value.getType() || !taken.insert(argument).second ||
        !mayOverwrite(graph[*node], argument, value))
      continue;
    // Every other reader of the old value comes first, or the update gets a buffer of its own.
    SmallVector<unsigned> readers;
    bool apart = true;
    for (Value alias : partsOf(argument)) {
      for (unsigned reader : graph.usersOf(alias)) {
        if (reader != *node && mayMeet(reader, *node))
          readers.push_back(reader);
        // In another shape the kernel would read it at other places than it writes.
        apart &= reader != *node || alias == argument;
      }
      // Another argument takes over the old value when the step ends.
      for (OpOperand &use : alias.getUses())
        apart &= use.getOwner() != yield || !updated[use.getOperandNumber()];
    }
    if (!apart)
      continue;
    if (llvm::all_of(readers, [&](unsigned reader) { return graph.addOrder(reader, *node); }))
      overwritten[value] = argument;
  }
}

Kernel Outliner::signatureOf(unsigned node) const {
  Kernel kernel;
  llvm::SetVector<Value> inputs;
  for (Operation *op : graph[node].ops) {
    for (Value operand : op->getOperands()) {
      Operation *def = operand.getDefiningOp();
      if (graph.producerOf(operand) != std::optional(node) && !lowersAs(def, LoweringKind::Constant))
        inputs.insert(isWidening(def) ? def->getOperand(0) : operand);
    }
    auto isOther = [&](Operation *user) { return graph.nodeOf(user) != std::optional(node); };
    auto isOtherKernel = [&](Operation *user) {
      std::optional<unsigned> reader = graph.nodeOf(user);
      return reader && *reader != node && graph[*reader].kernel;
    };
    // Of a value that is widened here, other kernels that read it so take the narrow one.
    auto leaves = [&](Operation *user) {
      return isWidening(op)     ? isOther(user) && !isOtherKernel(user)
             : isWidening(user) ? isOther(user) || llvm::any_of(user->getUsers(), isOtherKernel)
                                : isOther(user);
    };
    for (Value result : op->getResults())
      if (llvm::any_of(result.getUsers(), leaves))
        kernel.results.push_back(result);
  }
  kernel.inputs = inputs.takeVector();
  for (Value result : kernel.results) {
    // A sum that is a kernel's has been replaced by its call.
    OpOperand *sum = sumsInPlace.lookup(result);
    Value argument = sum ? sum->get() : overwritten.lookup(result);
    auto at = llvm::find(kernel.inputs, argument);
    kernel.inplace.push_back(argument ? at - kernel.inputs.begin() : -1);
  }
  return kernel;
}

/// `k_add_relu_3`: what it computes, in order, at most four names.
static std::string kernelName(ArrayRef<Operation *> ops, unsigned number) {
  std::string name = "k";
  StringRef last;
  unsigned parts = 0;
  for (Operation *op : ops) {
    StringRef mnemonic = op->getName().stripDialect();
    if (mnemonic == last)
      continue;
    last = mnemonic;
    if (++parts > 4)
      break;
    name += ("_" + mnemonic).str();
  }
  return name + "_" + std::to_string(number);
}

func::FuncOp Outliner::getOrCreate(const Kernel &kernel, ArrayRef<Operation *> ops) {
  MLIRContext *context = module.getContext();
  OpBuilder builder(context);
  auto type = builder.getFunctionType(TypeRange(ValueRange(kernel.inputs)),
                                      TypeRange(ValueRange(kernel.results)));
  // Without a name, so that equal kernels have equal texts.
  auto func = func::FuncOp::create(ops.front()->getLoc(), "k", type);
  func.setPrivate();
  func->setAttr(ExecDialect::kKernelAttr, builder.getUnitAttr());
  if (hostOps.contains(ops.front()))
    func->setAttr(ExecDialect::kHostAttr, builder.getUnitAttr());
  if (llvm::any_of(kernel.inplace, [](int64_t operand) { return operand >= 0; }))
    func->setAttr(ExecDialect::kInplaceAttr, builder.getDenseI64ArrayAttr(kernel.inplace));
  for (auto [i, value] : llvm::enumerate(kernel.inputs))
    if (leavesBucket(value) || llvm::any_of(llvm::enumerate(kernel.inplace), [&, i = i](auto result) {
          return result.value() == int64_t(i) && entersBucket(kernel.results[result.index()]);
        }))
      func.setArgAttr(i, ExecDialect::kUnalignedAttr, builder.getUnitAttr());
  for (auto [i, value] : llvm::enumerate(kernel.results))
    if (entersBucket(value))
      func.setResultAttr(i, ExecDialect::kUnalignedAttr, builder.getUnitAttr());

  Block *body = func.addEntryBlock();
  builder.setInsertionPointToStart(body);
  IRMapping map;
  map.map(kernel.inputs, body->getArguments());
  for (Operation *op : ops) {
    // What is neither given nor made here is copied: constants, and casts that widen.
    for (Value operand : op->getOperands())
      if (!map.contains(operand))
        builder.clone(*operand.getDefiningOp(), map)->setDiscardableAttrs(builder.getDictionaryAttr({}));
    builder.clone(*op, map)->setDiscardableAttrs(builder.getDictionaryAttr({}));
  }
  SmallVector<Value> results;
  for (Value result : kernel.results)
    results.push_back(map.lookup(result));
  builder.create<func::ReturnOp>(func.getLoc(), results);

  std::string text;
  llvm::raw_string_ostream stream(text);
  func->print(stream,
              OpPrintingFlags().printGenericOpForm().enableDebugInfo(false).elideLargeElementsAttrs(
                  std::numeric_limits<int64_t>::max()));
  auto [at, added] = kernels.byText.try_emplace(text, func);
  if (!added) {
    func->erase();
    return at->second;
  }
  // Names count up until one is free of what the user's module holds.
  std::string name;
  do {
    name = kernelName(ops, kernels.counter++);
  } while (symbols.lookup(name));
  func.setName(name);
  symbols.insert(func, Block::iterator(step));
  return func;
}

/// Equal kernels may have results of different classes: the call says which.
static void setClasses(CallOp call, ArrayRef<Value> results) {
  Builder builder(call.getContext());
  SmallVector<Attribute> classes;
  bool any = false;
  for (Value result : results) {
    std::optional<StorageClass> asked = getAskedClass(result);
    any |= asked.has_value();
    classes.push_back(builder.getStringAttr(asked ? stringifyStorageClass(*asked) : ""));
  }
  if (any)
    call->setAttr(ExecDialect::kClassesAttr, builder.getArrayAttr(classes));
}

void Outliner::rebuild() {
  OpBuilder builder(block.getTerminator());
  SmallVector<Operation *> dead;
  for (unsigned node : graph.schedule()) {
    ArrayRef<Operation *> ops = graph[node].ops;
    if (!graph[node].kernel) {
      ops.front()->moveBefore(block.getTerminator());
      continue;
    }
    Kernel kernel = signatureOf(node);
    llvm::append_range(dead, ops);
    if (kernel.results.empty())
      continue;
    func::FuncOp func = getOrCreate(kernel, ops);
    SmallVector<Location> locs;
    for (Operation *op : ops)
      locs.push_back(op->getLoc());
    auto call = builder.create<CallOp>(FusedLoc::get(module.getContext(), locs),
                                       func.getResultTypes(), func.getSymName(), kernel.inputs);
    copyPositions(ops.front(), call);
    if (Attribute scope = findScope(ops))
      call->setAttr(ExecDialect::kScopeAttr, scope);
    setClasses(call, kernel.results);
    for (auto [value, result] : llvm::zip_equal(kernel.results, call.getResults()))
      value.replaceAllUsesWith(result);
  }
  for (Operation *op : llvm::reverse(dead)) {
    op->dropAllUses();
    op->erase();
  }
  for (Operation &op : llvm::make_early_inc_range(block))
    if (lowersAs(&op, LoweringKind::Constant) && op.use_empty())
      op.erase();
}

namespace {
struct OutlineKernels : impl::OutlineKernelsPassBase<OutlineKernels> {
  void runOnOperation() override {
    FailureOr<SmallVector<func::FuncOp>> steps = findSteps(getOperation());
    if (failed(steps))
      return signalPassFailure();
    KernelTable kernels;
    for (func::FuncOp step : *steps) {
      Block &block = step.getBody().front();
      forwardThroughGroups(block);
      eraseDeadOps(block);
      moveIdsToSteps(block);
      addProductsInPlace(block);
      storeForeignConstants(block);
      Outliner(getOperation(), step, kernels).run();
    }
  }
};
} // namespace

} // namespace shoal::exec
