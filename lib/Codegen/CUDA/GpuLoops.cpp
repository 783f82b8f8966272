// exec-kernels-to-gpu: a kernel plan as a function of threads. What the plan says is shared with the
// CPU; here it is decided who runs which iterations, and where threads wait for each other.
#include "../Kernels/LoopEmitter.h"

#include "shoal/Codegen/Passes.h"
#include "shoal/Dialect/Exec/IR/Exec.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace shoal::codegen {
#define GEN_PASS_DEF_KERNELSTOGPUPASS
#include "shoal/passes/ShoalCodegen.h.inc"

namespace {

/// Threads of a block, at most: as many partial results a reduction shares.
constexpr int64_t kMaxThreads = 256;

/// Outermost loops whose iterations are dealt out to threads: `loop` and those that are all that
/// is in it, as long as they are parallel for every op.
SmallVector<const Item *> parallelLoops(const Item &loop) {
  SmallVector<const Item *> loops;
  auto isParallel = [&](const Item &item) {
    return !item.node && llvm::none_of(item.nodes, [&](const Node *node) {
      return node->isReduction[loops.size()];
    });
  };
  for (const Item *next = &loop; next && isParallel(*next);) {
    loops.push_back(next);
    next = next->children.size() == 1 ? &next->children.front() : nullptr;
  }
  return loops;
}

class GpuLoopEmitter : public LoopEmitter {
public:
  GpuLoopEmitter(KernelPlan &plan, gpu::GPUModuleOp module) : LoopEmitter(plan), module(module) {}

private:
  FunctionOpInterface createFunction(FunctionType type) override {
    b.setInsertionPoint(module.getBody(), std::prev(module.getBody()->end()));
    auto function = b.create<gpu::GPUFuncOp>(loc, old.getName(), type);
    function->setAttr(gpu::GPUDialect::getKernelFuncAttrName(), b.getUnitAttr());
    // At most: what is written here is right for every smaller block, too.
    function->setAttr(NVVM::NVVMDialect::getMaxntidAttrName(),
                      b.getDenseI32ArrayAttr({int32_t(kMaxThreads)}));
    return function;
  }
  void createReturn() override {
    b.setInsertionPointToEnd(&func.getFunctionBody().front());
    b.create<gpu::ReturnOp>(loc);
  }
  // LLVM sees one thread. What others write before a barrier must not be "unaliased" for it.
  bool argumentsAreUnshared() override { return usesManyBlocks(); }

  /// Whether no thread needs what another one does: a block is then as good as many.
  bool usesManyBlocks() const {
    bool noCopies = llvm::all_of(
        plan.results, [](const ResultPlan &result) { return result.direct || result.nothing; });
    return noCopies && plan.hasIndependentLoops() && llvm::all_of(plan.items, [&](const Item &item) {
      if (!item.node)
        return !parallelLoops(item).empty();
      return llvm::none_of(item.node->op.getResults(),
                           [&](Value result) { return plan.storage[result].needed; });
    });
  }

  LogicalResult emitBody() override {
    Type type = b.getIndexType();
    auto x = gpu::Dimension::x;
    Value block = b.create<gpu::BlockIdOp>(loc, type, x);
    thread = first = b.create<gpu::ThreadIdOp>(loc, type, x);
    threads = stride = b.create<gpu::BlockDimOp>(loc, type, x);
    zero = index(0);
    if (usesManyBlocks()) {
      first = b.create<arith::AddIOp>(loc, b.create<arith::MulIOp>(loc, block, threads), thread);
      stride = b.create<arith::MulIOp>(loc, b.create<gpu::GridDimOp>(loc, type, x), threads);
      return emitPhases();
    }
    Value isFirstBlock = b.create<arith::CmpIOp>(loc, arith::CmpIPredicate::eq, block, zero);
    b.setInsertionPointToStart(b.create<scf::IfOp>(loc, isFirstBlock).thenBlock());
    return emitPhases();
  }

  /// One after the other, with a barrier between; threads share the iterations of each.
  LogicalResult emitPhases() {
    emitOperandCopies();
    Accumulators accumulators;
    for (const Item &item : plan.items) {
      separate();
      if (item.node)
        allThreads([&] { emitStatement(*item.node, accumulators); });
      else if (auto loops = parallelLoops(item); !loops.empty())
        emitParallel(loops, accumulators);
      else if (failed(emitReduction(item, accumulators)))
        return failure();
    }
    emitResultCopies();
    return success();
  }

  void barrier() { b.create<gpu::BarrierOp>(loc); }
  void separate() {
    if (!usesManyBlocks() && std::exchange(somethingRan, true))
      barrier();
  }

  /// All threads compute the same values; one of them stores.
  void allThreads(function_ref<void()> emit) {
    isUniform = true;
    emit();
    isUniform = false;
  }
  void store(Value root, ArrayRef<Position> positions, Value value) override {
    if (!isUniform)
      return LoopEmitter::store(root, positions, value);
    // Others may still read what is overwritten.
    barrier();
    OpBuilder::InsertionGuard guard(b);
    Value isFirst = b.create<arith::CmpIOp>(loc, arith::CmpIPredicate::eq, thread, zero);
    b.setInsertionPointToStart(b.create<scf::IfOp>(loc, isFirst).thenBlock());
    LoopEmitter::store(root, positions, value);
  }

  /// Body for every point of a box, dealt out to the threads in the order of memory.
  void emitBox(ArrayRef<int64_t> sizes, function_ref<void(ValueRange)> body) {
    int64_t total = 1;
    for (int64_t size : sizes)
      total *= size;
    OpBuilder::InsertionGuard guard(b);
    auto loop = b.create<scf::ForOp>(loc, first, index(total), stride);
    b.setInsertionPointToStart(loop.getBody());
    SmallVector<Value> at(sizes.size());
    Value rest = loop.getInductionVar();
    for (unsigned k = sizes.size(); k-- > 0;) {
      at[k] = k == 0 ? rest : Value(b.create<arith::RemUIOp>(loc, rest, index(sizes[k])));
      if (k > 0)
        rest = b.create<arith::DivUIOp>(loc, rest, index(sizes[k]));
    }
    body(at);
  }
  void emitNest(ArrayRef<int64_t> sizes, function_ref<void(ValueRange)> body) override {
    separate();
    emitBox(sizes, body);
  }
  void emitParallel(ArrayRef<const Item *> loops, Accumulators &accumulators) {
    auto sizes = llvm::map_to_vector(loops, [](const Item *loop) { return loop->size; });
    emitBox(sizes, [&](ValueRange at) {
      ivs.assign(at.begin(), at.end());
      size_t visible = registers.size();
      emitItems(loops.back()->children, loops.size(), accumulators);
      registers.resize(visible);
      ivs.clear();
    });
  }

  /// A loop that ends in a few numbers: each thread reduces its share, then partial results are
  /// joined in a tree.
  LogicalResult emitReduction(const Item &loop, Accumulators &accumulators) {
    Reductions reductions = beginReductions(loop, 0, accumulators);
    if (!reductions.canJoin)
      return loop.nodes.front()->op->emitOpError(
          "a reduction over threads must end in an addition, a maximum or a minimum of its accumulator");
    emitShare(loop, reductions, accumulators);
    for (auto [result, owner] : llvm::zip_equal(reductions.carried, reductions.owners))
      accumulators[result] = joinThreads(owner, accumulators.lookup(result));
    allThreads([&] { endReductions(reductions, 0, accumulators); });
    return success();
  }
  /// A thread's share, as sums of partial sums when it may be long, as on the CPU.
  void emitShare(const Item &loop, const Reductions &reductions, Accumulators &accumulators) {
    ArrayRef<Value> carried = reductions.carried;
    if (loop.size <= kSumBlock)
      return emitPartOfLoop(loop, 0, thread, index(loop.size), threads, carried, accumulators);
    Value span = b.create<arith::MulIOp>(loc, threads, index(kSumBlock));
    auto outer = b.create<scf::ForOp>(loc, thread, index(loop.size), span,
                                      current(reductions, accumulators));
    {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(outer.getBody());
      Value begin = outer.getInductionVar();
      Value end = b.create<arith::MinUIOp>(loc, b.create<arith::AddIOp>(loc, begin, span),
                                           index(loop.size));
      restart(reductions, accumulators);
      emitPartOfLoop(loop, 0, begin, end, threads, carried, accumulators);
      for (auto [k, result] : llvm::enumerate(carried))
        accumulators[result] = join(reductions.owners[k], outer.getRegionIterArgs()[k],
                                    accumulators.lookup(result));
      b.create<scf::YieldOp>(loc, current(reductions, accumulators));
    }
    for (auto [result, value] : llvm::zip_equal(carried, outer.getResults()))
      accumulators[result] = value;
  }
  Value joinThreads(const std::pair<Node *, unsigned> &owner, Value partial) {
    Value buffer = sharedBuffer(partial.getType());
    b.create<memref::StoreOp>(loc, partial, buffer, thread);
    for (int64_t half = kMaxThreads / 2; half > 0; half /= 2) {
      barrier();
      Value other = b.create<arith::AddIOp>(loc, thread, index(half));
      Value joins = b.create<arith::AndIOp>(
          loc, b.create<arith::CmpIOp>(loc, arith::CmpIPredicate::ult, thread, index(half)),
          b.create<arith::CmpIOp>(loc, arith::CmpIPredicate::ult, other, threads));
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(b.create<scf::IfOp>(loc, joins).thenBlock());
      Value mine = b.create<memref::LoadOp>(loc, buffer, thread);
      Value joined = join(owner, mine, b.create<memref::LoadOp>(loc, buffer, other));
      b.create<memref::StoreOp>(loc, joined, buffer, thread);
    }
    barrier();
    return b.create<memref::LoadOp>(loc, buffer, zero);
  }
  /// Room for one element of each thread, that all have finished with.
  Value sharedBuffer(Type element) {
    Value &buffer = shared[element];
    if (buffer) {
      barrier();
      return buffer;
    }
    auto space = gpu::AddressSpaceAttr::get(b.getContext(), gpu::AddressSpace::Workgroup);
    auto type = MemRefType::get({kMaxThreads}, element, MemRefLayoutAttrInterface(), space);
    return buffer = cast<gpu::GPUFuncOp>(func.getOperation()).addWorkgroupAttribution(type, loc);
  }

  gpu::GPUModuleOp module;
  Value zero, thread, threads; // of the block
  Value first, stride;         // of all threads that take part
  bool isUniform = false, somethingRan = false;
  llvm::MapVector<Type, Value> shared;
};

struct KernelsToGPU : impl::KernelsToGPUPassBase<KernelsToGPU> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    gpu::GPUModuleOp kernels;
    for (auto func : llvm::make_early_inc_range(module.getOps<func::FuncOp>())) {
      if (!exec::isKernel(func))
        continue;
      if (!kernels) {
        OpBuilder b = OpBuilder::atBlockEnd(module.getBody());
        kernels = b.create<gpu::GPUModuleOp>(module.getLoc(), "kernels");
        module->setAttr(gpu::GPUDialect::getContainerModuleAttrName(), b.getUnitAttr());
      }
      auto plan = KernelPlan::create(func, PlanTarget::gpu());
      if (failed(plan) || failed(GpuLoopEmitter(**plan, kernels).run()))
        return signalPassFailure();
    }
  }
};

} // namespace
} // namespace shoal::codegen
