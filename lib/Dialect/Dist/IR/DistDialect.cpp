// The dist dialect: what it registers, its annotations on arguments, results and ops, and the
// helpers that read and write them.
#include "shoal/Dialect/Dist/IR/Collectives.h"
#include "shoal/Dialect/Dist/IR/Messages.h"
#include "shoal/Dialect/Dist/IR/Microbatches.h"
#include "shoal/Dialect/Dist/IR/Positions.h"
#include "shoal/Dialect/Dist/IR/Memory.h"
#include "shoal/Dialect/NN/IR/SignatureErrors.h"
#include "shoal/Dialect/NN/IR/Roles.h"
#include "shoal/Interfaces/MadeByPasses.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/SmallPtrSet.h"

using namespace mlir;
using namespace shoal;
using namespace shoal::dist;

#include "shoal/Dialect/Dist/DistDialect.cpp.inc"

/// What only passes write at L1.
static constexpr Made kMade[] = {
    {DistDialect::kBucketsAttr, "the compiler for dist-pack"},
    {DistDialect::kIdAttr, "dist-number"},
    {DistDialect::kGlobalsAttr, "dist-partition"},
    {DistDialect::kGlobalAttr, "dist-partition"},
    {DistDialect::kBucketAttr, "dist-pack"},
    {DistDialect::kAtAttr, "dist-fold-control-flow and dist-narrow-positions"},
    {DistDialect::kRefetchAttr, "dist-sequence-parallel and dist-context-parallel"},
    {DistDialect::kFetchAttr, "dist-pack"},
    {DistDialect::kRingAttr, "dist-partition"},
    {kMemoryAttr, "dist-offload"},
    {kMicrobatchAttr, "dist-expand-collectives"},
    {kRunningSumAttr, "dist-expand-collectives"},
    {PackOp::getOperationName(), "dist-pack"},
    {UnpackOp::getOperationName(), "dist-pack"},
};

void DistDialect::initialize() {
  registerAttributesAndTypes();
  addInterface<MadeByPasses>(ArrayRef(kMade));
  addOperations<
#define GET_OP_LIST
#include "shoal/Dialect/Dist/DistOps.cpp.inc"
      >();
}

namespace shoal::dist {

// Mesh.

MeshOp lookupMesh(Operation *op) {
  for (; op; op = op->getParentOp())
    if (auto module = dyn_cast<ModuleOp>(op))
      for (Operation &child : *module.getBody())
        // A mesh that lacks its attributes is for its own verifier, which may run later.
        if (auto mesh = dyn_cast<MeshOp>(child);
            mesh && mesh.getMeshAttr() && mesh.getSymNameAttr())
          return mesh;
  return {};
}

bool isLocalProgram(Operation *root) {
  return root
      ->walk([](Operation *op) {
        return isa<CollectiveOpInterface, AxisIndexOp, PositionConstantOp, SelectOp, GroupOp, WaitOp, PackOp,
                   UnpackOp>(op)
                   ? WalkResult::interrupt()
                   : WalkResult::advance();
      })
      .wasInterrupted();
}

Value getBodyArgument(OpOperand &use) {
  auto accumulate = dyn_cast<AccumulateOp>(use.getOwner());
  return accumulate ? accumulate.getBody().getArgument(use.getOperandNumber()) : Value();
}

bool isTensorCollective(Operation *op) {
  return isa<CollectiveOpInterface>(op) && op->getNumOperands() == 1 && op->getNumResults() == 1 &&
         isa<RankedTensorType>(op->getOperand(0).getType());
}

bool isFetch(Operation *op) {
  return op->hasAttr(DistDialect::kFetchAttr) || op->hasAttr(DistDialect::kRefetchAttr);
}

bool staysInPlace(Operation *op) {
  if (isMemoryEffectFree(op) || isTensorCollective(op))
    return false;
  if (!op->hasTrait<OpTrait::HasRecursiveMemoryEffects>())
    return true;
  return op
      ->walk([&](Operation *inner) {
        return inner != op && !inner->getNumRegions() && staysInPlace(inner)
                   ? WalkResult::interrupt()
                   : WalkResult::advance();
      })
      .wasInterrupted();
}

void eraseUnread(Block &block) {
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
    if (isOpTriviallyDead(&op) || (op.use_empty() && isTensorCollective(&op)))
      op.erase();
}

bool isMadeByPartitioner(FunctionOpInterface func) {
  for (unsigned i = 0; i < func.getNumArguments(); ++i)
    if (func.getArgAttr(i, DistDialect::kGlobalAttr))
      return true;
  for (unsigned i = 0; i < func.getNumResults(); ++i)
    if (func.getResultAttr(i, DistDialect::kGlobalAttr))
      return true;
  return false;
}

/// Begins an error about what has an attribute: an op, or an argument or result of one.
using EmitError = llvm::function_ref<InFlightDiagnostic()>;

static FailureOr<MeshAttr> getMeshOrEmit(Operation *op, FlatSymbolRefAttr name, EmitError emitError) {
  MeshOp mesh = lookupMesh(op);
  if (!mesh)
    return emitError() << "names mesh " << name << ", but the module has no dist.mesh";
  if (mesh.getSymName() != name.getValue()) {
    InFlightDiagnostic diag = emitError();
    diag << "names mesh " << name << ", but the module's mesh is @" << mesh.getSymName();
    diag.attachNote(mesh.getLoc()) << "the mesh is here";
    return diag;
  }
  return mesh.getMesh();
}

FailureOr<MeshAttr> getMeshOrEmit(Operation *op, FlatSymbolRefAttr name) {
  return getMeshOrEmit(op, name, [&] { return op->emitOpError(); });
}

// Annotations.

/// The entry of an array attribute, null when absent or of another kind.
static ShardingAttr getFromArray(Operation *op, StringRef name, unsigned index) {
  auto array = op->getAttrOfType<ArrayAttr>(name);
  if (!array || index >= array.size())
    return {};
  return dyn_cast<ShardingAttr>(array[index]);
}

static void setInArray(Operation *op, StringRef name, TypeRange types, unsigned index,
                       ShardingAttr sharding) {
  SmallVector<Attribute> shardings;
  for (auto [i, type] : llvm::enumerate(types)) {
    ShardingAttr old = getFromArray(op, name, i);
    RankedTensorType tensor = getTensorType(type);
    shardings.push_back(i == index ? sharding
                        : old      ? old
                                   : ShardingAttr::getReplicated(sharding.getMesh(),
                                                            tensor ? tensor.getRank() : 0,
                                                                 /*closed=*/false));
  }
  op->setAttr(name, ArrayAttr::get(op->getContext(), shardings));
}

ShardingAttr getSharding(Value value) {
  if (auto result = dyn_cast<OpResult>(value))
    return getFromArray(result.getOwner(), DistDialect::kShardingsAttr, result.getResultNumber());
  auto argument = cast<BlockArgument>(value);
  Operation *parent = argument.getOwner()->getParentOp();
  if (!argument.getOwner()->isEntryBlock())
    return {};
  if (auto func = dyn_cast_or_null<FunctionOpInterface>(parent))
    return func.getArgAttrOfType<ShardingAttr>(argument.getArgNumber(), DistDialect::kShardingAttr);
  if (auto accumulate = dyn_cast_or_null<AccumulateOp>(parent))
    return getFromArray(accumulate, DistDialect::kArgShardingsAttr, argument.getArgNumber());
  return {};
}

void setSharding(Value value, ShardingAttr sharding) {
  if (auto result = dyn_cast<OpResult>(value))
    return setInArray(result.getOwner(), DistDialect::kShardingsAttr,
                      result.getOwner()->getResultTypes(), result.getResultNumber(), sharding);
  auto argument = cast<BlockArgument>(value);
  Operation *parent = argument.getOwner()->getParentOp();
  if (auto func = dyn_cast<FunctionOpInterface>(parent))
    return func.setArgAttr(argument.getArgNumber(), DistDialect::kShardingAttr, sharding);
  setInArray(parent, DistDialect::kArgShardingsAttr, argument.getOwner()->getArgumentTypes(),
             argument.getArgNumber(), sharding);
}

ShardingAttr getResultSharding(Operation *func, unsigned index) {
  return cast<FunctionOpInterface>(func).getResultAttrOfType<ShardingAttr>(
      index, DistDialect::kShardingAttr);
}

// Verification.

static LogicalResult verifySharding(EmitError emitError, ShardingAttr sharding, Type type, MeshAttr mesh) {
  RankedTensorType tensor = getTensorType(type);
  int64_t rank = tensor ? tensor.getRank() : 0;
  if ((int64_t)sharding.getDims().size() != rank)
    return emitError() << "sharding has " << sharding.getDims().size() << " dimensions, its value has rank " << rank
                       << ": " << type;
  auto verifyAxes = [&](ArrayRef<StringAttr> axes) -> LogicalResult {
    for (StringAttr axis : axes)
      if (!mesh.getAxisSize(axis))
        return emitError() << "sharding names unknown axis " << axis << "; the mesh is " << mesh;
    return success();
  };
  for (DimShardingAttr dim : sharding.getDims())
    if (failed(verifyAxes(dim.getAxes())))
      return failure();
  return verifyAxes(sharding.getUnreducedAxes());
}

LogicalResult verifySharding(Operation *op, ShardingAttr sharding, Type type, MeshAttr mesh) {
  return verifySharding([&] { return op->emitOpError(); }, sharding, type, mesh);
}

static LogicalResult verifyAnnotation(Operation *op, EmitError emitError, Attribute attr, Type type) {
  auto sharding = dyn_cast<ShardingAttr>(attr);
  if (!sharding)
    return emitError() << "expects #dist.sharding, got: " << attr;
  auto mesh = getMeshOrEmit(op, sharding.getMesh(), emitError);
  if (failed(mesh))
    return failure();
  return verifySharding(emitError, sharding, type, *mesh);
}

static LogicalResult verifyAnnotations(Operation *op, NamedAttribute attr, TypeRange types) {
  auto array = dyn_cast<ArrayAttr>(attr.getValue());
  if (!array || array.size() != types.size())
    return op->emitOpError() << attr.getName() << " must be an array of " << types.size()
                             << " shardings, got: " << attr.getValue();
  for (auto [entry, type] : llvm::zip(array, types))
    if (failed(verifyAnnotation(op, [&] { return op->emitOpError(); }, entry, type)))
      return failure();
  return success();
}

static LogicalResult verifyGlobal(Operation *op, EmitError emitError, StringAttr name, Attribute attr, Type type) {
  auto global = dyn_cast<GlobalAttr>(attr);
  if (!global)
    return emitError() << name << " expects #dist.global, got: " << attr;
  if (failed(verifyAnnotation(op, emitError, global.getSharding(), global.getType())))
    return failure();
  auto mesh = getMeshOrEmit(op, global.getSharding().getMesh(), emitError);
  if (failed(mesh))
    return failure();
  RankedTensorType local = global.getSharding().getLocalType(global.getType(), *mesh);
  if (RankedTensorType own = getTensorType(type); own && own != local)
    return emitError() << name << " is a piece of type " << local << " of " << global.getType() << ", its value has "
                       << type;
  return success();
}

static LogicalResult verifyGlobals(Operation *op, NamedAttribute attr) {
  auto array = dyn_cast<ArrayAttr>(attr.getValue());
  if (!array || array.size() != op->getNumResults())
    return op->emitOpError() << attr.getName() << " must be an array of " << op->getNumResults()
                             << " #dist.global, got: " << attr.getValue();
  for (auto [entry, type] : llvm::zip(array, op->getResultTypes()))
    if (failed(verifyGlobal(op, [&] { return op->emitOpError(); }, attr.getName(), entry, type)))
      return failure();
  return success();
}

/// `role` says whether the argument or result has one of those whose elements may lie so.
static LogicalResult verifyFlat(Operation *op, EmitError emitError, Attribute attr, bool hasRole, StringRef role) {
  auto flat = dyn_cast<FlatAttr>(attr);
  if (!flat)
    return emitError() << DistDialect::kFlatAttr << " expects #dist.flat, got: " << attr;
  if (!hasRole)
    return emitError() << DistDialect::kFlatAttr << " belongs on " << role;
  MeshOp mesh = lookupMesh(op);
  if (!mesh)
    return emitError() << DistDialect::kFlatAttr << " needs a dist.mesh in the module";
  for (StringAttr axis : flat.getAxes())
    if (!mesh.getMesh().getAxisSize(axis))
      return emitError() << DistDialect::kFlatAttr << " names unknown axis " << axis << "; the mesh is "
                         << mesh.getMesh();
  return success();
}

static LogicalResult verifyWhy(EmitError emitError, NamedAttribute attr) {
  auto causes = dyn_cast<DictionaryAttr>(attr.getValue());
  auto isCause = [](Attribute cause) { return isa<CauseAttr>(cause); };
  if (causes && llvm::all_of(causes, [&](NamedAttribute entry) {
        auto several = dyn_cast<ArrayAttr>(entry.getValue());
        return several ? several.size() > 1 && llvm::all_of(several, isCause) : isCause(entry.getValue());
      }))
    return success();
  return emitError() << attr.getName() << " must be a dictionary of #dist.cause by mesh axis, got: "
                     << attr.getValue();
}

/// The rules of a bucket that its members alone do not tell; `attrs` are those of the argument or result.
static LogicalResult verifyBucket(Operation *op, EmitError emitError, Attribute attr, Type type, DictionaryAttr attrs) {
  StringRef name = DistDialect::kBucketAttr;
  auto bucket = dyn_cast<BucketAttr>(attr);
  if (!bucket)
    return emitError() << "'" << name << "' must be #dist.bucket, got: " << attr;
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor || tensor.getRank() != 1 || !tensor.hasStaticShape())
    return emitError() << "a bucket must be a 1-D tensor of static shape, got: " << type;

  auto has = [&](StringRef role) { return attrs && attrs.contains(role); };
  bool holdsParams = has(nn::NNDialect::kParamAttr), holdsState = has(nn::NNDialect::kStateAttr),
       holdsGrads = has(nn::NNDialect::kGradAttr);
  if (!holdsParams && !holdsState && !holdsGrads)
    return emitError() << "a bucket is a parameter, a state or a gradient: it needs '" << nn::NNDialect::kParamAttr
                       << "', '" << nn::NNDialect::kStateAttr << "' or '" << nn::NNDialect::kGradAttr << "'";
  llvm::SmallPtrSet<StringAttr, 16> names;
  for (MemberAttr member : bucket.getMembers()) {
    Attribute role = member.getRole();
    if (holdsParams ? !isa<nn::ParamAttr>(role) : holdsState ? !isa<nn::StateAttr>(role) : !isa<StringAttr>(role))
      return emitError() << "a bucket of " << (holdsParams ? "parameters" : holdsState ? "state" : "gradients")
                         << " has a member that is none: " << role;
    if (!names.insert(member.getName()).second)
      return emitError() << "a bucket has two members " << member.getName();
    if (member.getType().getElementType() != tensor.getElementType())
      return emitError() << "members must have the element type of the bucket, " << tensor.getElementType() << ", got: "
                         << member.getType() << " of " << member.getName();
    if (auto param = dyn_cast<nn::ParamAttr>(role); param && param.getFile() &&
                                                    !nn::holdsAsMany(param.getFile(), member.getWholeType()))
      return emitError() << "the shape in files of " << member.getName() << " must have as many elements as "
                         << member.getWholeType() << ", got: [" << param.getFile().asArrayRef() << "]";
    if (member.getGlobal() && failed(verifyGlobal(op, emitError, StringAttr::get(op->getContext(), name),
                                                  member.getGlobal(), member.getType())))
      return failure();
  }

  // Whole, the bucket is what its piece says, or itself; a sharded one is padded to divide, one that lies whole may be
  // gathered from any of the mesh's axes.
  auto whole = tensor;
  ShardingAttr sharding = attrs.getAs<ShardingAttr>(DistDialect::kShardingAttr);
  if (auto global = attrs.getAs<GlobalAttr>(DistDialect::kGlobalAttr)) {
    whole = global.getType();
    sharding = sharding ? sharding : global.getSharding();
  }
  int64_t padding = whole.getNumElements() - bucket.getNumElements();
  MeshOp mesh = lookupMesh(op);
  int64_t devices = !mesh ? 1
                    : sharding && sharding.getDims().size() == 1 && !sharding.getDimAxes(0).empty()
                        ? mesh.getMesh().getSize(sharding.getDimAxes(0))
                        : mesh.getMesh().getNumDevices();
  if (padding < 0 || padding >= devices)
    return emitError() << "a bucket of " << bucket.getNumElements() << " elements over " << devices
                       << " devices has fewer elements of padding than devices, got: " << padding;
  if (whole.getNumElements() % devices != 0 && sharding && !sharding.isReplicated())
    return emitError() << "a bucket must divide over its " << devices << " devices, got: " << whole;
  return success();
}

} // namespace shoal::dist

LogicalResult DistDialect::verifyOperationAttribute(Operation *op, NamedAttribute attr) {
  StringRef name = attr.getName();
  if (name == kShardingsAttr)
    return verifyAnnotations(op, attr, op->getResultTypes());
  if (name == kArgShardingsAttr) {
    auto accumulate = dyn_cast<AccumulateOp>(op);
    // Attributes are verified before regions are counted.
    if (!accumulate || op->getNumRegions() != 1 || accumulate.getBody().empty())
      return op->emitOpError() << name << " belongs on dist.accumulate";
    return verifyAnnotations(op, attr, accumulate.getBody().getArgumentTypes());
  }
  if (name == kGlobalsAttr)
    return verifyGlobals(op, attr);
  if (name == kWhyAttr)
    return verifyWhy([&] { return op->emitOpError(); }, attr);
  if (name == kIdAttr) {
    auto id = dyn_cast<IntegerAttr>(attr.getValue());
    if (!id || !id.getType().isInteger(64) || id.getInt() < 0)
      return op->emitOpError() << name << " must be an i64 of at least 0, got: " << attr.getValue();
    return success();
  }
  if (name == kAtAttr) {
    MeshOp mesh = lookupMesh(op);
    auto collective = dyn_cast<CollectiveOpInterface>(op);
    auto isTensor = [](Type type) { return getTensorType(type) != nullptr; };
    bool computes =
        op->getNumResults() > 0 && op->getNumRegions() == 0 && llvm::all_of(op->getResultTypes(), isTensor);
    if (!mesh || !(isa<GroupOp>(op) || (collective && collective.communicates()) || computes))
      return op->emitOpError() << name << " belongs on communication and on what computes tensors, in a module with a "
                               << "dist.mesh";
    return verifyPositions(op, attr, mesh.getMesh());
  }
  if (name == kRefetchAttr || name == kFetchAttr) {
    if (!isa<UnitAttr>(attr.getValue()) || !(isa<ReshardOp>(op) || isTensorCollective(op)))
      return op->emitOpError() << name << " is a unit attribute of dist.reshard and collectives, got: "
                               << attr.getValue();
    return success();
  }
  if (name == kBucketsAttr) {
    auto buckets = dyn_cast<ArrayAttr>(attr.getValue());
    if (isa<FunctionOpInterface>(op) && buckets && llvm::all_of(buckets, [](Attribute entry) {
          auto attrs = dyn_cast<DictionaryAttr>(entry);
          return attrs && attrs.getAs<BucketAttr>(kBucketAttr) && attrs.getAs<GlobalAttr>(kGlobalAttr);
        }))
      return success();
    return op->emitOpError() << name << " on functions lists the attributes of buckets, got: " << attr.getValue();
  }
  if (name == kRingAttr) {
    auto number = dyn_cast<IntegerAttr>(attr.getValue());
    if (!isa<PermuteStartOp>(op) || !number || !number.getType().isInteger(64) || number.getInt() < 0)
      return op->emitOpError() << name << " is an i64 of at least 0 on dist.permute_start, got: " << attr.getValue();
    return success();
  }
  if (name == kMicrobatchAttr) {
    auto number = dyn_cast<IntegerAttr>(attr.getValue());
    if (!number || !number.getType().isInteger(64) || number.getInt() < 0)
      return op->emitOpError() << name << " must be an i64 of at least 0, got: " << attr.getValue();
    return success();
  }
  if (name == kRunningSumAttr) {
    if (!isa<UnitAttr>(attr.getValue()) || op->getNumOperands() != 2 || op->getNumResults() != 1)
      return op->emitOpError() << name << " is a unit attribute of nn.add, got: " << attr.getValue();
    return success();
  }
  if (name == kAsyncAttr) {
    if (!isa<UnitAttr>(attr.getValue()) || !isa<SendOp, RecvOp>(op))
      return op->emitOpError() << name << " is a unit attribute of dist.send and dist.recv, got: " << attr.getValue();
    return success();
  }
  if (name == kShardingAttr)
    return op->emitOpError() << name << " belongs on arguments and results of functions; ops have "
                             << kShardingsAttr;
  return op->emitOpError("has an attribute that the dist dialect does not know: ") << name;
}

LogicalResult DistDialect::verifyRegionArgAttribute(Operation *op, unsigned, unsigned argument,
                                                    NamedAttribute attr) {
  auto func = dyn_cast<FunctionOpInterface>(op);
  auto emit = [&] { return nn::emitArgError(func, argument); };
  if (func && argument < func.getNumArguments()) {
    if (attr.getName() == kShardingAttr)
      return verifyAnnotation(op, emit, attr.getValue(), func.getArgumentTypes()[argument]);
    if (attr.getName() == kGlobalAttr)
      return verifyGlobal(op, emit, attr.getName(), attr.getValue(), func.getArgumentTypes()[argument]);
    if (attr.getName() == kWhyAttr)
      return verifyWhy(emit, attr);
    if (attr.getName() == kBucketAttr)
      return verifyBucket(op, emit, attr.getValue(), func.getArgumentTypes()[argument], func.getArgAttrDict(argument));
    if (attr.getName() == kMemoryAttr) {
      auto memory = dyn_cast<StringAttr>(attr.getValue());
      if (memory && memory.getValue() == kHostMemory && isOfOptimizer(func, argument))
        return success();
      return emit() << "'" << kMemoryAttr
                    << "' is \"host\" on state of the optimizer or a master, got: " << attr.getValue();
    }
    if (attr.getName() == kFlatAttr) {
      nn::ArgRole role = nn::getArgRole(func, argument);
      return verifyFlat(op, emit, attr.getValue(), role == nn::ArgRole::Param || role == nn::ArgRole::State,
                        "parameters and optimizer state");
    }
    return emit() << "has an argument attribute that the dist dialect does not know: " << attr.getName();
  }
  return op->emitOpError("has an argument attribute that the dist dialect does not know: ")
         << attr.getName();
}

LogicalResult DistDialect::verifyRegionResultAttribute(Operation *op, unsigned, unsigned result,
                                                       NamedAttribute attr) {
  auto func = dyn_cast<FunctionOpInterface>(op);
  auto emit = [&] { return nn::emitResultError(func, result); };
  if (func && result < func.getNumResults()) {
    if (attr.getName() == kShardingAttr)
      return verifyAnnotation(op, emit, attr.getValue(), func.getResultTypes()[result]);
    if (attr.getName() == kGlobalAttr)
      return verifyGlobal(op, emit, attr.getName(), attr.getValue(), func.getResultTypes()[result]);
    if (attr.getName() == kBucketAttr)
      return verifyBucket(op, emit, attr.getValue(), func.getResultTypes()[result], func.getResultAttrDict(result));
    if (attr.getName() == kWhyAttr)
      return verifyWhy(emit, attr);
    if (attr.getName() == kFlatAttr)
      return verifyFlat(op, emit, attr.getValue(), bool(func.getResultAttr(result, nn::NNDialect::kGradAttr)),
                        "gradients");
    return emit() << "has a result attribute that the dist dialect does not know: " << attr.getName();
  }
  return op->emitOpError("has a result attribute that the dist dialect does not know: ")
         << attr.getName();
}
