// Decides which values share storage. The only hazards are buckets and in-place reductions: a value
// may lie where it will be overwritten only if all its readers come before that.
#include "Placement.h"

#include "shoal/Dialect/Dist/IR/Collectives.h"
#include "shoal/Dialect/Dist/IR/Memory.h"
#include "shoal/Dialect/Dist/IR/Positions.h"
#include "shoal/Dialect/NN/IR/Roles.h"
#include "shoal/Interfaces/Lowering.h"
#include "shoal/Support/Elements.h"

#include <numeric>

using namespace mlir;

namespace shoal::exec {

AddToOp findSum(Value term) {
  while (term.hasOneUse()) {
    Operation *user = *term.getUsers().begin();
    if (auto sum = dyn_cast<AddToOp>(user))
      return sum.getTerm() == term ? sum : AddToOp();
    if (!lowersAs(user, LoweringKind::View))
      break;
    term = user->getResult(0);
  }
  return {};
}

Value Placement::overwrittenBy(Value result) {
  auto call = result.getDefiningOp<CallOp>();
  auto kernel = call ? symbols.lookup<func::FuncOp>(call.getKernel()) : func::FuncOp();
  int64_t operand = kernel ? getInplace(kernel)[cast<OpResult>(result).getResultNumber()] : -1;
  return operand >= 0 ? call.getInputs()[operand] : Value();
}

Value Placement::baseOf(Value value) {
  while (true) {
    Value root = stripViews(value);
    value = overwrittenBy(root);
    if (!value)
      return root;
  }
}

unsigned Placement::addStorage(RankedTensorType type, StorageClass storageClass, Memory memory) {
  storages.push_back({type.getNumElements(), type.getElementType(), type.getShape(), storageClass, memory, -1});
  return storages.size() - 1;
}

bool Placement::isAligned(Place place) const {
  return place.start * elementBytes(storages[place.storage].elementType) % kBufferAlignment == 0;
}

ArrayRef<CopyRange> Placement::copiesOf(Operation *op) const {
  auto at = copies.find(op);
  return at == copies.end() ? ArrayRef<CopyRange>() : ArrayRef<CopyRange>(at->second);
}

int64_t Placement::indexOf(Operation *op) {
  return indices.lookup(step.getBody().front().findAncestorOpInBlock(*op));
}

/// Where the last op stands that touches the value's elements at a mesh position of `at`, `except` aside, through
/// views, unpacked parts, and the bucket that it lies in.
int64_t Placement::lastUse(Value value, Operation *except, Operation *at) {
  int64_t last = -1;
  for (Operation *user : value.getUsers()) {
    if (user == except || !dist::mayMeet(user, at))
      continue;
    last = std::max(last, indexOf(user));
    if (lowersAs(user, LoweringKind::View) || isa<dist::UnpackOp, dist::WaitOp>(user))
      last = std::max(last, lastUse(user->getResult(0), nullptr, at));
    if (isa<dist::PackOp>(user) && claimed.contains(baseOf(value)))
      last = std::max(last, lastUse(user->getResult(0), nullptr, at));
  }
  return last;
}

LogicalResult Placement::collectGroups() {
  for (auto pack : step.getBody().front().getOps<dist::PackOp>())
    groups[pack.getGroup()].packs.push_back(pack);
  for (auto &[id, group] : groups) {
    llvm::stable_sort(group.packs,
                      [](dist::PackOp a, dist::PackOp b) { return a.getAt() < b.getAt(); });
    int64_t end = 0;
    for (dist::PackOp pack : group.packs) {
      auto type = cast<RankedTensorType>(pack.getBucket().getType());
      auto first = cast<RankedTensorType>(group.packs.front().getBucket().getType());
      if (type.getElementType() != first.getElementType())
        return pack.emitOpError() << "buckets of group " << id
                                  << " must have one element type, got: " << first.getElementType()
                                  << " and " << type.getElementType();
      if (int64_t(pack.getAt()) < end)
        return pack.emitOpError() << "buckets of group " << id << " overlap at element "
                                  << pack.getAt();
      end = pack.getAt() + type.getNumElements();
    }
    Type element =
        cast<RankedTensorType>(group.packs.front().getBucket().getType()).getElementType();
    StorageClass storageClass = getAskedClass(group.packs.front().getBucket()).value_or(StorageClass::grad);
    for (dist::PackOp pack : group.packs)
      if (getAskedClass(pack.getBucket()).value_or(StorageClass::grad) != storageClass)
        return pack.emitOpError() << "buckets of group " << id << " must have one class, got: "
                                  << stringifyStorageClass(storageClass) << " and another";
    group.elements = end;
    if ((group.argument = findUpdated(group))) {
      group.storage = placeOf(group.argument).storage;
      group.uses = findRangeUses(group.argument, group.packs.front());
      continue;
    }
    group.storage = addStorage(RankedTensorType::get({end}, element), storageClass);
    storages[group.storage].shape = {};
  }
  return success();
}

/// The argument that a bucket is the new value of, if nobody reads the old one behind it, and the group is no longer.
Value Placement::findUpdated(const Group &group) {
  dist::PackOp pack = group.packs.front();
  Value bucket = pack.getBucket();
  if (group.packs.size() > 1 || pack.getAt() != 0 || !bucket.hasOneUse() ||
      !isa<func::ReturnOp>(*bucket.getUsers().begin()))
    return {};
  std::optional<unsigned> number = updated[bucket.use_begin()->getOperandNumber()];
  if (!number)
    return {};
  Value argument = step.getArgument(*number);
  // Copies within one storage would read what others have written.
  for (Value input : pack.getInputs())
    if (reads(input, argument))
      return {};
  bool isFree = storages[placeOf(argument).storage].memory == Memory::device &&
                argument.getType() == bucket.getType() && lastUse(argument, nullptr, pack) <= indexOf(pack);
  return isFree ? argument : Value();
}

/// A value may be computed in its bucket if an op writes it there, and nobody reads it after the
/// bucket is reduced in place.
bool Placement::mayLieInGroup(Value root, const Claim &claim) {
  Operation *def = root.getDefiningOp();
  if (!def)
    return false;
  if (auto call = dyn_cast<CallOp>(def)) {
    auto kernel = symbols.lookup<func::FuncOp>(call.getKernel());
    if (!kernel || getMemory(kernel) != Memory::device)
      return false;
  } else if (auto transfer = dyn_cast<TransferOp>(def)) {
    if (transfer.getMemory() != Memory::device)
      return false;
  } else if (!lowersAs(def, LoweringKind::Library) &&
             !isa<dist::AllGatherOp, dist::ReduceScatterOp, dist::AllToAllOp>(def)) {
    return false;
  }
  // The packs of the group only say where it lies, others copy what they take.
  auto copies = [&](dist::PackOp pack, Value value) {
    if (llvm::is_contained(claim.group->packs, pack))
      return false;
    for (auto [input, begin, end] : llvm::zip_equal(pack.getInputs(), pack.getBegins(), pack.getEnds()))
      if (input == value && begin < claim.end && claim.begin < end)
        return true;
    return false;
  };
  SmallVector<Value> work = {root};
  while (!work.empty()) {
    Value value = work.pop_back_val();
    for (Operation *user : value.getUsers()) {
      if (lowersAs(user, LoweringKind::View))
        work.push_back(user->getResult(0));
      else if (auto pack = dyn_cast<dist::PackOp>(user);
               (!pack || copies(pack, value)) && indexOf(user) >= claim.overwrittenAt)
        return false;
      for (Value result : user->getResults())
        if (overwrittenBy(result) == value)
          work.push_back(result);
    }
  }
  return true;
}

/// A kernel that was not compiled for it cannot write at any multiple of the element size. What stands in front of a
/// group takes a multiple of the alignment, so `start` may be counted without it.
bool Placement::mayBeWrittenAt(Value root, int64_t start) {
  auto call = root.getDefiningOp<CallOp>();
  if (!call || start * elementBytes(dist::getTensorType(root).getElementType()) % kBufferAlignment == 0)
    return true;
  auto kernel = symbols.lookup<func::FuncOp>(call.getKernel());
  return bool(kernel.getResultAttr(cast<OpResult>(root).getResultNumber(), ExecDialect::kUnalignedAttr));
}

void Placement::collectClaims(Group &group, Claims &claims) {
  for (dist::PackOp pack : group.packs) {
    int64_t overwrittenAt = std::numeric_limits<int64_t>::max();
    for (Operation *user : pack.getBucket().getUsers())
      if (!isa<dist::UnpackOp>(user))
        overwrittenAt = std::min(overwrittenAt, indexOf(user));
    int64_t at = pack.getAt();
    for (auto [input, begin, end] :
         llvm::zip_equal(pack.getInputs(), pack.getBegins(), pack.getEnds())) {
      SmallVector<Claim, 1> &known = claims[baseOf(input)];
      if (known.empty() || known.back().group != &group)
        known.push_back({&group, at - begin, begin, begin});
      Claim &claim = known.back();
      claim.isContiguous &= claim.start == at - begin && claim.end == begin;
      claim.end = end;
      claim.overwrittenAt = std::min(claim.overwrittenAt, overwrittenAt);
      at += end - begin;
    }
  }
}

SmallVector<Placement::RangeUse> Placement::findRangeUses(Value argument, Operation *pack) {
  SmallVector<RangeUse> uses;
  for (Operation *user : argument.getUsers()) {
    if (!dist::mayMeet(user, pack))
      continue;
    auto unpack = dyn_cast<dist::UnpackOp>(user);
    int64_t last = indexOf(user);
    if (lowersAs(user, LoweringKind::View) || unpack)
      last = std::max(last, lastUse(user->getResult(0), nullptr, pack));
    if (unpack && unpack.getBuckets().size() == 1)
      uses.push_back({unpack.getBegins()[0], unpack.getEnds()[0], last, 0});
    else
      uses.push_back({0, dist::getTensorType(argument).getNumElements(), last, 0});
  }
  llvm::sort(uses, [](const RangeUse &a, const RangeUse &b) {
    return std::tie(a.begin, a.end, a.last) < std::tie(b.begin, b.end, b.last);
  });
  int64_t upTo = 0;
  for (RangeUse &use : uses)
    use.upTo = upTo = std::max(upTo, use.end);
  return uses;
}

int64_t Placement::lastUse(ArrayRef<RangeUse> uses, int64_t begin, int64_t end) {
  int64_t last = -1;
  size_t i = llvm::partition_point(uses, [&](const RangeUse &use) { return use.begin < end; }) - uses.begin();
  for (; i > 0 && uses[i - 1].upTo > begin; --i)
    if (uses[i - 1].end > begin)
      last = std::max(last, uses[i - 1].last);
  return last;
}

/// Each value lies in the group where most of it belongs. What of it belongs elsewhere stands in front of the group's
/// first bucket or behind its last, and is copied.
void Placement::claim(const Claims &claims) {
  SmallVector<std::pair<Value, Claim>> chosen;
  for (auto &[root, all] : claims) {
    const Claim *best = nullptr;
    int64_t size = dist::getTensorType(root).getNumElements();
    for (const Claim &claim : all) {
      bool mayStandOut = !claim.group->argument;
      bool fits = claim.isContiguous && (claim.begin == 0 || (mayStandOut && claim.start + claim.begin == 0)) &&
                  (claim.end == size || (mayStandOut && claim.start + claim.end == claim.group->elements));
      if (fits && (!best || claim.end - claim.begin > best->end - best->begin))
        best = &claim;
    }
    if (!best || claimed.count(root) || !mayLieInGroup(root, *best) || !mayBeWrittenAt(root, best->start))
      continue;
    if (Value argument = best->group->argument) {
      auto gather = root.getDefiningOp<dist::AllGatherOp>();
      if (!gather || reads(gather.getInput(), argument) ||
          lastUse(best->group->uses, best->start, best->start + size) > indexOf(gather))
        continue;
    }
    chosen.push_back({root, *best});
    Group &group = *best->group;
    if (group.argument)
      continue;
    int64_t unit = std::max<int64_t>(1, kBufferAlignment / elementBytes(storages[group.storage].elementType));
    group.front = std::max<int64_t>(group.front, llvm::alignTo(best->begin, unit));
    Storage &storage = storages[group.storage];
    storage.elements = std::max(storage.elements, group.elements + (size - best->end));
  }
  for (auto &[id, group] : groups)
    if (!group.argument)
      storages[group.storage].elements += group.front;
  for (auto &[root, claim] : chosen)
    claimed[root] = {claim.group->storage, claim.group->front + claim.start};
}

void Placement::placeNew(Value value, Memory memory) {
  if (auto at = claimed.find(value); at != claimed.end()) {
    places[value] = at->second;
    begun.try_emplace(at->second.storage, value.getDefiningOp());
    return;
  }
  StorageClass storageClass =
      gradients.contains(value) ? StorageClass::grad : StorageClass::activation;
  places[value] = {addStorage(dist::getTensorType(value), getAskedClass(value).value_or(storageClass), memory), 0};
}

/// Where a pack copies what of an input lies elsewhere: as soon as its storage is in use and another pack has taken its
/// part of the input, which is whole then. So that part's storage is kept for nothing behind its own reduction. What an
/// argument holds is still read.
Operation *Placement::findCopier(dist::PackOp op, Value input) {
  const Group &group = groups[op.getGroup()];
  Operation *begin = begun.lookup(group.storage), *taken = op;
  if (group.argument || !begin)
    return op;
  for (Operation *user : input.getUsers())
    if (isa<dist::PackOp>(user) && indexOf(user) < indexOf(taken))
      taken = user;
  if (indexOf(begin) < indexOf(taken))
    return taken;
  // Not at other positions.
  auto positionsOf = [](Operation *op) { return op->getAttr(dist::DistDialect::kAtAttr); };
  bool isComputed = !isa_and_nonnull<dist::DistDialect>(begin->getDialect()) && positionsOf(begin) == positionsOf(op);
  return isComputed && indexOf(begin) < indexOf(op) ? begin : op;
}

void Placement::placePack(dist::PackOp op) {
  Group &group = groups[op.getGroup()];
  Place bucket{group.storage, group.front + int64_t(op.getAt())};
  places[op.getBucket()] = bucket;
  int64_t at = bucket.start;
  for (auto [input, begin, end] : llvm::zip_equal(op.getInputs(), op.getBegins(), op.getEnds())) {
    Place source = placeOf(input);
    if (source.storage != bucket.storage || source.start + begin != at)
      copies[findCopier(op, input)].push_back({op, input, begin, end - begin, {bucket.storage, at}});
    at += end - begin;
  }
}

void Placement::placeUnpack(dist::UnpackOp op) {
  // Neighbouring ranges of one storage are the tensor.
  std::optional<Place> whole;
  int64_t next = 0;
  bool contiguous = true;
  for (auto [bucket, begin, end] : llvm::zip_equal(op.getBuckets(), op.getBegins(), op.getEnds())) {
    Place place = placeOf(bucket);
    if (!whole)
      whole = Place{place.storage, next = place.start + begin};
    contiguous &= place.storage == whole->storage && place.start + begin == next;
    next = place.start + end;
  }
  if (whole && contiguous) {
    places[op.getResult()] = *whole;
    return;
  }
  placeNew(op.getResult());
  Place target = placeOf(op.getResult());
  for (auto [bucket, begin, end] : llvm::zip_equal(op.getBuckets(), op.getBegins(), op.getEnds())) {
    copies[op].push_back({op, bucket, begin, end - begin, target});
    target.start += end - begin;
  }
}

/// In place unless somebody still needs the operand.
bool Placement::mayReduceInPlace(dist::AllReduceOp op) {
  Value input = op.getInput(), root = stripViews(input);
  // Arguments, and updates that lie in one, keep what they hold; what others may share is left
  // alone as well.
  if (storages[placeOf(input).storage].argument >= 0 ||
      isa_and_nonnull<dist::UnpackOp, dist::GroupOp, dist::WaitOp>(root.getDefiningOp()))
    return false;
  return lastUse(root, op, op) <= indexOf(op);
}

/// What is gathered, or comes from another memory, in place of an argument is received there, unless somebody still
/// reads the old value, or another argument takes it over when the step ends.
void Placement::claimArguments() {
  for (auto [use, number] : llvm::zip_equal(step.getBody().front().getTerminator()->getOpOperands(), updated)) {
    Operation *receiver = use.get().getDefiningOp();
    if (!isa_and_nonnull<dist::AllGatherOp, TransferOp>(receiver) || !number)
      continue;
    Value argument = step.getArgument(*number);
    auto transfer = dyn_cast<TransferOp>(receiver);
    if ((transfer ? transfer.getMemory() : Memory::device) != storages[placeOf(argument).storage].memory)
      continue;
    if (use.get().getType() != argument.getType() || reads(receiver->getOperand(0), argument) ||
        lastUse(argument, receiver, receiver) > indexOf(receiver))
      continue;
    claimed.try_emplace(use.get(), placeOf(argument));
  }
}

/// Whether a value shares the bytes of an argument.
bool Placement::reads(Value value, Value argument) const {
  while (Operation *def = value.getDefiningOp()) {
    if (!lowersAs(def, LoweringKind::View) && !isa<dist::UnpackOp>(def))
      return false;
    value = def->getOperand(0);
  }
  return value == argument;
}

void Placement::place(Operation *op) {
  if (lowersAs(op, LoweringKind::View)) {
    places[op->getResult(0)] = placeOf(op->getOperand(0));
  } else if (auto call = dyn_cast<CallOp>(op)) {
    auto kernel = symbols.lookup<func::FuncOp>(call.getKernel());
    for (auto [result, operand] : llvm::zip_equal(call.getResults(), getInplace(kernel)))
      if (operand >= 0)
        places[result] = placeOf(call.getInputs()[operand]);
      else
        placeNew(result, getMemory(kernel));
  } else if (auto transfer = dyn_cast<TransferOp>(op)) {
    placeNew(transfer.getResult(), transfer.getMemory());
  } else if (auto pack = dyn_cast<dist::PackOp>(op)) {
    placePack(pack);
  } else if (auto unpack = dyn_cast<dist::UnpackOp>(op)) {
    placeUnpack(unpack);
  } else if (auto reduce = dyn_cast<dist::AllReduceOp>(op); reduce && mayReduceInPlace(reduce)) {
    Place place = places[reduce.getResult()] = placeOf(reduce.getInput());
    // What is reduced in place is counted as what it becomes.
    if (std::optional<StorageClass> asked = getAskedClass(reduce.getResult()))
      storages[place.storage].storageClass = *asked;
  } else if (auto wait = dyn_cast<dist::WaitOp>(op)) {
    places[wait.getResult()] = placeOf(wait.getFuture());
  } else if (auto group = dyn_cast<dist::GroupOp>(op)) {
    // What a group of messages receives is made inside and handed out.
    Block &body = group.getBody().front();
    for (auto recv : body.getOps<dist::RecvOp>())
      placeNew(recv.getResult());
    for (auto [result, value] :
         llvm::zip_equal(group.getResults(), body.getTerminator()->getOperands()))
      places[result] = placeOf(value);
  } else if (AddToOp sum = op->getNumResults() == 1 ? findSum(op->getResult(0)) : AddToOp()) {
    places[op->getResult(0)] = placeOf(sum.getSum());
  } else {
    for (Value result : op->getResults())
      if (isa<RankedTensorType, dist::FutureType>(result.getType()))
        placeNew(result);
  }
}

LogicalResult Placement::run() {
  Block &block = step.getBody().front();
  int64_t next = 0;
  for (Operation &op : block)
    indices[&op] = next++;
  for (auto [index, value] : llvm::enumerate(block.getTerminator()->getOperands()))
    if (step.getResultAttr(index, nn::NNDialect::kGradAttr))
      gradients.insert(baseOf(value));
  for (BlockArgument argument : block.getArguments()) {
    Memory memory = dist::liesOnHost(step, argument.getArgNumber()) ? Memory::host : Memory::device;
    places[argument] = {addStorage(dist::getTensorType(argument), StorageClass::input, memory), 0};
    storages.back().argument = argument.getArgNumber();
  }
  if (failed(collectGroups()))
    return failure();
  claimArguments();
  Claims claims;
  for (auto &[id, group] : groups)
    collectClaims(group, claims);
  claim(claims);
  for (Operation &op : block.without_terminator())
    place(&op);
  return success();
}

} // namespace shoal::exec
