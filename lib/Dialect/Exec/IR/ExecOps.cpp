// Verifiers of the exec ops, and which buffers each row touches.
#include "shoal/Dialect/Exec/IR/Exec.h"

#include "shoal/Support/KeywordFormat.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

#include "shoal/Dialect/Exec/ExecInterfaces.cpp.inc"

namespace shoal::exec {

// Storage

ByteRange getByteRange(Value buffer) {
  int64_t start = 0;
  auto type = dyn_cast<BufferType>(buffer.getType());
  if (!type)
    return {};
  while (auto view = buffer.getDefiningOp<ViewOp>()) {
    start += view.getStart() * type.getElementBytes();
    buffer = view.getSource();
  }
  int64_t offset;
  if (auto arg = buffer.getDefiningOp<ArgOp>())
    offset = arg.getOffset();
  else if (auto storage = buffer.getDefiningOp<BufferOp>())
    offset = storage.getOffset();
  else
    return {};
  return {buffer.getDefiningOp(), offset + start, offset + start + type.getNumBytes(), type.getMemory()};
}

StorageClass ArgOp::getStorageClass() {
  if (getMaster())
    return StorageClass::optimizer;
  switch (getKind()) {
  case ArgKind::param:
  case ArgKind::buffer:
    return StorageClass::param;
  case ArgKind::state:
    return StorageClass::optimizer;
  default:
    return StorageClass::input;
  }
}

Init initOf(const std::optional<nn::InitialValue> &value) {
  if (!value)
    return Init::none;
  switch (value->kind) {
  case nn::Init::zeros:
  case nn::Init::ones:
  case nn::Init::constant:
    return Init::constant;
  case nn::Init::uniform:
    return Init::uniform;
  case nn::Init::normal:
    return Init::normal;
  case nn::Init::kaiming_uniform:
    return Init::kaiming_uniform;
  case nn::Init::xavier_uniform:
    return Init::xavier_uniform;
  }
  llvm_unreachable("every init is listed");
}

static LogicalResult verifyOffset(Operation *op, int64_t offset) {
  if (offset < 0 || offset % kBufferAlignment)
    return op->emitOpError() << "offset must be a multiple of " << kBufferAlignment
                             << ", got: " << offset;
  return success();
}

// Batch dimension and global type of an argument or result.
static LogicalResult verifyLogicalTensor(Operation *op, BufferType type, std::optional<Type> global,
                                         int64_t batchDim) {
  int64_t rank = type.getShape().size();
  if (global) {
    auto tensor = cast<RankedTensorType>(*global);
    if (tensor.getRank() != rank || tensor.getElementType() != type.getElementType())
      return op->emitOpError() << "buffer " << type << " cannot hold a piece of " << tensor;
  }
  if (batchDim < -1 || batchDim >= rank)
    return op->emitOpError() << "batch dimension must be -1 or less than the rank " << rank
                             << ", got: " << batchDim;
  return success();
}

// The tensors of a bucket lie in it one after another.
static LogicalResult verifyBucket(Operation *op, BufferType type, std::optional<Type> global,
                                  std::optional<dist::BucketAttr> bucket, bool mayBeBucket) {
  if (!bucket)
    return success();
  auto whole = global ? cast<RankedTensorType>(*global) : RankedTensorType::get(type.getShape(), type.getElementType());
  if (!mayBeBucket || whole.getRank() != 1)
    return op->emitOpError() << "a bucket is a parameter, a state or a gradient of one dimension, got: " << whole;
  if (bucket->getNumElements() > whole.getNumElements())
    return op->emitOpError() << "a bucket of " << bucket->getNumElements() << " elements must fit " << whole;
  for (dist::MemberAttr member : bucket->getMembers())
    if (member.getType().getElementType() != whole.getElementType())
      return op->emitOpError() << "members must have the element type of " << whole << ", got: " << member.getType();
  return success();
}

void ArgOp::getAsmResultNames(function_ref<void(Value, StringRef)> setName) {
  setName(getResult(), getName());
}

LogicalResult ArgOp::verify() {
  if (failed(verifyOffset(*this, getOffset())) ||
      failed(verifyLogicalTensor(*this, getResult().getType(), getGlobal(), getBatchDim())) ||
      failed(verifyBucket(*this, getResult().getType(), getGlobal(), getBucket(),
                          getKind() == ArgKind::param || getKind() == ArgKind::state)))
    return failure();
  if (getMaster() && getKind() != ArgKind::param)
    return emitOpError() << "only a parameter is a master, got: " << stringifyArgKind(getKind());
  if (bool isState = getKind() == ArgKind::state && !getBucket(); isState != bool(getOf()))
    return emitOpError() << "state that is no bucket, and nothing else, says of which parameter it is, got: "
                         << stringifyArgKind(getKind()) << (getOf() ? " of \"" + *getOf() + "\"" : " of none");
  if (getMemory(getResult()) == Memory::host && getStorageClass() != StorageClass::optimizer)
    return emitOpError() << "only state of the optimizer and masters lie on the host, got: "
                         << stringifyArgKind(getKind());
  if (getKind() == ArgKind::step || getKind() == ArgKind::valid_rows || getKind() == ArgKind::seed) {
    BufferType type = getResult().getType();
    if (!type.getShape().empty() || !type.getElementType().isInteger(64))
      return emitOpError() << stringifyArgKind(getKind()) << " must be a scalar i64, got: " << type;
  }
  return verifyContents();
}

LogicalResult ArgOp::verifyContents() {
  auto whole = getGlobal() ? cast<RankedTensorType>(*getGlobal()).getShape() : getResult().getType().getShape();
  if (std::optional<ArrayRef<int64_t>> file = getFile()) {
    int64_t elements = 1;
    for (int64_t size : *file)
      if (size < 1 || llvm::MulOverflow(elements, size, elements))
        return emitOpError() << "sizes of the shape in files must be at least 1 and fit 64 bits, got: [" << *file
                             << "]";
    if (elements != ShapedType::getNumElements(whole))
      return emitOpError() << "the shape in files must have " << ShapedType::getNumElements(whole)
                           << " elements, got: [" << *file << "]";
  }
  if (!getIndices() && !getIgnored())
    return success();
  if (getKind() != ArgKind::input || !isa<IntegerType>(getResult().getType().getElementType()))
    return emitOpError() << "only inputs of integers are indices, got: " << stringifyArgKind(getKind())
                         << " " << getResult().getType();
  if (!getIndices() || int64_t(*getIndices()) < 1)
    return emitOpError() << "indices must be at least 1, got: " << (getIndices() ? int64_t(*getIndices()) : 0);
  return success();
}

LogicalResult BufferOp::verify() { return verifyOffset(*this, getOffset()); }

LogicalResult ViewOp::verify() {
  BufferType source = getSource().getType(), result = getResult().getType();
  if (source.getElementType() != result.getElementType())
    return emitOpError() << "element type must not change, got: " << source << " and " << result;
  if (source.getMemory() != result.getMemory())
    return emitOpError() << "memory must not change (exec.copy moves bytes), got: " << source << " and " << result;
  int64_t start = getStart();
  if (start < 0 || start > source.getNumElements() ||
      result.getNumElements() > source.getNumElements() - start)
    return emitOpError() << "elements [" << start << ", +" << result.getNumElements()
                         << ") must lie in a buffer of " << source.getNumElements() << " elements";
  return success();
}

LogicalResult ProgramOp::verify() {
  int64_t arena = getArena();
  if (arena < 0 || arena % kBufferAlignment)
    return emitOpError() << "arena must be a multiple of " << kBufferAlignment
                         << " bytes, got: " << arena;
  if (int64_t host = getHost(); host < 0 || host % kBufferAlignment)
    return emitOpError() << "host must be a multiple of " << kBufferAlignment << " bytes, got: " << host;
  if (int64_t(getRows()) < 0)
    return emitOpError() << "rows must not be negative, got: " << int64_t(getRows());
  for (Operation &op : getBody().front())
    if (op.getDialect() != (*this)->getDialect())
      return op.emitOpError() << "only exec ops may stand in an exec.program";
  return success();
}

// Calls and launches

static func::FuncOp lookupKernel(Operation *op, FlatSymbolRefAttr name,
                                 SymbolTableCollection &symbols) {
  auto kernel = symbols.lookupNearestSymbolFrom<func::FuncOp>(op, name);
  if (!kernel || !isKernel(kernel)) {
    op->emitOpError() << "no kernel is named " << name;
    return {};
  }
  return kernel;
}

LogicalResult CallOp::verifySymbolUses(SymbolTableCollection &symbols) {
  func::FuncOp kernel = lookupKernel(*this, getKernelAttr(), symbols);
  if (!kernel)
    return failure();
  auto type = FunctionType::get(getContext(), getInputs().getTypes(), getResultTypes());
  if (type != kernel.getFunctionType())
    return emitOpError() << "kernel " << getKernelAttr() << " has type " << kernel.getFunctionType()
                         << ", called as " << type;
  return success();
}

LoweringKind AddToOp::getLoweringKind() { return LoweringKind::View; }

LogicalResult LaunchOp::verifySymbolUses(SymbolTableCollection &symbols) {
  func::FuncOp kernel = lookupKernel(*this, getKernelAttr(), symbols);
  if (!kernel)
    return failure();
  SmallVector<int64_t> inplace = getInplaceAttr()
                                     ? SmallVector<int64_t>(*getInplace())
                                     : SmallVector<int64_t>(kernel.getNumResults(), -1);
  if (inplace != exec::getInplace(kernel))
    return emitOpError() << "inplace must repeat that of kernel " << getKernelAttr();
  auto isTensor = [](Type type) { return isa<RankedTensorType>(type); };
  if (!llvm::all_of(kernel.getArgumentTypes(), isTensor) ||
      !llvm::all_of(kernel.getResultTypes(), isTensor))
    return emitOpError() << "kernel " << getKernelAttr() << " must work on tensors, got: "
                         << kernel.getFunctionType()
                         << "; kernels are lowered in a module of their own";
  SmallVector<Type> inputs, outputs;
  Memory memory = getMemory(kernel);
  for (Type type : kernel.getArgumentTypes())
    inputs.push_back(BufferType::get(cast<RankedTensorType>(type), memory));
  for (auto [type, operand] : llvm::zip_equal(kernel.getResultTypes(), inplace))
    if (operand < 0)
      outputs.push_back(BufferType::get(cast<RankedTensorType>(type), memory));
  if (TypeRange(getInputs().getTypes()) != TypeRange(inputs) ||
      TypeRange(getOutputs().getTypes()) != TypeRange(outputs))
    return emitOpError() << "buffers must be those of kernel " << getKernelAttr() << ", " << kernel.getFunctionType()
                         << ", on the " << stringifyMemory(memory);
  int64_t workspace = getWorkspace() ? cast<BufferType>(getWorkspace().getType()).getNumBytes() : 0;
  if (workspace < getWorkspaceBytes(kernel) ||
      bool(getWorkspace()) != (getWorkspaceBytes(kernel) > 0))
    return emitOpError() << "kernel " << getKernelAttr() << " needs " << getWorkspaceBytes(kernel)
                         << " bytes of workspace, got: " << workspace;
  return success();
}

void LaunchOp::getReads(SmallVectorImpl<Value> &buffers) {
  llvm::append_range(buffers, getInputs());
}

void LaunchOp::getWrites(SmallVectorImpl<Value> &buffers) {
  if (std::optional<ArrayRef<int64_t>> inplace = getInplace())
    for (int64_t operand : *inplace)
      if (operand >= 0 && operand < int64_t(getInputs().size()))
        buffers.push_back(getInputs()[operand]);
  llvm::append_range(buffers, getOutputs());
  if (getWorkspace())
    buffers.push_back(getWorkspace());
}

bool LaunchOp::mayWorkInPlace(Value written, Value read) {
  if (written != read || !getInplace() || llvm::is_contained(getOutputs(), written))
    return false;
  return llvm::any_of(*getInplace(), [&](int64_t operand) {
    return operand >= 0 && getInputs()[operand] == written;
  });
}

// Library calls and copies

LogicalResult GemmOp::verify() {
  int64_t m = getM(), n = getN(), k = getK(), batch = getBatch();
  if (m < 1 || n < 1 || k < 1 || batch < 1)
    return emitOpError() << "sizes must be at least 1, got: m = " << m << ", n = " << n
                         << ", k = " << k << ", batch = " << batch;
  if (batch > 1 && (!getStrides() || getStrides()->size() != 3))
    return emitOpError() << "a batch needs three strides, got: " << (getStrides() ? getStrides()->size() : 0);
  Type element = getA().getType().getElementType();
  if (!isa<FloatType>(element) || getB().getType().getElementType() != element ||
      !isa<FloatType>(getC().getType().getElementType()))
    return emitOpError() << "operands must be of one float type, got: " << getA().getType() << ", "
                         << getB().getType() << ", " << getC().getType();
  // One matrix per operand: rows x columns with a leading dimension, and its batches.
  auto check = [&](char name, Value buffer, int64_t rows, int64_t cols, int64_t ld,
                   unsigned index) -> LogicalResult {
    int64_t stride = batch > 1 ? (*getStrides())[index] : 0;
    if (ld < cols || stride < 0)
      return emitOpError() << "leading dimension of " << name << " must be at least " << cols
                           << ", got: " << ld;
    int64_t batches, matrix, needed;
    bool overflows =
        llvm::MulOverflow(batch - 1, stride, batches) || llvm::MulOverflow(rows - 1, ld, matrix) ||
        llvm::AddOverflow(batches, matrix, needed) || llvm::AddOverflow(needed, cols, needed);
    int64_t held = cast<BufferType>(buffer.getType()).getNumElements();
    if (!overflows && needed <= held)
      return success();
    auto diag = emitOpError() << name << " needs ";
    if (overflows)
      diag << "more than 2^63";
    else
      diag << needed;
    return diag << " elements, its buffer has " << held;
  };
  bool ta = getTransposeA(), tb = getTransposeB();
  return success(succeeded(check('a', getA(), ta ? k : m, ta ? m : k, getLda(), 0)) &&
                 succeeded(check('b', getB(), tb ? n : k, tb ? k : n, getLdb(), 1)) &&
                 succeeded(check('c', getC(), m, n, getLdc(), 2)));
}

void GemmOp::getReads(SmallVectorImpl<Value> &buffers) {
  buffers.append({getA(), getB()});
  if (getAccumulate())
    buffers.push_back(getC());
}
void GemmOp::getWrites(SmallVectorImpl<Value> &buffers) { buffers.push_back(getC()); }
bool GemmOp::mayWorkInPlace(Value written, Value read) {
  return written == read && getAccumulate() && getA() != written && getB() != written;
}

rt::LibraryFunction GemmOp::getFunction() { return rt::LibraryFunction::Gemm; }
void GemmOp::getParams(SmallVectorImpl<int64_t> &params) {
  params.assign(rt::kGemmNumParams, 0);
  params[rt::kGemmM] = getM();
  params[rt::kGemmN] = getN();
  params[rt::kGemmK] = getK();
  params[rt::kGemmBatch] = getBatch();
  params[rt::kGemmTransA] = getTransposeA();
  params[rt::kGemmTransB] = getTransposeB();
  params[rt::kGemmLdA] = getLda();
  params[rt::kGemmLdB] = getLdb();
  params[rt::kGemmLdC] = getLdc();
  if (std::optional<ArrayRef<int64_t>> strides = getStrides())
    llvm::copy(*strides, params.begin() + rt::kGemmStrideA);
  params[rt::kGemmAccumulate] = getAccumulate();
  params[rt::kGemmDTypeIn] = int64_t(getDType(getA().getType().getElementType()));
  params[rt::kGemmDTypeOut] = int64_t(getDType(getC().getType().getElementType()));
}

/// Rows of as many elements each, numbered by integers.
LogicalResult ScatterAddOp::verify() {
  BufferType ids = getIds().getType(), values = getValues().getType(), output = getOutput().getType();
  Type element = values.getElementType();
  if (!ids.getElementType().isInteger(32) && !ids.getElementType().isInteger(64))
    return emitOpError() << "ids must be i32 or i64, got: " << ids;
  if (!isa<FloatType>(element) || output.getElementType() != element)
    return emitOpError() << "values and output must be of one float type, got: " << values << " and " << output;
  if (output.getShape().empty())
    return emitOpError() << "output must have rows, got: " << output;
  int64_t width = ShapedType::getNumElements(output.getShape().drop_front()), needed;
  if (llvm::MulOverflow(ids.getNumElements(), width, needed) || needed != values.getNumElements())
    return emitOpError() << "values must be " << ids.getNumElements() << " rows of " << width
                         << " elements, got: " << values;
  if (getOffset()) {
    auto offset = cast<BufferType>(getOffset().getType());
    if (!offset.getShape().empty() || !offset.getElementType().isInteger(64))
      return emitOpError() << "offset must be a scalar i64, got: " << offset;
  }
  int64_t bytes = element.isBF16() ? output.getNumElements() * int64_t(sizeof(float)) : 0;
  int64_t given = getWorkspace() ? cast<BufferType>(getWorkspace().getType()).getNumBytes() : 0;
  if (given < bytes || bool(getWorkspace()) != (bytes > 0))
    return emitOpError() << "needs " << bytes << " bytes of workspace, got: " << given;
  return success();
}
void ScatterAddOp::getReads(SmallVectorImpl<Value> &buffers) {
  buffers.append({getIds(), getValues()});
  if (getOffset())
    buffers.push_back(getOffset());
}
void ScatterAddOp::getWrites(SmallVectorImpl<Value> &buffers) {
  buffers.push_back(getOutput());
  if (getWorkspace())
    buffers.push_back(getWorkspace());
}
bool ScatterAddOp::mayWorkInPlace(Value, Value) { return false; }
rt::LibraryFunction ScatterAddOp::getFunction() { return rt::LibraryFunction::ScatterAdd; }
void ScatterAddOp::getParams(SmallVectorImpl<int64_t> &params) {
  BufferType output = getOutput().getType();
  params.assign(rt::kScatterAddNumParams, 0);
  params[rt::kScatterAddCount] = getIds().getType().getNumElements();
  params[rt::kScatterAddRows] = output.getShape().front();
  params[rt::kScatterAddWidth] = ShapedType::getNumElements(output.getShape().drop_front());
  params[rt::kScatterAddHasOffset] = bool(getOffset());
  params[rt::kScatterAddDTypeIds] = int64_t(getDType(getIds().getType().getElementType()));
  params[rt::kScatterAddDType] = int64_t(getDType(output.getElementType()));
}

LogicalResult CopyOp::verify() {
  if (getInput().getType().getNumBytes() != getOutput().getType().getNumBytes())
    return emitOpError() << "buffers must have equal sizes, got: " << getInput().getType()
                         << " and " << getOutput().getType();
  return success();
}
void CopyOp::getReads(SmallVectorImpl<Value> &buffers) { buffers.push_back(getInput()); }
void CopyOp::getWrites(SmallVectorImpl<Value> &buffers) { buffers.push_back(getOutput()); }

LogicalResult AxisIndexOp::verify() {
  BufferType type = getOutput().getType();
  if (!type.getShape().empty() || !type.getElementType().isInteger(64))
    return emitOpError() << "writes a scalar i64, got: " << type;
  return success();
}
void AxisIndexOp::getReads(SmallVectorImpl<Value> &) {}
void AxisIndexOp::getWrites(SmallVectorImpl<Value> &buffers) { buffers.push_back(getOutput()); }
void AxisIndexOp::getParams(SmallVectorImpl<int64_t> &params) { params.push_back(getScale()); }

// Collectives

// The number of ranks of the group; failure when the mesh lacks an axis.
static FailureOr<int64_t> getGroupSize(Operation *op, dist::AxesAttr axes) {
  dist::MeshOp mesh = dist::lookupMesh(op);
  if (!mesh)
    return op->emitOpError() << "names mesh axes, but the module has no dist.mesh";
  for (StringAttr axis : axes.getAxes())
    if (!mesh.getMesh().getAxisSize(axis))
      return op->emitOpError() << "unknown mesh axis " << axis;
  return mesh.getMesh().getSize(axes.getAxes());
}

// Both buffers have the element type of the other, and `input * up == output * down` elements.
static LogicalResult verifyChunks(Operation *op, Value input, Value output, int64_t up,
                                  int64_t down, int64_t divisor) {
  auto in = cast<BufferType>(input.getType()), out = cast<BufferType>(output.getType());
  if (in.getElementType() != out.getElementType())
    return op->emitOpError() << "element types must be equal, got: " << in << " and " << out;
  int64_t fromInput, fromOutput;
  if (llvm::MulOverflow(in.getNumElements(), up, fromInput) ||
      llvm::MulOverflow(out.getNumElements(), down, fromOutput) || fromInput != fromOutput)
    return op->emitOpError() << "the larger buffer must hold the smaller one once per rank of the "
                                "group (chunks of equal size), got: "
                             << in << " and " << out << " over " << std::max(up, down) << " ranks";
  if (in.getNumElements() % divisor)
    return op->emitOpError() << "buffer must divide into " << divisor << " chunks, got: " << in;
  return success();
}

static LogicalResult verifyRoot(Operation *op, int64_t root, int64_t ranks) {
  if (root < 0 || root >= ranks)
    return op->emitOpError() << "root must be a position of the group of " << ranks
                             << ", got: " << root;
  return success();
}

LogicalResult AllReduceOp::verifySymbolUses(SymbolTableCollection &) {
  FailureOr<int64_t> n = getGroupSize(*this, getAxes());
  return failed(n) ? failure() : verifyChunks(*this, getInput(), getOutput(), 1, 1, 1);
}
LogicalResult AllGatherOp::verifySymbolUses(SymbolTableCollection &) {
  FailureOr<int64_t> n = getGroupSize(*this, getAxes());
  return failed(n) ? failure() : verifyChunks(*this, getInput(), getOutput(), *n, 1, 1);
}
LogicalResult ReduceScatterOp::verifySymbolUses(SymbolTableCollection &) {
  FailureOr<int64_t> n = getGroupSize(*this, getAxes());
  return failed(n) ? failure() : verifyChunks(*this, getInput(), getOutput(), 1, *n, 1);
}
LogicalResult AllToAllOp::verifySymbolUses(SymbolTableCollection &) {
  FailureOr<int64_t> n = getGroupSize(*this, getAxes());
  return failed(n) ? failure() : verifyChunks(*this, getInput(), getOutput(), 1, 1, *n);
}
LogicalResult BroadcastOp::verifySymbolUses(SymbolTableCollection &) {
  FailureOr<int64_t> n = getGroupSize(*this, getAxes());
  if (failed(n) || failed(verifyRoot(*this, getRoot(), *n)))
    return failure();
  return verifyChunks(*this, getInput(), getOutput(), 1, 1, 1);
}
LogicalResult ScatterOp::verifySymbolUses(SymbolTableCollection &) {
  FailureOr<int64_t> n = getGroupSize(*this, getAxes());
  if (failed(n) || failed(verifyRoot(*this, getRoot(), *n)))
    return failure();
  return verifyChunks(*this, getInput(), getOutput(), 1, *n, 1);
}
LogicalResult GatherOp::verifySymbolUses(SymbolTableCollection &) {
  FailureOr<int64_t> n = getGroupSize(*this, getAxes());
  if (failed(n) || failed(verifyRoot(*this, getRoot(), *n)))
    return failure();
  return verifyChunks(*this, getInput(), getOutput(), *n, 1, 1);
}
LogicalResult PermuteOp::verifySymbolUses(SymbolTableCollection &) {
  FailureOr<int64_t> n = getGroupSize(*this, getAxes());
  if (failed(n))
    return failure();
  if (getSources().size() != getTargets().size())
    return emitOpError() << "needs as many targets as sources, got: " << getSources().size()
                         << " sources and " << getTargets().size() << " targets";
  for (ArrayRef<int64_t> side : {getSources(), getTargets()}) {
    llvm::SmallDenseSet<int64_t> seen;
    for (int64_t position : side)
      if (position < 0 || position >= *n || !seen.insert(position).second)
        return emitOpError() << "positions must differ and lie in a group of " << *n
                             << ", got: " << position;
  }
  return verifyChunks(*this, getInput(), getOutput(), 1, 1, 1);
}

#define SHOAL_COLLECTIVE_ACCESSES(Op)                                                              \
  void Op::getReads(SmallVectorImpl<Value> &buffers) { buffers.push_back(getInput()); }            \
  void Op::getWrites(SmallVectorImpl<Value> &buffers) { buffers.push_back(getOutput()); }
SHOAL_COLLECTIVE_ACCESSES(AllReduceOp)
SHOAL_COLLECTIVE_ACCESSES(AllGatherOp)
SHOAL_COLLECTIVE_ACCESSES(ReduceScatterOp)
SHOAL_COLLECTIVE_ACCESSES(AllToAllOp)
SHOAL_COLLECTIVE_ACCESSES(BroadcastOp)
SHOAL_COLLECTIVE_ACCESSES(ScatterOp)
SHOAL_COLLECTIVE_ACCESSES(GatherOp)
SHOAL_COLLECTIVE_ACCESSES(PermuteOp)
#undef SHOAL_COLLECTIVE_ACCESSES

bool AllReduceOp::mayWorkInPlace(Value, Value) { return true; }
bool BroadcastOp::mayWorkInPlace(Value, Value) { return true; }

void PermuteOp::getMessages(dist::MeshAttr mesh, SmallVectorImpl<Message> &messages) {
  // Positions of one group differ only along the axes; the peer is among them.
  ArrayRef<StringAttr> axes = getAxes().getAxes();
  auto add = [&](bool isSend, Value buffer, ArrayRef<int64_t> own, ArrayRef<int64_t> others) {
    Message message{isSend, buffer, SmallVector<int64_t>(mesh.getNumDevices(), -1)};
    for (auto [position, peer] : llvm::enumerate(message.peers))
      if (auto at = llvm::find(own, mesh.getIndexAlong(position, axes)); at != own.end())
        peer = mesh.getPositionAlong(position, axes, others[at - own.begin()]);
    messages.push_back(std::move(message));
  };
  add(true, getInput(), getSources(), getTargets());
  add(false, getOutput(), getTargets(), getSources());
}

LogicalResult AxisIndexOp::verifySymbolUses(SymbolTableCollection &) {
  return failure(failed(getGroupSize(*this, getAxes())));
}

LogicalResult BarrierOp::verifySymbolUses(SymbolTableCollection &) {
  return failure(failed(getGroupSize(*this, getAxes())));
}
void BarrierOp::getReads(SmallVectorImpl<Value> &) {}
void BarrierOp::getWrites(SmallVectorImpl<Value> &) {}

LogicalResult PointToPointOp::verifySymbolUses(SymbolTableCollection &) {
  dist::MeshOp mesh = dist::lookupMesh(*this);
  if (!mesh)
    return emitOpError() << "names mesh positions, but the module has no dist.mesh";
  int64_t devices = mesh.getMesh().getNumDevices();
  auto check = [&](ArrayAttr peers, size_t buffers) -> LogicalResult {
    if (peers.size() != buffers)
      return emitOpError() << "needs one list of peers per buffer, got: " << peers.size() << " for "
                           << buffers;
    for (Attribute attr : peers) {
      auto list = dyn_cast<DenseI64ArrayAttr>(attr);
      if (!list || list.size() != devices)
        return emitOpError() << "needs one peer per mesh position (" << devices
                             << "), got: " << attr;
      for (int64_t peer : list.asArrayRef())
        if (peer < -1 || peer >= devices)
          return emitOpError() << "peer must be a mesh position or -1, got: " << peer;
    }
    return success();
  };
  return success(succeeded(check(getTargets(), getSends().size())) &&
                 succeeded(check(getSources(), getRecvs().size())));
}
void PointToPointOp::getReads(SmallVectorImpl<Value> &buffers) {
  llvm::append_range(buffers, getSends());
}
void PointToPointOp::getWrites(SmallVectorImpl<Value> &buffers) {
  llvm::append_range(buffers, getRecvs());
}
void PointToPointOp::getMessages(dist::MeshAttr, SmallVectorImpl<Message> &messages) {
  auto add = [&](bool isSend, ValueRange buffers, ArrayAttr peers) {
    for (auto [buffer, list] : llvm::zip_equal(buffers, peers))
      messages.push_back(
          {isSend, buffer, SmallVector<int64_t>(cast<DenseI64ArrayAttr>(list).asArrayRef())});
  };
  add(true, getSends(), getTargets());
  add(false, getRecvs(), getSources());
}

// Results

LogicalResult ProbeOp::verify() {
  BufferType type = getInput().getType();
  if ((getKind() == ResultKind::loss || getKind() == ResultKind::metric) &&
      !type.getShape().empty())
    return emitOpError() << "a " << stringifyResultKind(getKind())
                         << " must be a scalar, got: " << type;
  if (failed(verifyBucket(*this, type, getGlobal(), getBucket(), getKind() == ResultKind::grad)))
    return failure();
  return verifyLogicalTensor(*this, type, getGlobal(), getBatchDim());
}
void ProbeOp::getReads(SmallVectorImpl<Value> &buffers) { buffers.push_back(getInput()); }
void ProbeOp::getWrites(SmallVectorImpl<Value> &) {}

} // namespace shoal::exec

#define GET_OP_CLASSES
#include "shoal/Dialect/Exec/ExecOps.cpp.inc"
