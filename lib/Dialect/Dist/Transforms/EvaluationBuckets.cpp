// The parameters of an evaluation in the buckets of training; see FlatBuckets.h.
#include "FlatBuckets.h"
#include "ParameterReads.h"
#include "Signature.h"

#include "shoal/Dialect/NN/IR/Roles.h"

#include "llvm/ADT/StringMap.h"

using namespace mlir;

namespace shoal::dist {
namespace {

/// Buckets that hold parts of the same tensors, and those of their tensors that the evaluation has.
struct Run {
  SmallVector<DictionaryAttr> buckets;
  SmallVector<int64_t> begins; // of the elements of all buckets
  struct Tensor {
    MemberAttr member; // of the last bucket that holds some of it
    int64_t begin, end;
    BlockArgument argument; // null: the evaluation does not read it
  };
  SmallVector<Tensor> tensors;
  int64_t end = 0;
};

class EvaluationPacker {
public:
  EvaluationPacker(func::FuncOp func, const BucketOptions &options)
      : func(func), options(options), parts(func), signature(func) {
    for (BlockArgument argument : func.getArguments())
      arguments[nn::getArgName(func, argument.getArgNumber())] = argument;
  }

  LogicalResult run(ArrayAttr buckets);

private:
  LogicalResult join(ArrayAttr buckets);
  LogicalResult add(Run &run, DictionaryAttr bucket);
  void read(const Run &run);

  func::FuncOp func;
  const BucketOptions &options;
  StepParts parts;
  Signature signature;
  llvm::StringMap<BlockArgument> arguments;
  std::vector<Run> runs;
  SmallVector<BucketRead> reads;
};

static FlatAttr flatOf(DictionaryAttr bucket) { return bucket.getAs<FlatAttr>(DistDialect::kFlatAttr); }
static ArrayRef<MemberAttr> membersOf(DictionaryAttr bucket) {
  return bucket.getAs<BucketAttr>(DistDialect::kBucketAttr).getMembers();
}

/// One more bucket, which holds what follows.
LogicalResult EvaluationPacker::add(Run &run, DictionaryAttr bucket) {
  ArrayRef<MemberAttr> members = membersOf(bucket);
  if (!flatOf(bucket) && !llvm::all_of(members, [](MemberAttr member) { return member.isWhole(); }))
    return func.emitError() << "a bucket that is whole must hold whole tensors, got: a part of "
                            << members.front().getName() << " or of one behind it";
  if (!run.buckets.empty() && flatOf(run.buckets.back()) != flatOf(bucket))
    return func.emitError() << "buckets that hold parts of " << members.front().getName() << " must lie alike";
  run.buckets.push_back(bucket);
  run.begins.push_back(run.end);
  for (MemberAttr member : members) {
    BlockArgument argument = arguments.lookup(member.getName());
    if (argument && argument.getType() != member.getType())
      return emitError(argument.getLoc())
             << member.getName() << " must be " << member.getType() << " as in training, got: " << argument.getType();
    bool goesOn = !run.tensors.empty() && run.tensors.back().member.getName() == member.getName();
    if (!goesOn && member.getBegin() != 0)
      return func.emitError() << "the bucket in front of the one in which " << member.getName()
                              << " goes on must hold its elements up to " << member.getBegin();
    if (!goesOn)
      run.tensors.push_back({member, run.end, run.end, argument});
    run.tensors.back().member = member;
    run.end += member.getNumElements();
    run.tensors.back().end = run.end;
    if (int64_t all = member.getType().getNumElements(); member != members.back() && member.getEnd() < all)
      return func.emitError() << "a bucket must hold " << member.getName() << " up to its last element, " << all
                              << ", in front of another tensor, got: " << member.getEnd();
  }
  return success();
}

LogicalResult EvaluationPacker::join(ArrayAttr buckets) {
  // A bucket that begins inside of a tensor follows the one that holds the elements before.
  DenseMap<std::pair<StringAttr, int64_t>, DictionaryAttr> rest;
  auto keyOf = [](DictionaryAttr bucket) {
    MemberAttr first = membersOf(bucket).front();
    return std::pair(first.getName(), first.getBegin());
  };
  for (auto bucket : buckets.getAsRange<DictionaryAttr>())
    if (membersOf(bucket).front().getBegin() != 0 && !rest.try_emplace(keyOf(bucket), bucket).second)
      return func.emitError() << "two buckets begin at element " << keyOf(bucket).second << " of "
                              << keyOf(bucket).first;
  for (auto bucket : buckets.getAsRange<DictionaryAttr>()) {
    if (membersOf(bucket).front().getBegin() != 0)
      continue;
    Run &run = runs.emplace_back();
    for (DictionaryAttr next = bucket; next;) {
      if (failed(add(run, next)))
        return failure();
      MemberAttr last = membersOf(next).back();
      std::pair<StringAttr, int64_t> key(last.getName(), last.getEnd());
      bool isCut = last.getEnd() < last.getType().getNumElements();
      next = isCut ? rest.lookup(key) : DictionaryAttr();
      if (isCut && !next)
        return func.emitError() << "buckets must hold all " << last.getType().getNumElements() << " elements of "
                                << last.getName() << ", got: " << last.getEnd();
      rest.erase(key);
    }
  }
  for (auto bucket : buckets.getAsRange<DictionaryAttr>())
    if (membersOf(bucket).front().getBegin() != 0 && rest.contains(keyOf(bucket)))
      return func.emitError() << "the bucket in front of the one in which " << keyOf(bucket).first
                              << " goes on must hold its elements up to " << keyOf(bucket).second;
  return success();
}

void EvaluationPacker::read(const Run &run) {
  SmallVector<Run::Tensor> present = llvm::to_vector(
      llvm::make_filter_range(run.tensors, [](const Run::Tensor &tensor) { return bool(tensor.argument); }));
  if (present.empty())
    return;
  // As training casts them, all or none.
  SmallVector<SmallVector<Operation *>> casts =
      llvm::map_to_vector(present, [](const Run::Tensor &tensor) { return findCasts(tensor.argument); });
  bool areCast = llvm::none_of(casts, [](auto &ops) { return ops.empty(); });
  BucketRead &read = reads.emplace_back();
  read.flat = run.buckets.front().getAs<FlatAttr>(DistDialect::kFlatAttr);
  for (auto [i, attrs] : llvm::enumerate(run.buckets)) {
    auto lies = attrs.getAs<GlobalAttr>(DistDialect::kGlobalAttr);
    int64_t begin = run.begins[i], end = i + 1 < run.begins.size() ? run.begins[i + 1] : run.end;
    auto first =
        llvm::find_if(present, [&](const Run::Tensor &tensor) { return begin < tensor.end && tensor.begin < end; });
    if (first == present.end()) {
      read.buckets.push_back({{}, begin});
      continue;
    }
    NamedAttrList list(attrs);
    list.erase(DistDialect::kGlobalAttr);
    list.set(DistDialect::kShardingAttr, lies.getSharding());
    if (Attribute why = signature.getArgAttrs(first->argument).get(DistDialect::kWhyAttr); why && read.flat)
      list.set(DistDialect::kWhyAttr, why);
    Value bucket = signature.insertBefore(first->argument, lies.getType(), list.getDictionary(func.getContext()));
    if (areCast)
      bucket = castBucket(casts.front().front(), bucket, lies.getSharding());
    read.buckets.push_back({bucket, begin});
  }
  for (auto [tensor, ops] : llvm::zip_equal(present, casts)) {
    StringAttr name = tensor.member.getName();
    if (!areCast)
      read.members.push_back({name, tensor.argument, tensor.begin, tensor.end});
    else
      for (Operation *cast : ops)
        read.members.push_back({name, cast->getResult(0), tensor.begin, tensor.end});
    signature.erase(tensor.argument);
  }
}

LogicalResult EvaluationPacker::run(ArrayAttr buckets) {
  if (failed(join(buckets)))
    return failure();
  for (const Run &run : runs)
    read(run);
  readFromBuckets(func, options.mesh, reads, parts, options.overlap);
  return success();
}

} // namespace

LogicalResult packAsTraining(func::FuncOp func, const BucketOptions &options) {
  auto buckets = func->getAttrOfType<ArrayAttr>(DistDialect::kBucketsAttr);
  if (!buckets)
    return success();
  repeatDerived(func);
  if (failed(EvaluationPacker(func, options).run(buckets)))
    return failure();
  func->removeAttr(DistDialect::kBucketsAttr);
  return success();
}

} // namespace shoal::dist
