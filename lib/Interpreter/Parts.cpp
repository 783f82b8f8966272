// Cuts arguments from whole tensors, and finds these in what the ranks have.
#include "shoal/Interpreter/Parts.h"

#include "shoal/Dialect/NN/IR/Roles.h"
#include "shoal/Dialect/NN/IR/Updates.h"

using namespace mlir;

namespace shoal::interp {

static SmallVector<Part> partsOf(dist::BucketAttr bucket, dist::GlobalAttr global, Type type, StringRef role,
                                 StringRef name, const Twine &number) {
  auto keyOf = [&](StringRef what) { return what.empty() ? number.str() : (role + " " + what).str(); };
  SmallVector<Part> parts;
  if (!bucket) {
    auto whole = global ? global.getType() : dyn_cast<RankedTensorType>(type);
    parts.push_back({keyOf(name), whole, global ? global.getSharding() : dist::ShardingAttr(), {}, {}});
    return parts;
  }
  int64_t first = 0;
  for (dist::MemberAttr member : bucket.getMembers()) {
    dist::GlobalAttr piece = member.getGlobal();
    parts.push_back({keyOf(member.getName()), member.getWholeType(), piece ? piece.getSharding() : dist::ShardingAttr(),
                     member.getRole(), member.getType(), member.getBegin(), member.getEnd(), first});
    first += member.getNumElements();
  }
  return parts;
}

SmallVector<Part> partsOfArgument(FunctionOpInterface func, unsigned index) {
  return partsOf(func.getArgAttrOfType<dist::BucketAttr>(index, dist::DistDialect::kBucketAttr),
                 func.getArgAttrOfType<dist::GlobalAttr>(index, dist::DistDialect::kGlobalAttr),
                 func.getArgumentTypes()[index], "argument", nn::getArgName(func, index), "argument " + Twine(index));
}

static SmallVector<Part> partsOfResult(FunctionOpInterface func, unsigned index, std::optional<unsigned> updated) {
  StringRef role, name;
  if (auto roles = nn::getResultRoles(func, index); !roles.empty()) {
    role = nn::getRoleAttr(roles.front().role);
    name = roles.front().role == nn::ResultRole::Loss ? role : roles.front().name;
  }
  auto bucket = func.getResultAttrOfType<dist::BucketAttr>(index, dist::DistDialect::kBucketAttr);
  if (role == nn::NNDialect::kUpdatesAttr && updated)
    bucket = func.getArgAttrOfType<dist::BucketAttr>(*updated, dist::DistDialect::kBucketAttr);
  return partsOf(bucket, func.getResultAttrOfType<dist::GlobalAttr>(index, dist::DistDialect::kGlobalAttr),
                 func.getResultTypes()[index], role, name, "result " + Twine(index));
}

std::vector<SmallVector<Part>> partsOfResults(FunctionOpInterface func) {
  std::vector<SmallVector<Part>> parts;
  for (auto [index, updated] : llvm::enumerate(nn::updatedArguments(func)))
    parts.push_back(partsOfResult(func, index, updated));
  return parts;
}

Tensor takePiece(const Tensor &whole, const Part &part, dist::MeshAttr mesh, int64_t position) {
  return part.sharding && mesh ? takeShard(whole, part.sharding, mesh, position) : whole;
}

static void copy(const Tensor &from, int64_t begin, Tensor &to, int64_t at, int64_t count) {
  for (int64_t k = 0; k < count; ++k)
    to.set(at + k, from.at(begin + k));
}

FailureOr<TensorList> distribute(FunctionOpInterface func, unsigned argument, dist::MeshAttr mesh,
                                 const TensorList &wholes) {
  SmallVector<Part> parts = partsOfArgument(func, argument);
  auto global = func.getArgAttrOfType<dist::GlobalAttr>(argument, dist::DistDialect::kGlobalAttr);
  Type expected = func.getArgumentTypes()[argument];
  TensorList ranks;
  for (int64_t position = 0; position < (mesh ? mesh.getNumDevices() : 1); ++position) {
    if (!parts.front().isInBucket()) {
      ranks.push_back(takePiece(wholes.front(), parts.front(), mesh, position));
    } else {
      Tensor bucket(global ? global.getType() : cast<RankedTensorType>(expected));
      for (auto [part, whole] : llvm::zip_equal(parts, wholes)) {
        Tensor piece = takePiece(whole, part, mesh, position);
        if (piece.type != part.inBucket)
          return emitError(func.getLoc()) << "argument " << argument << " holds a " << part.inBucket
                                          << ", its shard of the whole tensor is a " << piece.type;
        copy(piece, part.begin, bucket, part.first, part.end - part.begin);
      }
      ranks.push_back(global && mesh ? takeShard(bucket, global.getSharding(), mesh, position) : bucket);
    }
    if (ranks.back().type != expected)
      return emitError(func.getLoc()) << "argument " << argument << " is a " << expected
                                      << ", its shard of the whole tensor is a " << ranks.back().type;
  }
  return ranks;
}

/// The axes that cut a bucket.
static ArrayRef<StringAttr> flatAxes(dist::ShardingAttr sharding) {
  return sharding ? sharding.getDimAxes(0) : ArrayRef<StringAttr>();
}

void takeFromBucket(ArrayRef<const Tensor *> ranks, const Part &part, dist::ShardingAttr sharding, dist::MeshAttr mesh,
                    int64_t position, Tensor &piece) {
  int64_t shard = ranks[position]->size();
  for (int64_t k = part.begin; k < part.end; ++k) {
    int64_t at = part.first + (k - part.begin);
    int64_t holder =
        flatAxes(sharding).empty() ? position : mesh.getPositionAlong(position, flatAxes(sharding), at / shard);
    piece.set(k, ranks[holder]->at(at % shard));
  }
}

std::optional<int64_t> findFilledPadding(const Tensor &piece, ArrayRef<Part> parts, dist::ShardingAttr sharding,
                                         dist::MeshAttr mesh, int64_t position) {
  int64_t end = parts.back().first + (parts.back().end - parts.back().begin);
  int64_t begin = flatAxes(sharding).empty() ? 0 : mesh.getIndexAlong(position, flatAxes(sharding)) * piece.size();
  for (int64_t k = std::max<int64_t>(end - begin, 0); k < piece.size(); ++k)
    if (piece.at(k) != 0)
      return k;
  return std::nullopt;
}

} // namespace shoal::interp
