// Clusters of readers, and the gathers that they read; see ParameterReads.h.
#include "ParameterReads.h"

#include "Derivation.h"
#include "ForeignAttrs.h"

#include "shoal/Dialect/NN/IR/NN.h"

#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;

namespace shoal::dist {

std::string listNames(ArrayRef<StringAttr> names) {
  constexpr size_t kNamed = 4;
  std::string text;
  for (auto [i, name] : llvm::enumerate(names.take_front(kNamed)))
    text += (i ? ", " : "") + name.str();
  if (names.size() > kNamed)
    text += " and " + std::to_string(names.size() - kNamed) + " more";
  return text;
}

SmallVector<Operation *> findCasts(BlockArgument param, Operation *update) {
  SmallVector<Operation *> casts;
  for (Operation *user : param.getUsers()) {
    if (user == update)
      continue;
    if (!isa<nn::CastOp>(user) || user->getBlock() != param.getOwner() ||
        (!casts.empty() &&
         getElementTypeOrSelf(user->getResult(0)) != getElementTypeOrSelf(casts.front()->getResult(0))))
      return {};
    casts.push_back(user);
  }
  return casts;
}

Value castBucket(Operation *cast, Value bucket, ShardingAttr sharding) {
  OpBuilder b(cast->getContext());
  b.setInsertionPointToStart(bucket.getParentBlock());
  auto type = llvm::cast<RankedTensorType>(bucket.getType()).clone(getElementTypeOrSelf(cast->getResult(0)));
  auto made = b.create<nn::CastOp>(cast->getLoc(), type, bucket);
  copyForeignAttrs(cast, made);
  setSharding(made, sharding);
  return made;
}

static StringAttr layerOf(Operation *op) { return op->getAttrOfType<StringAttr>(nn::NNDialect::kLayerAttr); }

/// The op, and those of `derived` that it is made of, once more.
static void repeat(OpBuilder &b, Operation *op, const llvm::SetVector<Operation *> &derived, StringAttr layer,
                   IRMapping &mapping) {
  if (mapping.lookupOrNull(op->getResult(0)))
    return;
  for (Value operand : op->getOperands())
    if (Operation *def = operand.getDefiningOp(); def && derived.contains(def))
      repeat(b, def, derived, layer, mapping);
  Operation *own = b.clone(*op, mapping);
  if (layer)
    own->setAttr(nn::NNDialect::kLayerAttr, layer);
}

/// What is made of a parameter alone, an op behind those that it is made of.
static llvm::SetVector<Operation *> findDerived(Value value) {
  Derivation derivation;
  llvm::SetVector<Operation *> derived;
  DenseSet<Value> made{value};
  SmallVector<Value> work{value};
  while (!work.empty())
    for (Operation *user : work.pop_back_val().getUsers())
      if (!derived.contains(user) && !isa<nn::OptimizerUpdateOpInterface>(user) &&
          derivation.derives(user, [&](Value operand) { return made.contains(operand); })) {
        derived.insert(user);
        made.insert(user->result_begin(), user->result_end());
        llvm::append_range(work, user->getResults());
      }
  return derived;
}

static void repeatDerived(Value value) {
  llvm::SetVector<Operation *> derived = findDerived(value);
  llvm::SetVector<Operation *> readers;
  for (Operation *op : derived)
    for (Operation *user : op->getUsers())
      if (!derived.contains(user))
        readers.insert(user);
  for (Operation *reader : readers) {
    OpBuilder b(reader);
    IRMapping mapping;
    for (OpOperand &operand : reader->getOpOperands())
      if (Operation *def = operand.get().getDefiningOp(); def && derived.contains(def)) {
        repeat(b, def, derived, layerOf(reader), mapping);
        operand.set(mapping.lookup(operand.get()));
      }
  }
  for (Operation *op : llvm::reverse(derived))
    op->erase();
}

void repeatDerived(func::FuncOp func) {
  for (BlockArgument argument : func.getArguments()) {
    auto flat = func.getArgAttrOfType<FlatAttr>(argument.getArgNumber(), DistDialect::kFlatAttr);
    if (!flat || !flat.getPerUse())
      continue;
    Operation *update = nullptr;
    for (Operation *user : argument.getUsers())
      if (isa<nn::OptimizerUpdateOpInterface>(user))
        update = user;
    SmallVector<Operation *> casts = findCasts(argument, update);
    for (Operation *cast : casts)
      repeatDerived(cast->getResult(0));
    if (casts.empty())
      repeatDerived(argument);
  }
}

namespace {

/// One op that reads a member of a bucket.
struct Use {
  Operation *op;
  unsigned read, member;
  Operation *last; // that reads what it makes of the member alone; itself where it makes something else
};

/// Readers that share one gather.
struct Cluster {
  SmallVector<Use> uses; // in program order
  StepParts::Part part;
  StringAttr layer;
  unsigned run; // which it begins in
};

/// Neighbouring readers of one layer (of one bucket where ops have none) and one part of the step.
struct Run {
  Operation *last;
  StepParts::Part part;
  StringAttr layer;
  unsigned read;
};

class BlockReads {
public:
  BlockReads(MeshOp mesh, ArrayRef<BucketRead> reads, const StepParts &parts, bool overlap)
      : mesh(mesh), reads(reads), parts(parts), overlap(overlap) {}

  void add(Use use) { uses.push_back(use); }
  void run();

private:
  void findClusters();
  Operation *findStart(const Cluster &cluster) const;
  void gather(const Cluster &cluster, Operation *start);

  MeshOp mesh;
  ArrayRef<BucketRead> reads;
  const StepParts &parts;
  bool overlap;
  SmallVector<Use> uses;
  SmallVector<Run> runs;
  SmallVector<Cluster> clusters;
  SmallVector<AccumulateOp> regions; // of the block, in program order
  Operation *begin = nullptr;        // the first op of the block behind the casts of buckets
};

void BlockReads::findClusters() {
  llvm::sort(uses, [](const Use &a, const Use &b) {
    return a.op != b.op ? a.op->isBeforeInBlock(b.op) : std::tie(a.read, a.member) < std::tie(b.read, b.member);
  });
  DenseMap<unsigned, unsigned> open; // cluster of a bucket that may go on
  for (const Use &use : uses) {
    StepParts::Part part = parts.get(use.op);
    StringAttr layer = layerOf(use.op);
    bool goesOn = !runs.empty() && runs.back().part == part && runs.back().layer == layer &&
                  (layer || runs.back().read == use.read) && llvm::none_of(regions, [&](Operation *region) {
                    return runs.back().last->isBeforeInBlock(region) && region->isBeforeInBlock(use.op);
                  });
    if (!goesOn) {
      runs.push_back({use.last, part, layer, use.read});
      open.clear();
    }
    if (runs.back().last->isBeforeInBlock(use.last))
      runs.back().last = use.last;
    auto [at, isNew] = open.try_emplace(use.read, clusters.size());
    if (isNew)
      clusters.push_back({{}, part, layer, unsigned(runs.size() - 1)});
    clusters[at->second].uses.push_back(use);
  }
}

/// The op in front of which a gather starts: one layer ahead, as soon as the layer before that one has read what it reads,
/// and so in front of the reductions of its gradients, which nobody waits for as long. What stands between layers
/// (embeddings, the last norm) is short, and starts with the layer in front of it.
Operation *BlockReads::findStart(const Cluster &cluster) const {
  Operation *first = cluster.uses.front().op;
  if (!overlap)
    return first;
  bool hasLayers = llvm::any_of(runs, [](const Run &run) { return bool(run.layer); });
  unsigned at = cluster.run;
  // The first layers of a part start with it. Of the backward pass that is behind the last reader of the forward pass.
  while (at > 0 && runs[at - 1].part == cluster.part) {
    --at;
    if (runs[at].layer || !hasLayers)
      break;
  }
  Operation *start = at == 0 ? begin : runs[at - 1].last->getNextNode();
  // Micro-batches read what they gather themselves.
  for (Operation *region : regions)
    if (region->isBeforeInBlock(first) && !region->isBeforeInBlock(start))
      start = region->getNextNode();
  // What one op reads of several may be made in two runs.
  return first->isBeforeInBlock(start) ? first : start;
}

/// One gather in front of `start`, and what each reader reads of it.
void BlockReads::gather(const Cluster &cluster, Operation *start) {
  const BucketRead &read = reads[cluster.uses.front().read];
  constexpr const char *kFor[] = {"the forward pass", "the backward pass", "the update"};
  SmallVector<StringAttr> names;
  for (const BucketRead::Member &member : read.members)
    names.push_back(member.name);
  OpBuilder b(start);
  Location loc = cluster.uses.front().op->getLoc();
  auto whole = ShardingAttr::getReplicated(FlatSymbolRefAttr::get(mesh.getSymNameAttr()), 1);
  // Layers are alike: which one it is, is said beside.
  std::string reason = (cluster.layer ? std::string("the parameters") : listNames(names)) + ", for " + kFor[cluster.part];
  auto fetched = b.create<ReshardOp>(loc, read.bucket, whole, b.getStringAttr(reason));
  setSharding(fetched, whole);
  fetched->setAttr(DistDialect::kFetchAttr, b.getUnitAttr());
  setClass(fetched, exec::StorageClass::workspace);
  if (cluster.layer)
    fetched->setAttr(nn::NNDialect::kLayerAttr, cluster.layer);
  llvm::MapVector<unsigned, SmallVector<Operation *>> readers;
  for (const Use &use : cluster.uses)
    readers[use.member].push_back(use.op);
  for (auto &[index, ops] : readers) {
    const BucketRead::Member &member = read.members[index];
    b.setInsertionPoint(ops.front());
    auto unpacked = b.create<UnpackOp>(loc, member.value.getType(), ValueRange(fetched.getResult()), member.begin, member.end);
    setSharding(unpacked, ShardingAttr::getReplicated(whole.getMesh(),
                                                      cast<RankedTensorType>(member.value.getType()).getRank()));
    for (Operation *op : ops)
      op->replaceUsesOfWith(member.value, unpacked);
  }
}

void BlockReads::run() {
  Block *block = uses.front().op->getBlock();
  llvm::append_range(regions, block->getOps<AccumulateOp>());
  begin = &block->front();
  for (const BucketRead &read : reads)
    if (Operation *cast = read.bucket.getDefiningOp();
        cast && cast->getBlock() == block && !cast->isBeforeInBlock(begin))
      begin = cast->getNextNode();
  findClusters();
  // All places before any gather stands in one: those of one place follow each other as they are read.
  SmallVector<Operation *> starts =
      llvm::map_to_vector(clusters, [&](const Cluster &cluster) { return findStart(cluster); });
  for (auto [cluster, start] : llvm::zip_equal(clusters, starts))
    gather(cluster, start);
}

} // namespace

/// Whole from the start of the step: the bucket itself, or gathered once.
static void readOnce(func::FuncOp func, MeshOp mesh, const BucketRead &read) {
  if (llvm::all_of(read.members, [](const BucketRead::Member &member) { return member.value.use_empty(); }))
    return;
  OpBuilder b(func.getContext());
  if (Operation *def = read.bucket.getDefiningOp())
    b.setInsertionPointAfter(def);
  else
    b.setInsertionPointToStart(&func.getBody().front());
  Location loc = read.bucket.getLoc();
  auto whole = ShardingAttr::getReplicated(FlatSymbolRefAttr::get(mesh.getSymNameAttr()), 1);
  Value bucket = read.bucket;
  if (read.flat) {
    SmallVector<StringAttr> names;
    for (const BucketRead::Member &member : read.members)
      names.push_back(member.name);
    if (Operation *shard = bucket.getDefiningOp())
      setClass(shard, exec::StorageClass::workspace); // until it is gathered
    bucket = b.create<ReshardOp>(loc, bucket, whole, b.getStringAttr(listNames(names) + ", for the step"));
    setClass(bucket.getDefiningOp(), exec::StorageClass::param);
    setSharding(bucket, whole);
  }
  for (const BucketRead::Member &member : read.members) {
    if (member.value.use_empty())
      continue;
    auto unpacked = b.create<UnpackOp>(loc, member.value.getType(), ValueRange(bucket), member.begin, member.end);
    setSharding(unpacked, ShardingAttr::getReplicated(whole.getMesh(),
                                                      cast<RankedTensorType>(member.value.getType()).getRank()));
    Value value = member.value;
    value.replaceAllUsesWith(unpacked);
  }
}

void readFromBuckets(func::FuncOp func, MeshOp mesh, ArrayRef<BucketRead> reads, const StepParts &parts, bool overlap) {
  // Micro-batches gather for themselves.
  llvm::MapVector<Block *, BlockReads> blocks;
  for (auto [index, read] : llvm::enumerate(reads)) {
    if (!read.flat || !read.flat.getPerUse()) {
      readOnce(func, mesh, read);
      continue;
    }
    for (auto [at, member] : llvm::enumerate(read.members)) {
      llvm::SetVector<Operation *> users(member.value.user_begin(), member.value.user_end());
      llvm::SetVector<Operation *> derived = findDerived(member.value);
      DenseMap<Operation *, Operation *> last;
      for (Operation *op : llvm::reverse(derived))
        for (Operation *user : op->getUsers()) {
          Operation *end = derived.contains(user) ? last.lookup(user) : op->getBlock()->findAncestorOpInBlock(*user);
          Operation *&mine = last.try_emplace(op, op).first->second;
          if (end && end->getBlock() == op->getBlock() && !end->hasTrait<OpTrait::IsTerminator>() &&
              mine->isBeforeInBlock(end))
            mine = end;
        }
      for (Operation *user : users) {
        Operation *end = last.lookup(user);
        blocks.insert({user->getBlock(), BlockReads(mesh, reads, parts, overlap)})
            .first->second.add({user, unsigned(index), unsigned(at), end ? end : user});
      }
    }
  }
  for (auto &[block, in] : blocks)
    in.run();
}

} // namespace shoal::dist
