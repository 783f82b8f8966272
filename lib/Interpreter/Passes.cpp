// The interpreter as passes: `interpret` prints what a program computes, `dist-verify-plan`
// compares a local program with the global one.
#include "shoal/Interpreter/Passes.h"

#include "shoal/Dialect/Dist/IR/Dist.h"
#include "shoal/Dialect/NN/IR/NN.h"
#include "shoal/Dialect/NN/IR/Updates.h"
#include "shoal/Interpreter/Arguments.h"
#include "shoal/Interpreter/VerifyPlan.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>
#include <cmath>

namespace shoal::interp {
#define GEN_PASS_DEF_INTERPRETPASS
#define GEN_PASS_DEF_DISTVERIFYPLANPASS
#include "shoal/passes/ShoalInterpreter.h.inc"
} // namespace shoal::interp

using namespace mlir;
using namespace shoal;
using namespace shoal::interp;

namespace {

FailureOr<Precision> parsePrecision(Operation *op, StringRef name) {
  if (name == "f64")
    return Precision::F64;
  if (name == "program")
    return Precision::Program;
  return emitError(op->getLoc()) << "precision is f64 or program, got: " << name;
}

// NaNs have no sign here: platforms differ in it.
void print(llvm::raw_ostream &os, double value) {
  if (std::isnan(value))
    os << "nan";
  else
    os << llvm::format("%.9g", value);
}

void print(llvm::raw_ostream &os, const Tensor &tensor, unsigned elements) {
  double sum = 0, square = 0;
  for (int64_t k = 0; k < tensor.size(); ++k) {
    sum += tensor.at(k);
    square += tensor.at(k) * tensor.at(k);
  }
  os << tensor.type << " sum ";
  print(os, sum);
  os << " sumsq ";
  print(os, square);
  os << " [";
  for (int64_t k = 0; k < tensor.size() && k < int64_t(elements); ++k) {
    os << (k ? ", " : "");
    if (tensor.isFloat())
      print(os, tensor.f[k]);
    else
      os << tensor.i[k];
  }
  os << (tensor.size() > int64_t(elements) ? ", ...]" : "]");
}

/// The first `valid` elements of each dimension, nested: "[[1, 2], [3, 4]]", a scalar bare.
void printNested(llvm::raw_ostream &os, const Tensor &tensor, ArrayRef<int64_t> valid,
                 size_t dim = 0, int64_t first = 0) {
  if (dim == valid.size()) {
    if (tensor.isFloat())
      print(os, tensor.f[first]);
    else
      os << tensor.i[first];
    return;
  }
  int64_t stride = ShapedType::getNumElements(tensor.shape().drop_front(dim + 1));
  os << "[";
  for (int64_t i = 0; i < valid[dim]; ++i) {
    os << (i ? ", " : "");
    printNested(os, tensor, valid, dim + 1, first + i * stride);
  }
  os << "]";
}

struct InterpretPass : interp::impl::InterpretPassBase<InterpretPass> {
  using InterpretPassBase::InterpretPassBase;

  void runOnOperation() override {
    if (failed(interpret()))
      signalPassFailure();
    markAllAnalysesPreserved();
  }

  LogicalResult interpret() {
    FailureOr<func::FuncOp> func = findFunction(getOperation(), function);
    FailureOr<Precision> parsed = parsePrecision(getOperation(), precision);
    if (failed(func) || failed(parsed))
      return failure();
    dist::MeshAttr mesh;
    if (allRanks) {
      dist::MeshOp op = dist::lookupMesh(getOperation());
      if (!op)
        return emitError(getOperation().getLoc()) << "all-ranks needs a dist.mesh in the module";
      mesh = op.getMesh();
    }
    RunOptions run;
    run.precision = *parsed;
    ArgumentOptions argumentOptions{seed};
    std::vector<TensorList> ranks;
    SmallVector<std::optional<unsigned>> updated = nn::updatedArguments(*func);
    for (int64_t step = 0; step < int64_t(steps); ++step) {
      if (failed(refresh(*func, mesh, step, argumentOptions, ranks)))
        return failure();
      FailureOr<std::vector<TensorList>> results = runLocal(*func, mesh, ranks, run);
      if (failed(results))
        return failure();
      if (outputs)
        reportOutputs(*func, mesh, *results);
      else
        report(*func, mesh, step, *results);
      for (auto [r, argument] : llvm::enumerate(updated))
        for (size_t p = 0; argument && p < ranks.size(); ++p)
          if ((*results)[p][r].type)
            ranks[p][*argument] = (*results)[p][r];
    }
    return success();
  }

  // All arguments in the first step, later only those that each step brings anew.
  LogicalResult refresh(func::FuncOp func, dist::MeshAttr mesh, int64_t step,
                        const ArgumentOptions &argumentOptions, std::vector<TensorList> &ranks) {
    SmallVector<TensorList> wholes;
    for (unsigned i = 0; i < func.getNumArguments(); ++i) {
      FailureOr<TensorList> values = makeWholes(func, i, step, argumentOptions);
      if (failed(values))
        return failure();
      wholes.push_back(std::move(*values));
    }
    FailureOr<std::vector<TensorList>> shards = distribute(func, mesh, wholes);
    if (failed(shards))
      return failure();
    if (step == 0) {
      ranks = std::move(*shards);
      return success();
    }
    for (size_t p = 0; p < ranks.size(); ++p)
      for (unsigned i = 0; i < func.getNumArguments(); ++i)
        if (isFreshEachStep(func, i))
          ranks[p][i] = std::move((*shards)[p][i]);
    return success();
  }

  /// What a rank holds of a result, without padding.
  static SmallVector<int64_t> validSizes(func::FuncOp func, unsigned result, dist::MeshAttr mesh,
                                         int64_t position, const Tensor &tensor) {
    SmallVector<int64_t> valid(tensor.shape());
    auto global =
        func.getResultAttrOfType<dist::GlobalAttr>(result, dist::DistDialect::kGlobalAttr);
    if (!mesh || !global)
      return valid;
    SmallVector<int64_t> offsets =
        shardOffsets(tensor.shape(), global.getSharding(), mesh, position);
    for (auto [size, whole, offset] :
         llvm::zip_equal(valid, global.getType().getShape(), offsets))
      size = std::clamp<int64_t>(whole - offset, 0, size);
    return valid;
  }

  void reportOutputs(func::FuncOp func, dist::MeshAttr mesh,
                     const std::vector<TensorList> &results) {
    llvm::raw_ostream &os = llvm::outs();
    std::vector<size_t> positionOf(results.size());
    for (size_t position = 0; position < results.size(); ++position)
      positionOf[mesh && !mesh.getDeviceIds().empty() ? mesh.getDeviceIds()[position] : position] =
          position;
    for (auto [rank, position] : llvm::enumerate(positionOf))
      for (auto [number, tensor] : llvm::enumerate(results[position])) {
        auto name = func.getResultAttrOfType<StringAttr>(number, nn::NNDialect::kOutputAttr);
        if (!name || !tensor.type)
          continue;
        os << "rank " << rank << " " << name.getValue() << ": ";
        printNested(os, tensor, validSizes(func, number, mesh, position, tensor));
        os << "\n";
      }
    os.flush();
  }

  void report(func::FuncOp func, dist::MeshAttr mesh, int64_t step,
              const std::vector<TensorList> &results) {
    llvm::raw_ostream &os = llvm::outs();
    for (auto [position, list] : llvm::enumerate(results))
      for (auto [number, tensor] : llvm::enumerate(list)) {
        os << "step " << step;
        if (allRanks)
          os << " rank "
             << (mesh.getDeviceIds().empty() ? position : mesh.getDeviceIds()[position]);
        os << " result " << number;
        if (std::string name = describeResult(func, number); !name.empty())
          os << " (" << name << ")";
        os << ": ";
        if (!tensor.type)
          os << "of other ranks";
        else
          print(os, tensor, elements);
        os << "\n";
      }
    os.flush();
  }
};

struct DistVerifyPlanPass : interp::impl::DistVerifyPlanPassBase<DistVerifyPlanPass> {
  using DistVerifyPlanPassBase::DistVerifyPlanPassBase;

  void runOnOperation() override {
    markAllAnalysesPreserved();
    FailureOr<Precision> parsed = parsePrecision(getOperation(), precision);
    if (failed(parsed))
      return signalPassFailure();
    if (reference.empty()) {
      emitError(getOperation().getLoc())
          << "dist-verify-plan needs the L1 module (option reference)";
      return signalPassFailure();
    }
    OwningOpRef<ModuleOp> global = parseSourceFile<ModuleOp>(reference, &getContext());
    if (!global) {
      emitError(getOperation().getLoc()) << "the reference cannot be read: " << reference;
      return signalPassFailure();
    }
    VerifyPlanOptions planOptions;
    planOptions.function = function;
    planOptions.seed = seed;
    planOptions.steps = steps;
    planOptions.precision = *parsed;
    planOptions.tolerance = tolerance;
    PlanReport details;
    if (failed(checkPlan(*global, getOperation(), planOptions, &details)))
      return signalPassFailure();
    emitRemark(getOperation().getLoc())
        << "the plan agrees with one device: " << details.countsText(planOptions);
  }
};

} // namespace
