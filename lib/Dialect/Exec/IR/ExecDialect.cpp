// The exec dialect: its attributes, its buffer type, and what its attributes on kernels mean.
#include "shoal/Dialect/Dist/IR/Positions.h"
#include "shoal/Dialect/Exec/IR/Exec.h"
#include "shoal/Interfaces/MadeByPasses.h"
#include "shoal/Support/Elements.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

#include "shoal/Dialect/Exec/ExecDialect.cpp.inc"
#include "shoal/Dialect/Exec/ExecEnums.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "shoal/Dialect/Exec/ExecAttrs.cpp.inc"
#define GET_TYPEDEF_CLASSES
#include "shoal/Dialect/Exec/ExecTypes.cpp.inc"

namespace shoal::exec {

void ExecDialect::registerAttributes() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "shoal/Dialect/Exec/ExecAttrs.cpp.inc"
      >();
}

void ExecDialect::registerTypes() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "shoal/Dialect/Exec/ExecTypes.cpp.inc"
      >();
}

/// What only passes write at L1: all, which are of rank programs or on the way there.
static constexpr Made kMade[] = {
    {ExecDialect::kKernelAttr, "exec-outline-kernels"},
    {ExecDialect::kInplaceAttr, "exec-outline-kernels"},
    {ExecDialect::kUnalignedAttr, "exec-outline-kernels"},
    {ExecDialect::kWorkspaceAttr, "exec-kernel-workspace"},
    {ExecDialect::kHostAttr, "exec-outline-kernels"},
    {ExecDialect::kClassAttr, "nn-mixed-precision and dist-pack"},
    {ExecDialect::kClassesAttr, "exec-outline-kernels"},
    {ExecDialect::kAtAttr, "exec-lower"},
    {ExecDialect::kScopeAttr, "pipe-unroll"},
    {CallOp::getOperationName(), "exec-outline-kernels"},
    {AddToOp::getOperationName(), "exec-outline-kernels"},
    {TransferOp::getOperationName(), "exec-insert-transfers"},
};

void ExecDialect::initialize() {
  registerAttributes();
  addInterface<MadeByPasses>(ArrayRef(kMade));
  registerTypes();
  addOperations<
#define GET_OP_LIST
#include "shoal/Dialect/Exec/ExecOps.cpp.inc"
      >();
}

// Buffers

BufferType BufferType::get(RankedTensorType tensor, Memory memory) {
  return get(tensor.getContext(), tensor.getShape(), tensor.getElementType(), memory);
}

int64_t BufferType::getNumElements() const { return ShapedType::getNumElements(getShape()); }

int64_t BufferType::getElementBytes() const {
  return elementBytes(getElementType());
}

Type BufferType::parse(AsmParser &parser) {
  SmallVector<int64_t> shape;
  Type element;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseLess() || parser.parseDimensionList(shape, /*allowDynamic=*/false) || parser.parseType(element))
    return {};
  std::optional<Memory> memory = Memory::device;
  if (succeeded(parser.parseOptionalComma())) {
    SMLoc at = parser.getCurrentLocation();
    StringRef name;
    if (parser.parseKeyword(&name))
      return {};
    memory = symbolizeMemory(name);
    if (!memory)
      return parser.emitError(at) << "memory of a buffer must be device or host, got: " << name, Type();
  }
  if (parser.parseGreater())
    return {};
  return getChecked([&] { return parser.emitError(loc); }, parser.getContext(), shape, element, *memory);
}

void BufferType::print(AsmPrinter &printer) const {
  printer << '<';
  for (int64_t size : getShape())
    printer << size << 'x';
  printer << getElementType();
  if (getMemory() != Memory::device)
    printer << ", " << stringifyMemory(getMemory());
  printer << '>';
}

LogicalResult BufferType::verifyElement(function_ref<InFlightDiagnostic()> emitError,
                                        Type elementType) {
  if (!elementType.isF32() && !elementType.isF64() && !elementType.isBF16() &&
      !elementType.isSignlessInteger(32) && !elementType.isSignlessInteger(64) &&
      !elementType.isSignlessInteger(1))
    return emitError() << "element type of a buffer must be f32, f64, bf16, i32, i64 or i1, got: "
                       << elementType;
  return success();
}

LogicalResult BufferType::verify(function_ref<InFlightDiagnostic()> emitError,
                                 ArrayRef<int64_t> shape, Type elementType, Memory) {
  if (failed(verifyElement(emitError, elementType)))
    return failure();
  int64_t bytes = 8;
  for (int64_t size : shape) {
    if (size < 1)
      return emitError() << "dimension of a buffer must be at least 1, got: " << size;
    if (llvm::MulOverflow(bytes, size, bytes))
      return emitError() << "size of a buffer does not fit 64 bits";
  }
  return success();
}

// Positions

static DenseI64ArrayAttr positionsOf(Operation *op) {
  return op->getAttrOfType<DenseI64ArrayAttr>(ExecDialect::kAtAttr);
}

bool runsAt(Operation *op, int64_t position) {
  DenseI64ArrayAttr at = positionsOf(op);
  return !at || llvm::binary_search(at.asArrayRef(), position);
}

bool mayMeet(Operation *a, Operation *b) { return dist::haveCommon(positionsOf(a), positionsOf(b)); }

void getAccesses(RowOpInterface row, int64_t position, SmallVectorImpl<Value> &reads, SmallVectorImpl<Value> &writes) {
  auto messages = dyn_cast<PointToPointOp>(row.getOperation());
  if (!messages) {
    row.getReads(reads);
    row.getWrites(writes);
    return;
  }
  auto add = [&](ValueRange buffers, ArrayAttr peers, SmallVectorImpl<Value> &to) {
    for (auto [buffer, list] : llvm::zip_equal(buffers, peers))
      if (cast<DenseI64ArrayAttr>(list)[position] >= 0)
        to.push_back(buffer);
  };
  add(messages.getSends(), messages.getTargets(), reads);
  add(messages.getRecvs(), messages.getSources(), writes);
}

// Kernels

bool isKernel(func::FuncOp func) { return func->hasAttr(ExecDialect::kKernelAttr); }

Memory getMemory(func::FuncOp kernel) {
  return kernel->hasAttr(ExecDialect::kHostAttr) ? Memory::host : Memory::device;
}

SmallVector<func::FuncOp> getKernels(ModuleOp module) {
  return llvm::to_vector(llvm::make_filter_range(module.getOps<func::FuncOp>(), isKernel));
}

FailureOr<Programs> findPrograms(ModuleOp module) {
  auto programs = llvm::to_vector(module.getOps<ProgramOp>());
  if (programs.size() == 1)
    return Programs{programs.front(), {}};
  if (programs.size() == 2) {
    if (programs[0].getMode() == Mode::eval)
      std::swap(programs[0], programs[1]);
    if (programs[0].getMode() == Mode::train && programs[1].getMode() == Mode::eval)
      return Programs{programs[0], programs[1]};
  }
  return module.emitError() << "expected one exec.program, or one of training and one of evaluation, got: "
                            << programs.size();
}

SmallVector<int64_t> getInplace(func::FuncOp kernel) {
  if (auto attr = kernel->getAttrOfType<DenseI64ArrayAttr>(ExecDialect::kInplaceAttr))
    return SmallVector<int64_t>(attr.asArrayRef());
  return SmallVector<int64_t>(kernel.getNumResults(), -1);
}

int64_t getWorkspaceBytes(func::FuncOp kernel) {
  auto attr = kernel->getAttrOfType<IntegerAttr>(ExecDialect::kWorkspaceAttr);
  return attr ? attr.getInt() : 0;
}

static LogicalResult verifyInplace(Operation *op, Attribute value) {
  auto func = dyn_cast<func::FuncOp>(op);
  auto attr = dyn_cast<DenseI64ArrayAttr>(value);
  if (!func || !attr)
    return op->emitOpError() << "'exec.inplace' must be an array of i64 on a func.func";
  FunctionType type = func.getFunctionType();
  if (attr.size() != int64_t(type.getNumResults()))
    return op->emitOpError() << "'exec.inplace' must have one entry per result ("
                             << type.getNumResults() << "), got: " << attr.size();
  llvm::SmallDenseSet<int64_t> used;
  for (auto [index, operand] : llvm::enumerate(attr.asArrayRef())) {
    if (operand == -1)
      continue;
    if (operand < 0 || operand >= int64_t(type.getNumInputs()))
      return op->emitOpError() << "'exec.inplace' must name an operand or be -1, got: " << operand;
    if (!used.insert(operand).second)
      return op->emitOpError() << "operand " << operand << " is overwritten by two results";
    if (type.getInput(operand) != type.getResult(index))
      return op->emitOpError() << "result " << index << " of type " << type.getResult(index)
                               << " cannot overwrite operand " << operand << " of type "
                               << type.getInput(operand);
  }
  return success();
}

static LogicalResult verifyAt(Operation *op, NamedAttribute attribute) {
  dist::MeshOp mesh = dist::lookupMesh(op);
  if (!mesh || !isa<ArgOp, WaitOp, RowOpInterface>(op))
    return op->emitOpError() << "'exec.at' belongs on an argument, a wait or a row, in a module with a dist.mesh";
  return dist::verifyPositions(op, attribute, mesh.getMesh());
}

/// A class that ops may ask for. Inputs and activations are what is none of them.
static bool isAskedClass(Attribute value) {
  auto name = dyn_cast<StringAttr>(value);
  std::optional<StorageClass> storageClass = name ? symbolizeStorageClass(name.getValue()) : std::nullopt;
  return storageClass && *storageClass != StorageClass::input && *storageClass != StorageClass::activation;
}

static LogicalResult verifyClasses(Operation *op, NamedAttribute attribute) {
  if (attribute.getName() == ExecDialect::kClassAttr) {
    if (op->getNumResults() != 0 && isAskedClass(attribute.getValue()))
      return success();
    return op->emitOpError() << "'exec.class' is \"param\", \"grad\", \"optimizer\" or \"workspace\" on an op with results, "
                             << "got: " << attribute.getValue();
  }
  auto isEntry = [](Attribute value) { return isAskedClass(value) || value == StringAttr::get(value.getContext(), ""); };
  auto classes = dyn_cast<ArrayAttr>(attribute.getValue());
  if (isa<CallOp>(op) && classes && classes.size() == op->getNumResults() && llvm::all_of(classes, isEntry))
    return success();
  return op->emitOpError() << "'exec.classes' is an array of classes, one per result of exec.call, got: "
                           << attribute.getValue();
}

std::optional<StorageClass> getAskedClass(Value value) {
  auto result = dyn_cast<OpResult>(value);
  if (!result)
    return std::nullopt;
  auto name = result.getOwner()->getAttrOfType<StringAttr>(ExecDialect::kClassAttr);
  if (auto classes = result.getOwner()->getAttrOfType<ArrayAttr>(ExecDialect::kClassesAttr))
    name = cast<StringAttr>(classes[result.getResultNumber()]);
  return name && !name.empty() ? symbolizeStorageClass(name.getValue()) : std::nullopt;
}

void setClass(Operation *op, StorageClass storage) {
  op->setAttr(ExecDialect::kClassAttr, StringAttr::get(op->getContext(), stringifyStorageClass(storage)));
}

LogicalResult ExecDialect::verifyOperationAttribute(Operation *op, NamedAttribute attribute) {
  StringRef name = attribute.getName();
  if (name == kKernelAttr) {
    // Compiled kernels keep the mark on the entry that the runtime calls.
    if (op->getName().getStringRef() == "llvm.func" && isa<UnitAttr>(attribute.getValue()))
      return success();
    auto function = dyn_cast<FunctionOpInterface>(op);
    if (!function || !isa<UnitAttr>(attribute.getValue()))
      return op->emitOpError() << "'exec.kernel' must be a unit attribute on a function";
    auto func = dyn_cast<func::FuncOp>(op);
    if (!func)
      return success(); // machine code by now: bare pointers
    // Tensors as outlined, memrefs once the kernel writes into its destinations.
    auto isStatic = [](TypeRange types) {
      return llvm::all_of(types, [](Type type) {
        auto shaped = dyn_cast<ShapedType>(type);
        return shaped && shaped.hasStaticShape();
      });
    };
    if (!isStatic(func.getArgumentTypes()) || !isStatic(func.getResultTypes()))
      return op->emitOpError() << "a kernel takes and gives values of static shape, got: "
                               << func.getFunctionType();
    return success();
  }
  if (name == kInplaceAttr)
    return verifyInplace(op, attribute.getValue());
  if (name == kWorkspaceAttr) {
    auto bytes = dyn_cast<IntegerAttr>(attribute.getValue());
    if (!isa<func::FuncOp>(op) || !bytes || bytes.getValue().isNegative())
      return op->emitOpError() << "'exec.workspace' must be a number of bytes on a func.func";
    return success();
  }
  if (name == kAtAttr)
    return verifyAt(op, attribute);
  if (name == kScopeAttr) {
    if (isa<StringAttr>(attribute.getValue()))
      return success();
    return op->emitOpError() << "'exec.scope' must be a string, got: " << attribute.getValue();
  }
  if (name == kHostAttr) {
    if (isa<FunctionOpInterface>(op) && isa<UnitAttr>(attribute.getValue()))
      return success();
    return op->emitOpError() << "'exec.host' must be a unit attribute on a kernel";
  }
  if (name == kClassAttr || name == kClassesAttr)
    return verifyClasses(op, attribute);
  return op->emitOpError() << "unknown attribute '" << name << "'";
}

static LogicalResult verifyKernelValueAttr(Operation *op, NamedAttribute attribute) {
  if (attribute.getName() == ExecDialect::kUnalignedAttr && isa<UnitAttr>(attribute.getValue()))
    return success();
  return op->emitOpError() << "unknown attribute '" << attribute.getName()
                           << "' on an argument or result";
}

LogicalResult ExecDialect::verifyRegionArgAttribute(Operation *op, unsigned, unsigned,
                                                    NamedAttribute attribute) {
  return verifyKernelValueAttr(op, attribute);
}

LogicalResult ExecDialect::verifyRegionResultAttribute(Operation *op, unsigned, unsigned,
                                                       NamedAttribute attribute) {
  return verifyKernelValueAttr(op, attribute);
}

rt::DType getDType(Type elementType) {
  if (elementType.isF32())
    return rt::DType::F32;
  if (elementType.isF64())
    return rt::DType::F64;
  if (elementType.isBF16())
    return rt::DType::BF16;
  if (elementType.isInteger(32))
    return rt::DType::I32;
  if (elementType.isInteger(64))
    return rt::DType::I64;
  if (elementType.isInteger(1))
    return rt::DType::I1;
  llvm_unreachable("the verifier of exec buffers admits no other element type");
}

} // namespace shoal::exec
