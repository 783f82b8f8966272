// Arguments of a run: initial parameters and state, random inputs, and their shards.
#include "shoal/Interpreter/Arguments.h"

#include "shoal/Dialect/Dist/IR/Dist.h"
#include "shoal/Dialect/Exec/IR/Exec.h"
#include "shoal/Dialect/NN/IR/Roles.h"

#include "shoal-rt/random.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <cmath>

using namespace mlir;

namespace shoal::interp {

FailureOr<func::FuncOp> findFunction(ModuleOp module, StringRef name) {
  if (!name.empty()) {
    if (auto func = module.lookupSymbol<func::FuncOp>(name))
      return func;
    return emitError(module.getLoc()) << "the module has no function of that name: " << name;
  }
  SmallVector<func::FuncOp> models, all;
  for (auto func : module.getOps<func::FuncOp>()) {
    if (func.isExternal() || func->hasAttr(exec::ExecDialect::kKernelAttr))
      continue;
    all.push_back(func);
    if (nn::isModel(func))
      models.push_back(func);
  }
  if (models.size() == 1)
    return models.front();
  if (models.empty() && all.size() == 1)
    return all.front();
  return emitError(module.getLoc())
         << "cannot tell which function is meant (option function): the module "
            "has "
         << all.size() << ", of which models: " << models.size();
}

RankedTensorType wholeType(FunctionOpInterface func, unsigned index) {
  if (auto global = func.getArgAttrOfType<dist::GlobalAttr>(index, dist::DistDialect::kGlobalAttr))
    return global.getType();
  return dyn_cast<RankedTensorType>(func.getArgumentTypes()[index]);
}

// Uniform in [0, 1), a function of (seed, name, step, index).
static double draw(uint64_t seed, StringRef name, int64_t step, int64_t index) {
  auto words =
      rt::philox(rt::streamKey(seed, std::string_view(name)), uint64_t(index), uint64_t(step) + 1);
  return rt::unitInterval(words[0], words[1]);
}

static rt::InitKind kindOf(nn::Init init) {
  switch (init) {
  case nn::Init::zeros:
  case nn::Init::ones:
  case nn::Init::constant:
    return rt::InitKind::Constant;
  case nn::Init::uniform:
    return rt::InitKind::Uniform;
  case nn::Init::normal:
    return rt::InitKind::Normal;
  case nn::Init::kaiming_uniform:
    return rt::InitKind::KaimingUniform;
  case nn::Init::xavier_uniform:
    return rt::InitKind::XavierUniform;
  }
  llvm_unreachable("every init is listed");
}

// `shape` is the one in files, which says what rows and columns are.
static Tensor makeParameter(StringRef name, const nn::InitialValue &initial, RankedTensorType type,
                            ArrayRef<int64_t> shape, const ArgumentOptions &options) {
  rt::InitKind kind = kindOf(initial.kind);
  SmallVector<uint64_t> dims(shape.begin(), shape.end());
  uint64_t key = rt::streamKey(options.seed, std::string_view(name));
  bool addNoise = options.perturb && kind == rt::InitKind::Constant;
  Tensor value(type);
  for (int64_t k = 0; k < value.size(); ++k)
    value.set(k, rt::initialValue(kind, initial.a, initial.b, dims, key, k) +
                     (addNoise ? 0.2 * draw(options.seed, name, 0, k) - 0.1 : 0.0));
  return value;
}

// What integers make sense as an argument's elements. Some uses are enough: a drawn number must mean
// something to each.
static std::optional<nn::IndexRange> indexRangeOf(FunctionOpInterface func, unsigned index) {
  if (func.isExternal())
    return std::nullopt;
  return nn::findIndexRange(func.getArgument(index), nn::IndexUse::Some, dist::getBodyArgument);
}

static Tensor makeInput(FunctionOpInterface func, unsigned index, RankedTensorType type,
                        int64_t step, const ArgumentOptions &options) {
  Tensor value(type);
  std::string name = nn::getArgName(func, index).str();
  if (name.empty())
    name = "argument " + std::to_string(index);
  auto uniform = [&](int64_t k) { return draw(options.seed, name, step, k); };
  std::optional<nn::IndexRange> range = indexRangeOf(func, index);

  if (!value.isFloat()) {
    int64_t size = range ? range->size : type.getElementType().isInteger(1) ? 2 : 4;
    for (int64_t k = 0; k < value.size(); ++k) {
      value.i[k] = int64_t(uniform(k) * double(size));
      // About every sixth target is one that does not count.
      if (range && range->ignored && draw(options.seed, name + "/ignored", step, k) < 1.0 / 6)
        value.i[k] = *range->ignored;
    }
    return value;
  }
  for (int64_t k = 0; k < value.size(); ++k)
    value.f[k] = range ? 0.1 + uniform(k) : 2 * uniform(k) - 1;
  int64_t classes = range && type.getRank() ? type.getShape().back() : 0;
  for (int64_t row = 0; classes && row < value.size() / classes; ++row) {
    double sum = 0;
    for (int64_t c = 0; c < classes; ++c)
      sum += value.f[row * classes + c];
    for (int64_t c = 0; c < classes; ++c)
      value.f[row * classes + c] /= sum;
  }
  return value;
}

static Tensor filled(RankedTensorType type, double value) {
  Tensor tensor(type);
  for (int64_t k = 0; k < tensor.size(); ++k)
    tensor.set(k, value);
  return tensor;
}

FailureOr<Tensor> makeArgument(FunctionOpInterface func, unsigned index, int64_t step,
                               const ArgumentOptions &options) {
  RankedTensorType type = wholeType(func, index);
  if (!type || !type.hasStaticShape() || !type.getElementType().isIntOrFloat())
    return emitError(func.getLoc())
           << "argument " << index
           << " is no tensor of static shape, got: " << func.getArgumentTypes()[index];
  if (failed(checkFits(func.getLoc(), type)))
    return failure();
  std::optional<nn::InitialValue> initial = nn::getInitialValue(func, index);
  switch (nn::getArgRole(func, index)) {
  case nn::ArgRole::Param:
    if (initial)
      return makeParameter(nn::getArgName(func, index), *initial, type,
                           nn::getFileShape(func, index).value_or(type.getShape()), options);
    break;
  case nn::ArgRole::Buffer:
  case nn::ArgRole::State:
    if (initial)
      return filled(type, initial->a);
    break;
  case nn::ArgRole::Step:
    return Tensor(type);
  case nn::ArgRole::ValidRows: {
    FailureOr<int64_t> found = nn::getBatchRows(func, [&](unsigned i) { return wholeType(func, i); });
    if (failed(found))
      return failure();
    int64_t rows = std::max<int64_t>(*found, 1);
    Tensor value(type);
    bool isShort = options.shortBatches && step % 2 == 1;
    value.i[0] =
        isShort ? 1 + int64_t(draw(options.seed, "valid rows", step, 0) * double(rows - 1)) : rows;
    return value;
  }
  case nn::ArgRole::Seed: { // as the runtime draws it
    Tensor value(type);
    value.i[0] = int64_t(rt::streamKey(options.seed, "seed"));
    return value;
  }
  case nn::ArgRole::Input:
  case nn::ArgRole::None:
    break;
  }
  return makeInput(func, index, type, step, options);
}

bool isFreshEachStep(FunctionOpInterface func, unsigned index) {
  nn::ArgRole role = nn::getArgRole(func, index);
  return role == nn::ArgRole::Input || role == nn::ArgRole::ValidRows;
}

std::string describeResult(FunctionOpInterface func, unsigned result) {
  auto roles = nn::getResultRoles(func, result);
  if (roles.empty())
    return "";
  auto [role, name] = roles.front();
  return ((role == nn::ResultRole::Grad ? "gradient of " : role == nn::ResultRole::Updates ? "new " : "") + name).str();
}

FailureOr<TensorList> makeWholes(FunctionOpInterface func, unsigned index, int64_t step,
                                 const ArgumentOptions &options) {
  TensorList wholes;
  for (const Part &part : partsOfArgument(func, index)) {
    FailureOr<Tensor> value = Tensor();
    if (!part.isInBucket()) {
      value = makeArgument(func, index, step, options);
    } else if (succeeded(checkFits(func.getLoc(), part.whole))) {
      std::optional<nn::InitialValue> initial = nn::getInitialValue(part.role);
      auto param = dyn_cast<nn::ParamAttr>(part.role);
      if (param)
        value = makeParameter(param.getName(), *initial, part.whole,
                              param.getFile() ? param.getFile().asArrayRef() : part.whole.getShape(), options);
      else
        value = filled(part.whole, initial->a);
    } else {
      return failure();
    }
    if (failed(value))
      return failure();
    wholes.push_back(std::move(*value));
  }
  return wholes;
}

FailureOr<std::vector<TensorList>> distribute(func::FuncOp func, dist::MeshAttr mesh,
                                              ArrayRef<TensorList> wholes) {
  std::vector<TensorList> ranks(mesh ? mesh.getNumDevices() : 1);
  for (auto [index, parts] : llvm::enumerate(wholes)) {
    FailureOr<TensorList> pieces = distribute(func, index, mesh, parts);
    if (failed(pieces))
      return failure();
    for (auto [list, piece] : llvm::zip_equal(ranks, *pieces))
      list.push_back(std::move(piece));
  }
  return ranks;
}

} // namespace shoal::interp
