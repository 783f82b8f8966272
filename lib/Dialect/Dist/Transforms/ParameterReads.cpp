// Clusters of readers, and the gathers that they read; see ParameterReads.h.
#include "ParameterReads.h"

#include "BucketCut.h"
#include "Derivation.h"
#include "ForeignAttrs.h"
#include "Reasons.h"

#include "shoal/Dialect/Dist/Transforms/PackGroups.h"
#include "shoal/Dialect/NN/IR/NN.h"
#include "shoal/Interfaces/Origin.h"

#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;

namespace shoal::dist {

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

/// The op, and those of `derived` that it is made of, once more for the reader.
static void repeat(OpBuilder &b, Operation *op, const llvm::SetVector<Operation *> &derived, Operation *reader,
                   IRMapping &mapping) {
  if (mapping.lookupOrNull(op->getResult(0)))
    return;
  for (Value operand : op->getOperands())
    if (Operation *def = operand.getDefiningOp(); def && derived.contains(def))
      repeat(b, def, derived, reader, mapping);
  copyOrigin(reader, b.clone(*op, mapping));
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
        repeat(b, def, derived, reader, mapping);
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

/// What is received side by side is freed together. So a run of buckets ends where it is this many times as large as the
/// tensor that is cut there, which is copied out of both runs, for the forward and for the backward pass.
constexpr int64_t kRunOfTensors = 16;

/// Buckets of a read as they are gathered for some of its members, and these out of them.
class Fetch {
public:
  /// With `splits` a member may lie in several runs of buckets.
  Fetch(MeshOp mesh, const BucketRead &read, ArrayRef<unsigned> members, bool splits = false)
      : read(read), members(members), splits(splits),
        whole(ShardingAttr::getReplicated(FlatSymbolRefAttr::get(mesh.getSymNameAttr()), 1)) {}

  /// `why` tells for what, behind the names. Returns the gathers.
  SmallVector<ReshardOp> gather(OpBuilder &b, Location loc, function_ref<std::string(std::string)> why,
                                exec::StorageClass storage, int64_t &freeGroup);
  /// Every device has the bucket, of which there is one.
  void readWhole() { sources = {read.buckets.front()}; }
  Value unpack(OpBuilder &b, Location loc, const BucketRead::Member &member) const;
  bool isSplit(const BucketRead::Member &member) const { return sourceAt(member.begin) != sourceAt(member.end - 1); }

private:
  int64_t endOf(unsigned bucket) const {
    return bucket + 1 < read.buckets.size() ? read.buckets[bucket + 1].begin : std::numeric_limits<int64_t>::max();
  }
  /// The first bucket that holds something of the member, and the one behind the last.
  std::pair<unsigned, unsigned> rangeOf(const BucketRead::Member &member) const {
    unsigned first = llvm::upper_bound(read.buckets, member.begin,
                                       [](int64_t at, const BucketRead::Bucket &bucket) { return at < bucket.begin; }) -
                     read.buckets.begin() - 1;
    unsigned last = first;
    while (endOf(last) < member.end)
      ++last;
    return {first, last + 1};
  }
  const BucketRead::Bucket *sourceAt(int64_t element) const {
    return std::prev(llvm::upper_bound(
        sources, element, [](int64_t at, const BucketRead::Bucket &other) { return at < other.begin; }));
  }
  static int64_t sizeOf(Value bucket) { return cast<RankedTensorType>(bucket.getType()).getNumElements(); }

  const BucketRead &read;
  ArrayRef<unsigned> members;
  bool splits;
  ShardingAttr whole;
  /// What holds the elements from `begin` on, in order: buckets, or several of them that share a tensor.
  SmallVector<BucketRead::Bucket> sources;
};

SmallVector<ReshardOp> Fetch::gather(OpBuilder &b, Location loc, function_ref<std::string(std::string)> why,
                                     exec::StorageClass storage, int64_t &freeGroup) {
  // Runs of buckets of which each shares a tensor with the next.
  struct Range {
    unsigned first, last;
    int64_t elements; // of the member
    bool operator<(const Range &other) const { return std::tie(first, last) < std::tie(other.first, other.last); }
  };
  SmallVector<Range> ranges;
  for (unsigned index : members) {
    auto [first, last] = rangeOf(read.members[index]);
    ranges.push_back({first, last, read.members[index].end - read.members[index].begin});
  }
  llvm::sort(ranges);
  SmallVector<std::pair<unsigned, unsigned>> runs;
  for (const Range &range : ranges) {
    if (runs.empty() || range.first >= runs.back().second) {
      runs.push_back({range.first, range.last});
      continue;
    }
    auto &[first, last] = runs.back();
    bool goesOn = range.last > last;
    if (goesOn && splits && read.buckets[last].begin - read.buckets[first].begin >= kRunOfTensors * range.elements)
      runs.push_back({last, range.last});
    else
      last = std::max(last, range.last);
  }

  SmallVector<ReshardOp> gathers;
  for (auto [first, last] : runs) {
    SmallVector<Value> parts;
    SmallVector<int64_t> ends;
    for (unsigned bucket = first; bucket < last; ++bucket) {
      SmallVector<StringRef> names;
      for (const BucketRead::Member &member : read.members)
        if (member.begin < endOf(bucket) && read.buckets[bucket].begin < member.end &&
            (names.empty() || names.back() != member.name.getValue()))
          names.push_back(member.name);
      Value shard = read.buckets[bucket].value;
      auto fetched = b.create<ReshardOp>(loc, shard, whole, b.getStringAttr(why(listNames(names))));
      setSharding(fetched, whole);
      setClass(fetched, storage);
      gathers.push_back(fetched);
      parts.push_back(fetched);
      ends.push_back(bucket + 1 < last ? endOf(bucket) - read.buckets[bucket].begin : sizeOf(shard));
    }
    Value source = parts.front();
    if (parts.size() > 1) {
      // They are received side by side, so that the tensors they share are whole.
      int64_t size = read.buckets[last - 1].begin - read.buckets[first].begin + ends.back();
      source = b.create<PackOp>(loc, cast<RankedTensorType>(source.getType()).clone(ArrayRef(size)), parts,
                                SmallVector<int64_t>(parts.size(), 0), ends, freeGroup++, /*at=*/0);
      setSharding(source, whole);
      setClass(source.getDefiningOp(), storage);
    }
    sources.push_back({source, read.buckets[first].begin});
  }
  return gathers;
}

Value Fetch::unpack(OpBuilder &b, Location loc, const BucketRead::Member &member) const {
  SmallVector<Value> values;
  SmallVector<int64_t> begins, ends;
  for (const BucketRead::Bucket *source = sourceAt(member.begin);
       source != sources.end() && source->begin < member.end; ++source) {
    int64_t end = source + 1 == sources.end() ? member.end : std::min(member.end, source[1].begin);
    values.push_back(source->value);
    begins.push_back(std::max(member.begin, source->begin) - source->begin);
    ends.push_back(end - source->begin);
  }
  auto type = cast<RankedTensorType>(member.value.getType());
  auto unpacked = b.create<UnpackOp>(loc, type, values, begins, ends);
  setSharding(unpacked, ShardingAttr::getReplicated(whole.getMesh(), type.getRank()));
  if (values.size() > 1)
    setClass(unpacked, exec::StorageClass::workspace);
  return unpacked;
}

/// One op that reads a member of a bucket.
struct Use {
  Operation *op;
  unsigned read, member;
  Operation *last; // that reads what it makes of the member alone; itself where it makes something else
};

/// Readers that share the gathers of a read's buckets.
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
  void run(int64_t &freeGroup);

private:
  void findClusters();
  Operation *findStart(const Cluster &cluster) const;
  void gather(const Cluster &cluster, Operation *start, int64_t &freeGroup);

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
  DenseMap<unsigned, unsigned> open; // cluster of a read that may go on
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

/// Gathers in front of `start`, and what each reader reads of them.
void BlockReads::gather(const Cluster &cluster, Operation *start, int64_t &freeGroup) {
  const BucketRead &read = reads[cluster.uses.front().read];
  llvm::MapVector<unsigned, SmallVector<Operation *>> readers;
  for (const Use &use : cluster.uses)
    readers[use.member].push_back(use.op);
  SmallVector<unsigned> members = llvm::map_to_vector(readers, [](auto &entry) { return entry.first; });
  OpBuilder b(start);
  Location loc = cluster.uses.front().op->getLoc();
  Fetch fetch(mesh, read, members);
  // Layers are alike: which one it is, is said beside.
  auto why = [&](std::string names) {
    return (cluster.layer ? "the parameters" : names) + ", for " + StepParts::kNames[cluster.part];
  };
  for (ReshardOp fetched : fetch.gather(b, loc, why, exec::StorageClass::workspace, freeGroup)) {
    fetched->setAttr(DistDialect::kFetchAttr, b.getUnitAttr());
    copyOrigin(cluster.uses.front().op, fetched);
  }
  for (auto &[index, ops] : readers) {
    const BucketRead::Member &member = read.members[index];
    b.setInsertionPoint(ops.front());
    Value unpacked = fetch.unpack(b, loc, member);
    for (Operation *op : ops)
      op->replaceUsesOfWith(member.value, unpacked);
  }
}

void BlockReads::run(int64_t &freeGroup) {
  Block *block = uses.front().op->getBlock();
  llvm::append_range(regions, block->getOps<AccumulateOp>());
  begin = &block->front();
  for (const BucketRead &read : reads)
    for (const auto &bucket : read.buckets)
      if (Operation *cast = bucket.value ? bucket.value.getDefiningOp() : nullptr;
          cast && cast->getBlock() == block && !cast->isBeforeInBlock(begin))
        begin = cast->getNextNode();
  findClusters();
  // All places before any gather stands in one: those of one place follow each other as they are read.
  SmallVector<Operation *> starts =
      llvm::map_to_vector(clusters, [&](const Cluster &cluster) { return findStart(cluster); });
  for (auto [cluster, start] : llvm::zip_equal(clusters, starts))
    gather(cluster, start, freeGroup);
}

} // namespace

/// Whole from the start of the step: the bucket itself, or gathered once.
static void readOnce(func::FuncOp func, MeshOp mesh, const BucketRead &read, const StepParts &parts,
                     int64_t &freeGroup) {
  SmallVector<unsigned> members;
  for (auto [index, member] : llvm::enumerate(read.members))
    if (!member.value.use_empty())
      members.push_back(index);
  if (members.empty())
    return;
  OpBuilder b(func.getContext());
  b.setInsertionPointToStart(&func.getBody().front());
  Operation *last = nullptr;
  for (const BucketRead::Bucket &bucket : read.buckets)
    if (Operation *def = bucket.value ? bucket.value.getDefiningOp() : nullptr;
        def && (!last || last->isBeforeInBlock(def)))
      last = def;
  if (last)
    b.setInsertionPointAfter(last);
  Location loc = func.getLoc();
  for (const BucketRead::Bucket &bucket : llvm::reverse(read.buckets))
    if (bucket.value)
      loc = bucket.value.getLoc();
  // Micro-batches read all of them up to the last one, an evaluation keeps nothing else.
  bool isPlainStep = !func->hasAttr(nn::kEvaluationAttr) && func.getBody().front().getOps<AccumulateOp>().empty();
  Fetch fetch(mesh, read, members, /*splits=*/isPlainStep);
  if (read.flat) {
    auto why = [](std::string names) { return names + ", for the step"; };
    for (ReshardOp gathered : fetch.gather(b, loc, why, exec::StorageClass::param, freeGroup))
      if (Operation *shard = gathered.getInput().getDefiningOp())
        setClass(shard, exec::StorageClass::workspace); // until it is gathered
  } else {
    fetch.readWhole();
  }
  OpBuilder::InsertPoint start = b.saveInsertionPoint();
  for (unsigned index : members) {
    const BucketRead::Member &member = read.members[index];
    if (fetch.isSplit(member)) {
      // A copy, which no pass keeps for another.
      Value value = member.value;
      auto readerOf = [&](Operation *user) { return func.getBody().front().findAncestorOpInBlock(*user); };
      llvm::MapVector<unsigned, Operation *> firsts; // reader of each part
      for (Operation *user : member.value.getUsers()) {
        Operation *reader = readerOf(user), *&first = firsts.try_emplace(parts.get(reader), reader).first->second;
        first = reader->isBeforeInBlock(first) ? reader : first;
      }
      for (auto [part, first] : firsts) {
        b.setInsertionPoint(first);
        Value copy = fetch.unpack(b, loc, member);
        if (part == StepParts::Backward)
          copy.getDefiningOp()->setAttr(nn::NNDialect::kRecomputeAttr, b.getUnitAttr());
        value.replaceUsesWithIf(copy, [&, part = part](OpOperand &use) {
          return parts.get(readerOf(use.getOwner())) == StepParts::Part(part);
        });
      }
    }
  }
  b.restoreInsertionPoint(start);
  for (unsigned index : members) {
    Value value = read.members[index].value;
    if (!value.use_empty())
      value.replaceAllUsesWith(fetch.unpack(b, loc, read.members[index]));
  }
}

void readFromBuckets(func::FuncOp func, MeshOp mesh, ArrayRef<BucketRead> reads, const StepParts &parts, bool overlap) {
  // Micro-batches gather for themselves.
  llvm::MapVector<Block *, BlockReads> blocks;
  int64_t freeGroup = findFreeGroup(func);
  for (auto [index, read] : llvm::enumerate(reads)) {
    if (!read.flat || !read.flat.getPerUse()) {
      readOnce(func, mesh, read, parts, freeGroup);
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
    in.run(freeGroup);
}

} // namespace shoal::dist
