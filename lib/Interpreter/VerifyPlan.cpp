// Comparison of a local program on all ranks with the global one on one device.
//
// One device runs first, and keeps its numbered values (`dist.id`). Then the ranks run; each
// local op that is a piece of a global value (`dist.globals`) is compared as soon as it has run, a
// partial one once all its ranks have. A micro-batch has the same rows under every plan, so what
// runs inside an accumulate is compared iteration by iteration; once that is unrolled, each copy with
// the micro-batch that it names (`dist.microbatch`). Both begin each step with the state of the one
// device, so that rounding is that of one step. Of all differences the first in the global order is
// reported.
#include "shoal/Interpreter/VerifyPlan.h"

#include "Combine.h"
#include "Indexing.h"

#include "shoal/Dialect/Dist/IR/Dist.h"
#include "shoal/Dialect/Dist/IR/Microbatches.h"
#include "shoal/Dialect/Dist/IR/Positions.h"
#include "shoal/Dialect/Dist/Transforms/StepParts.h"
#include "shoal/Dialect/Exec/IR/Exec.h"
#include "shoal/Dialect/NN/IR/NN.h"
#include "shoal/Dialect/NN/IR/Roles.h"
#include "shoal/Dialect/NN/IR/Updates.h"
#include "shoal/Interfaces/Reference.h"
#include "shoal/Interpreter/Arguments.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

#include <cmath>
#include <limits>
#include <map>

using namespace mlir;

namespace shoal::interp {
namespace {

/// How far from one device's an element may be.
struct Allowed {
  double each = 0;
  std::vector<double> more; // for some values, by element
  double of(int64_t element) const { return each + (more.empty() ? 0 : more[element]); }
};

// What one device computed for a numbered value, each time that its op ran.
struct Reference {
  struct Execution {
    int64_t order = 0;
    Allowed allowed;
    Tensor value; // empty when the local program has no pieces of it
  };
  Operation *op = nullptr;
  unsigned result = 0;
  std::vector<Execution> executions;
};

bool runsPerMicrobatch(Operation *op) {
  return static_cast<bool>(op->getParentOfType<dist::AccumulateOp>());
}

/// What an op costs the interpreter each time that it runs: its floating-point operations, or those of its elements.
double costOf(Operation *op) {
  double cost = 0;
  if (auto ruled = dyn_cast<ShardingRuleOpInterface>(op); ruled && !op->getNumRegions())
    cost = ruled.getFlops();
  for (Type type : op->getResultTypes())
    if (auto tensor = dyn_cast<RankedTensorType>(type))
      cost = std::max(cost, double(tensor.getNumElements()));
  return cost;
}

/// What a function costs one device. Of loops by hand, whose ways differ by rank, one way is counted.
double costOf(func::FuncOp func) {
  double cost = 0;
  func.walk([&](Operation *op) { cost += double(dist::countRuns(op)) * (op->getNumRegions() ? 0 : costOf(op)); });
  return cost;
}

struct Mismatch {
  int64_t order = 0;
  PlanDifference difference;
  int64_t rank = 0;
};

class PlanVerifier {
public:
  PlanVerifier(func::FuncOp global, func::FuncOp local, dist::MeshAttr mesh,
               const VerifyPlanOptions &options)
      : global(global), local(local), mesh(mesh), options(options) {
    bool exact = options.precision == Precision::F64;
    tolerance = options.tolerance > 0 ? options.tolerance : exact ? 1e-10 : 1e-4;
    // Values that are mathematically zero are the rounding noise of their terms.
    floor = exact ? 1e-14 : 1e-6;
  }

  FailureOr<PlanReport> verify();
  double estimateWork() const {
    return options.steps * (costOf(global) + double(mesh.getNumDevices()) * costOf(local));
  }

private:
  void tell(Operation *op) {
    if (!options.progress)
      return;
    done += op->getNumRegions() ? 0 : costOf(op);
    options.progress(std::min(1.0, done / std::max(1.0, work)));
  }

  LogicalResult matchParts();
  void collectWanted();
  FailureOr<TensorList> runOneDevice(const TensorList &arguments);
  FailureOr<std::vector<TensorList>> runRanks(const std::vector<TensorList> &arguments);
  void observeLocal(Operation *op, int64_t position, ArrayRef<const Tensor *> results);
  // A result of an op, and in which of its executions, by micro-batch.
  using PieceKey = std::pair<std::pair<Operation *, unsigned>, int64_t>;
  void observePiece(PieceKey key, dist::GlobalAttr tag, int64_t position, const Tensor &result,
                    const Reference &reference, size_t iteration);
  FailureOr<std::vector<TensorList>> distributeAll(const TensorList &whole);
  void compareResults(const TensorList &whole, const std::vector<TensorList> &ranks);
  /// A result of the plan, and the part of it that is one of the reference's, or belongs to it.
  struct Holder {
    unsigned result;
    Part part;
    SmallVector<const Tensor *> ranks;
  };
  void compareResult(ArrayRef<Holder> holders, const Tensor &whole, unsigned number);

  void comparePiece(const Tensor &whole, const Tensor &piece, dist::ShardingAttr sharding,
                    int64_t position, const Allowed &allowed, Mismatch where, const Twine &what);
  void comparePartial(const Tensor &whole, ArrayRef<const Tensor *> pieces, dist::ShardingAttr sharding,
                      const Allowed &allowed, Mismatch where, const Twine &what);
  void note(Mismatch mismatch, const Twine &what, ArrayRef<int64_t> index, const Twine &rank,
            double got, double expected, bool isFloat);
  double allow(const Tensor &whole, double terms) const;
  void measure(Value value, const Tensor &tensor, double terms);
  double findTerms(OpResult result) const;
  FailureOr<SmallVector<size_t>> findExecutions(Operation *op, const Reference &reference, int64_t id, int64_t run);
  int64_t rankOf(int64_t position) const {
    return mesh.getDeviceIds().empty() ? position : mesh.getDeviceIds()[position];
  }
  void refuse(Operation *op, const Twine &message) {
    if (!invalid)
      emitError(op->getLoc()) << "'" << op->getName() << "' " << message;
    invalid = true;
  }

  func::FuncOp global, local;
  // Per argument and result of the plan, and each of its parts, the number of the reference's.
  SmallVector<SmallVector<unsigned>> argumentsOf, resultsOf;
  std::vector<SmallVector<Part>> localResults;
  dist::MeshAttr mesh;
  const VerifyPlanOptions &options;
  double tolerance, floor;
  int64_t step = 0, compared = 0;
  bool invalid = false; // an error has been emitted
  double work = 0, done = 0; // of `estimateWork`

  /// Of a value of one device.
  struct Measure {
    double terms = 0;   // what it is made of, see findTerms(); with the value itself
    double made = 0;    // largest norm among the value and the operands of its op
    double norm = 0;
    double largest = 0; // of its elements
    double first = 0;   // its first element: of a scalar, all of it
    Allowed allowed;
  };
  llvm::DenseMap<Value, Measure> measures;
  llvm::DenseSet<int64_t> wanted; // numbers that the local program has pieces of
  llvm::DenseMap<int64_t, Reference> references;
  std::optional<Mismatch> first;

  // Pieces of partial values, per op, result and execution, until all ranks have theirs.
  struct Pieces {
    std::vector<Tensor> tensors;
    int64_t arrived = 0;
  };
  std::map<PieceKey, Pieces> partials; // never iterated
  std::map<std::pair<PieceKey::first_type, int64_t>, int64_t> executions;
};

LogicalResult PlanVerifier::matchParts() {
  // Every argument and result of one device is a part of one of the plan's, or lies in several.
  localResults = partsOfResults(local);
  llvm::StringMap<unsigned> arguments, results;
  for (unsigned i = 0; i < global.getNumArguments(); ++i)
    arguments[partsOfArgument(global, i).front().key] = i;
  for (auto [i, parts] : llvm::enumerate(partsOfResults(global)))
    results[parts.front().key] = i;
  unsigned numArguments = 0, numResults = 0;
  using Ranges = llvm::StringMap<SmallVector<std::pair<int64_t, int64_t>, 1>>;
  Ranges argumentElements, resultElements; // that buckets hold of each tensor
  auto match = [&](unsigned count, auto partsOf, const llvm::StringMap<unsigned> &known,
                   SmallVectorImpl<SmallVector<unsigned>> &matched, unsigned &number,
                   Ranges &elements) {
    for (unsigned i = 0; i < count; ++i) {
      auto &list = matched.emplace_back();
      for (const Part &part : partsOf(i)) {
        number += !part.isInBucket() || !elements.contains(part.key);
        elements[part.key].push_back({part.begin, part.end});
        auto at = known.find(part.key);
        list.push_back(at == known.end() ? ~0u : at->second);
      }
    }
  };
  match(
      local.getNumArguments(), [&](unsigned i) { return partsOfArgument(local, i); }, arguments, argumentsOf,
      numArguments, argumentElements);
  match(
      local.getNumResults(), [&](unsigned i) { return localResults[i]; }, results, resultsOf, numResults,
      resultElements);
  if (numArguments != global.getNumArguments() || numResults != global.getNumResults())
    return emitError(local.getLoc())
           << "the plan takes " << numArguments << " arguments and gives " << numResults << " results, the reference "
           << global.getNumArguments() << " and " << global.getNumResults();
  auto checkElements = [&](const Part &part, const Ranges &elements) -> LogicalResult {
    if (!part.isInBucket())
      return success();
    auto ranges = elements.lookup(part.key);
    llvm::sort(ranges);
    int64_t next = 0, size = part.inBucket.getNumElements();
    for (auto [begin, end] : ranges)
      next = begin == next ? end : -1;
    if (next == size)
      return success();
    InFlightDiagnostic diag = emitError(local.getLoc()) << "the plan's buckets must hold each of the " << size
                                                        << " elements of " << part.key << " once, got:";
    for (auto [begin, end] : ranges)
      diag << " [" << begin << ":" << end << "]";
    return diag;
  };
  for (unsigned i = 0; i < local.getNumArguments(); ++i)
    for (auto [part, of] : llvm::zip_equal(partsOfArgument(local, i), argumentsOf[i]))
      if (of >= global.getNumArguments())
        return emitError(local.getLoc()) << "the plan takes an argument that the reference does not: " << part.key;
      else if (part.whole && part.whole != global.getArgumentTypes()[of])
        return emitError(local.getLoc()) << "argument " << i << " of the plan is a piece of a " << part.whole
                                         << ", the reference takes a " << global.getArgumentTypes()[of];
      else if (failed(checkElements(part, argumentElements)))
        return failure();
  for (unsigned i = 0; i < local.getNumResults(); ++i)
    for (auto [part, of] : llvm::zip_equal(localResults[i], resultsOf[i]))
      if (of >= global.getNumResults())
        return emitError(local.getLoc()) << "the plan gives a result that the reference does not: " << part.key;
      else if (failed(checkElements(part, resultElements)))
        return failure();
  return success();
}

void PlanVerifier::collectWanted() {
  local.walk([&](Operation *op) {
    if (auto globals = op->getAttrOfType<ArrayAttr>(dist::DistDialect::kGlobalsAttr))
      for (auto tag : globals.getAsRange<Attribute>())
        if (auto piece = dyn_cast<dist::GlobalAttr>(tag))
          wanted.insert(piece.getId());
  });
}

double normOf(const Tensor &tensor) {
  double square = 0;
  for (double value : tensor.f)
    if (std::isfinite(value))
      square += value * value;
  return std::sqrt(square);
}

void PlanVerifier::measure(Value value, const Tensor &tensor, double terms) {
  Measure &measure = measures[value];
  // Inside of an accumulate `terms` is that of all micro-batches, all else of the last one.
  double norm = normOf(tensor);
  measure = {.terms = std::max({measure.terms, terms, norm}), .made = norm, .norm = norm,
             .allowed = {allow(tensor, terms), {}}};
  for (double element : tensor.f)
    if (std::isfinite(element))
      measure.largest = std::max(measure.largest, std::abs(element));
  if (tensor.size() > 0)
    measure.first = tensor.at(0);
  if (Operation *op = value.getDefiningOp())
    for (Value operand : op->getOperands())
      if (auto at = measures.find(operand); at != measures.end())
        measure.made = std::max(measure.made, at->second.norm);
}

/// The largest norm among what a result is made of: what rounding is relative to. A factor scales the rounding of what
/// the other one was just made of, by norms that are there: scaled terms scaled again would hide anything.
double PlanVerifier::findTerms(OpResult result) const {
  Operation *op = result.getOwner();
  double terms = 0;
  if (auto accumulate = dyn_cast<dist::AccumulateOp>(op))
    terms = measures.lookup(accumulate.getBody().front().getTerminator()->getOperand(result.getResultNumber())).terms;
  for (Value operand : op->getOperands())
    if (auto at = measures.find(operand); at != measures.end())
      terms = std::max(terms, at->second.terms);
  if (auto mul = dyn_cast<nn::MulOp>(op)) {
    Measure a = measures.lookup(mul.getLhs()), b = measures.lookup(mul.getRhs());
    terms = std::max({terms, a.made * b.largest, b.made * a.largest});
  }
  return terms;
}

FailureOr<TensorList> PlanVerifier::runOneDevice(const TensorList &arguments) {
  references.clear();
  measures.clear();
  for (auto [argument, tensor] : llvm::zip_equal(global.getArguments(), arguments))
    measure(argument, tensor, normOf(tensor));
  int64_t order = 0;
  RunOptions run{options.precision, [&](Operation *op, int64_t, ArrayRef<const Tensor *> results) {
                   tell(op);
                   for (auto [value, tensor] : llvm::zip(op->getResults(), results))
                     measure(value, *tensor, findTerms(value));
                   if (auto update = dyn_cast<nn::OptimizerUpdateOpInterface>(op))
                     measures[op->getResult(0)].allowed.more = cast<ReferenceOpInterface>(op).amplifyError(
                         [&](Value scalar) { return measures.lookup(scalar).first; }, results,
                         measures.lookup(update.getGrad()).allowed.each);
                   auto id = op->getAttrOfType<IntegerAttr>(dist::DistDialect::kIdAttr);
                   if (!id)
                     return;
                   for (auto [number, result] : llvm::enumerate(results)) {
                     Reference &reference = references[id.getInt() + number];
                     reference.op = op;
                     reference.result = number;
                     Reference::Execution &execution = reference.executions.emplace_back();
                     execution.order = order;
                     execution.allowed = measures.lookup(op->getResult(number)).allowed;
                     if (wanted.contains(id.getInt() + number))
                       execution.value = *result;
                   }
                   ++order;
                 }};
  return runGlobal(global, arguments, run);
}

FailureOr<std::vector<TensorList>>
PlanVerifier::runRanks(const std::vector<TensorList> &arguments) {
  partials.clear();
  executions.clear();
  RunOptions run{options.precision,
                 [&](Operation *op, int64_t position, ArrayRef<const Tensor *> results) {
                   tell(op);
                   observeLocal(op, position, results);
                 }};
  auto results = runLocal(local, mesh, arguments, run);
  if (succeeded(results) && !partials.empty() && !invalid)
    refuse(partials.begin()->first.first.first,
           "is a partial value that only some ranks have computed: it cannot be compared");
  return results;
}

/// Which executions of the reference's op one of the local op, its `run`-th, stands for.
FailureOr<SmallVector<size_t>> PlanVerifier::findExecutions(Operation *op, const Reference &reference, int64_t id,
                                                            int64_t run) {
  size_t count = reference.executions.size();
  if (!runsPerMicrobatch(reference.op))
    return SmallVector<size_t>{0};
  IntegerAttr number;
  for (Operation *outer = op; outer && !number; outer = outer->getParentOp())
    number = outer->getAttrOfType<IntegerAttr>(dist::kMicrobatchAttr);
  bool isUnrolled = !number && !runsPerMicrobatch(op);
  if (isUnrolled && op->hasTrait<OpTrait::ConstantLike>())
    return llvm::to_vector(llvm::seq<size_t>(0, count)); // moved in front of all
  size_t iteration = number ? number.getInt() : run;
  if (isUnrolled && count > 1)
    refuse(op, "is a piece of dist.id " + Twine(id) + ", of which each of " + Twine(count) +
                   " micro-batches has its own: it must say whose it is, in " + dist::kMicrobatchAttr);
  else if (iteration < count)
    return SmallVector<size_t>{iteration};
  else if (number)
    refuse(op, "is of micro-batch " + Twine(iteration) + ", of dist.id " + Twine(id) +
                   " the reference has micro-batches: " + Twine(count));
  else
    refuse(op, "runs more often than the reference's op of dist.id " + Twine(id) + ", times: " + Twine(count));
  return failure();
}

void PlanVerifier::observeLocal(Operation *op, int64_t position, ArrayRef<const Tensor *> results) {
  auto globals = op->getAttrOfType<ArrayAttr>(dist::DistDialect::kGlobalsAttr);
  if (!globals || invalid)
    return;
  for (auto [number, result] : llvm::enumerate(results)) {
    auto tag =
        number < globals.size() ? dyn_cast<dist::GlobalAttr>(globals[number]) : dist::GlobalAttr();
    if (!tag)
      continue;
    auto found = references.find(tag.getId());
    if (found == references.end())
      return refuse(op, "is a piece of a value that the reference does not have, dist.id: " +
                            Twine(tag.getId()));
    const Reference &reference = found->second;
    PieceKey::first_type value{op, unsigned(number)};
    int64_t run = executions[{value, position}]++;
    auto iterations = findExecutions(op, reference, tag.getId(), run);
    if (failed(iterations))
      return;
    for (size_t iteration : *iterations)
      observePiece({value, std::max(run, int64_t(iteration))}, tag, position, *result, reference, iteration);
  }
}

/// A piece of what the reference's op made in its `iteration`-th execution.
void PlanVerifier::observePiece(PieceKey key, dist::GlobalAttr tag, int64_t position, const Tensor &result,
                                const Reference &reference, size_t iteration) {
  Operation *op = key.first.first;
  const auto &[order, allowed, whole] = reference.executions[iteration];
  if (whole.type != tag.getType())
    return refuse(op, "does not fit the reference's value of dist.id " + Twine(tag.getId()) + " in its type");
  if (tag.getSharding().getLocalType(tag.getType(), mesh) != result.type)
    return refuse(op, "does not have the shard's type that its dist.globals gives it");

  Mismatch where{order, {op, reference.op, ""}, rankOf(position)};
  std::string what;
  llvm::raw_string_ostream os(what);
  os << reference.op->getName() << " (dist.id " << tag.getId();
  if (reference.op->getNumResults() > 1)
    os << ", result " << reference.result;
  if (runsPerMicrobatch(reference.op))
    os << ", micro-batch " << iteration;
  if (op->getName() != reference.op->getName())
    os << ", here " << op->getName();
  os << ")";
  os.flush();
  llvm::BitVector positions = dist::getPositions(op, mesh);
  compared += position == positions.find_first();
  if (tag.getSharding().getUnreducedAxes().empty())
    return comparePiece(whole, result, tag.getSharding(), position, allowed, where, what);
  Pieces &pieces = partials[key];
  pieces.tensors.resize(mesh.getNumDevices());
  pieces.tensors[position] = result;
  if (++pieces.arrived < int64_t(positions.count()))
    return;
  SmallVector<const Tensor *> pointers;
  for (const Tensor &piece : pieces.tensors)
    pointers.push_back(&piece);
  comparePartial(whole, pointers, tag.getSharding(), allowed, where, what);
  partials.erase(key);
}

/// Single elements against the root mean square of their tensor, and, since many sums are
/// mathematically 0, against the rounding of `terms`, see findTerms().
double PlanVerifier::allow(const Tensor &whole, double terms) const {
  double square = 0;
  int64_t count = 0;
  for (double value : whole.f)
    if (std::isfinite(value)) {
      square += value * value;
      ++count;
    }
  return tolerance * (count ? std::sqrt(square / double(count)) : 0.0) +
         floor * std::max(1.0, terms);
}

// NaN agrees with NaN, infinities with themselves.
bool agree(double got, double expected, double allowed) {
  if (std::isnan(expected) || std::isinf(expected))
    return std::isnan(expected) ? std::isnan(got) : got == expected;
  return std::abs(got - expected) <= allowed;
}

// Visits the elements of a position's shard that are inside the whole tensor:
// (whole index, position in the whole tensor, position in the shard).
template <typename Visit>
void forEachShared(const Tensor &whole, ArrayRef<int64_t> shape, ArrayRef<int64_t> offsets,
                   Visit visit) {
  forEachIndex(shape, [&](ArrayRef<int64_t> index, int64_t k) {
    Index at(index);
    for (size_t d = 0; d < at.size(); ++d)
      if ((at[d] += offsets[d]) >= whole.shape()[d])
        return;
    visit(ArrayRef<int64_t>(at), linearIndex(at, whole.shape()), k);
  });
}

void PlanVerifier::comparePiece(const Tensor &whole, const Tensor &piece,
                                dist::ShardingAttr sharding, int64_t position, const Allowed &allowed,
                                Mismatch where, const Twine &what) {
  bool done = false;
  forEachShared(whole, piece.shape(), shardOffsets(piece.shape(), sharding, mesh, position),
                [&](ArrayRef<int64_t> index, int64_t j, int64_t k) {
                  bool same = whole.isFloat() ? agree(piece.f[k], whole.f[j], allowed.of(j))
                                              : piece.i[k] == whole.i[j];
                  if (done || same)
                    return;
                  done = true;
                  note(where, what, index, "on rank " + Twine(rankOf(position)), piece.at(k),
                       whole.at(j), whole.isFloat());
                });
}

void PlanVerifier::comparePartial(const Tensor &whole, ArrayRef<const Tensor *> pieces,
                                  dist::ShardingAttr sharding, const Allowed &allowed, Mismatch where,
                                  const Twine &what) {
  // Ranks that differ only along the unreduced axes hold terms of one value; all of them, or none.
  std::map<std::vector<int64_t>, SmallVector<int64_t>> groups;
  for (int64_t position = 0; position < int64_t(pieces.size()); ++position) {
    if (!pieces[position]->type)
      continue;
    SmallVector<int64_t> coordinates = mesh.getCoordinates(position);
    for (StringAttr axis : sharding.getUnreducedAxes())
      coordinates[mesh.getAxisIndex(axis)] = 0;
    groups[std::vector<int64_t>(coordinates.begin(), coordinates.end())].push_back(position);
  }
  int64_t terms = mesh.getSize(sharding.getUnreducedAxes());
  for (auto &[coordinates, members] : groups) {
    if (int64_t(members.size()) < terms)
      return refuse(where.difference.local, "is a partial value of " + Twine(terms) + " ranks, of which only " +
                                                Twine(members.size()) + " have it: it cannot be compared");
    Tensor sum = *pieces[members.front()];
    for (int64_t member : ArrayRef<int64_t>(members).drop_front())
      combine(sharding.getUnreducedKind(), sum, *pieces[member]);
    bool done = false;
    forEachShared(whole, sum.shape(), shardOffsets(sum.shape(), sharding, mesh, members.front()),
                  [&](ArrayRef<int64_t> index, int64_t j, int64_t k) {
                    if (done || agree(sum.at(k), whole.at(j), whole.isFloat() ? allowed.of(j) : 0))
                      return;
                    done = true;
                    std::string ranks;
                    for (int64_t member : members)
                      ranks += (ranks.empty() ? "" : ", ") + std::to_string(rankOf(member));
                    note(where, what, index, "over ranks " + Twine(ranks) + " together", sum.at(k),
                         whole.at(j), whole.isFloat());
                  });
  }
}

/// Two values that differ, in as many digits as show it.
static std::pair<std::string, std::string> describeBoth(double a, double b, bool isFloat) {
  auto describe = [&](double value, int digits) {
    std::string text;
    llvm::raw_string_ostream(text) << (isFloat ? llvm::format("%.*g", digits, value) : llvm::format("%.*f", 0, value));
    return text;
  };
  int digits = 9;
  while (digits < std::numeric_limits<double>::max_digits10 && describe(a, digits) == describe(b, digits))
    ++digits;
  return {describe(a, digits), describe(b, digits)};
}

void PlanVerifier::note(Mismatch mismatch, const Twine &what, ArrayRef<int64_t> index,
                        const Twine &rank, double got, double expected, bool isFloat) {
  // The first op in the global order; of its pieces that of the lowest rank.
  bool sameOp = first && first->difference.local == mismatch.difference.local;
  if (first && (mismatch.order > first->order ||
                (mismatch.order == first->order && !(sameOp && mismatch.rank < first->rank))))
    return;
  llvm::raw_string_ostream os(mismatch.difference.message);
  os << "the plan differs from one device first at " << what << ": ";
  os << (index.empty() ? "the value " : "element [");
  llvm::interleaveComma(index, os);
  os << (index.empty() ? "" : "] ");
  // NaN has no sign worth reporting.
  got = std::isnan(got) ? std::abs(got) : got;
  auto [gotText, expectedText] = describeBoth(got, expected, isFloat);
  os << rank << " is " << gotText << ", one device has " << expectedText << " (step " << step << ")";
  os.flush();
  first = std::move(mismatch);
}

/// What the plan's results hold of it against the reference's result `number`.
void PlanVerifier::compareResult(ArrayRef<Holder> holders, const Tensor &whole, unsigned number) {
  const Part &part = holders.front().part;
  Mismatch where{std::numeric_limits<int64_t>::max() / 2 + number, {local, global, ""}, 0};
  std::string name = describeResult(global, number);
  std::string what = "result " + std::to_string(number) + (name.empty() ? "" : " (" + name + ")") + " of the function";
  auto sharding = part.sharding
                      ? part.sharding
                      : dist::ShardingAttr::getReplicated(FlatSymbolRefAttr::get(local.getContext(), "mesh"),
                                                          whole.type.getRank());
  const Allowed allowed = measures.lookup(global.getBody().front().getTerminator()->getOperand(number)).allowed;
  RankedTensorType expected = sharding.getLocalType(whole.type, mesh);
  if (llvm::none_of(holders.front().ranks, [](const Tensor *rank) { return bool(rank->type); }))
    return refuse(local, "gives no rank the " + what);
  if (!part.isInBucket() && !sharding.getUnreducedAxes().empty()) {
    for (const Tensor *rank : holders.front().ranks)
      if (rank->type && expected != rank->type)
        return refuse(local, "gives a " + what + " that is no shard of the reference's");
    return comparePartial(whole, holders.front().ranks, sharding, allowed, where, what);
  }
  for (int64_t position = 0; position < mesh.getNumDevices(); ++position) {
    where.rank = rankOf(position);
    // What only some positions have, these have right.
    if (llvm::any_of(holders, [&](const Holder &holder) { return !holder.ranks[position]->type; }))
      continue;
    Tensor piece = part.isInBucket() ? Tensor(part.inBucket) : *holders.front().ranks[position];
    if (piece.type != expected)
      return refuse(local, "gives a " + what + " that is no shard of the reference's");
    if (part.isInBucket())
      for (const Holder &holder : holders) {
        auto tag = local.getResultAttrOfType<dist::GlobalAttr>(holder.result, dist::DistDialect::kGlobalAttr);
        takeFromBucket(holder.ranks, holder.part, tag ? tag.getSharding() : dist::ShardingAttr(), mesh, position,
                       piece);
      }
    comparePiece(whole, piece, sharding, position, allowed, where, what);
  }
}

void PlanVerifier::compareResults(const TensorList &whole, const std::vector<TensorList> &ranks) {
  std::vector<SmallVector<Holder, 1>> holders(whole.size());
  for (auto [r, numbers] : llvm::enumerate(resultsOf)) {
    SmallVector<const Tensor *> pieces;
    for (const TensorList &rank : ranks)
      pieces.push_back(&rank[r]);
    ArrayRef<Part> parts = localResults[r];
    for (auto [part, number] : llvm::zip_equal(parts, numbers))
      holders[number].push_back({unsigned(r), part, pieces});
    if (!parts.front().isInBucket())
      continue;
    auto tag = local.getResultAttrOfType<dist::GlobalAttr>(r, dist::DistDialect::kGlobalAttr);
    dist::ShardingAttr sharding = tag ? tag.getSharding() : dist::ShardingAttr();
    for (auto [position, piece] : llvm::enumerate(pieces)) {
      if (!piece->type)
        continue;
      if (std::optional<int64_t> at = findFilledPadding(*piece, parts, sharding, mesh, position))
        return refuse(local, "leaves padding of a bucket, result " + Twine(r) + ", that is not zero, at element " +
                                 Twine(*at) + " on rank " + Twine(rankOf(position)));
    }
  }
  for (auto [number, parts] : llvm::enumerate(holders))
    compareResult(parts, whole[number], number);
}

FailureOr<std::vector<TensorList>> PlanVerifier::distributeAll(const TensorList &whole) {
  SmallVector<TensorList> wholes;
  for (ArrayRef<unsigned> parts : argumentsOf) {
    TensorList &list = wholes.emplace_back();
    for (unsigned part : parts)
      list.push_back(whole[part]);
  }
  return distribute(local, mesh, wholes);
}

FailureOr<PlanReport> PlanVerifier::verify() {
  if (failed(matchParts()))
    return failure();
  collectWanted();
  work = estimateWork();
  ArgumentOptions argumentOptions{options.seed, /*perturb=*/true, /*shortBatches=*/true};
  TensorList whole;
  for (unsigned i = 0; i < global.getNumArguments(); ++i) {
    FailureOr<Tensor> value = makeArgument(global, i, 0, argumentOptions);
    if (failed(value))
      return failure();
    whole.push_back(std::move(*value));
  }
  SmallVector<std::optional<unsigned>> updated = nn::updatedArguments(global);

  PlanReport report;
  for (step = 0; step < int64_t(options.steps); ++step) {
    for (unsigned i = 0; step > 0 && i < whole.size(); ++i)
      if (isFreshEachStep(global, i))
        whole[i] = *makeArgument(global, i, step, argumentOptions);
    FailureOr<std::vector<TensorList>> ranks = distributeAll(whole);
    if (failed(ranks))
      return failure();
    compared = 0;
    FailureOr<TensorList> expected = runOneDevice(whole);
    if (failed(expected))
      return failure();
    FailureOr<std::vector<TensorList>> got = runRanks(*ranks);
    if (failed(got))
      return failure();
    compareResults(*expected, *got);
    if (invalid)
      return failure();
    report.comparedValues = compared;
    report.comparedResults = expected->size();
    if (first) {
      report.difference = std::move(first->difference);
      return report;
    }
    for (auto [r, argument] : llvm::enumerate(updated))
      if (argument)
        whole[*argument] = (*expected)[r];
  }
  return report;
}

} // namespace

std::string PlanReport::countsText(const VerifyPlanOptions &options) const {
  return std::to_string(comparedValues) + " values and " + std::to_string(comparedResults) +
         " results compared in each of " + std::to_string(options.steps) + " steps";
}

static SmallVector<func::FuncOp> findFunctions(ModuleOp local, const VerifyPlanOptions &options) {
  SmallVector<func::FuncOp> functions;
  for (auto func : local.getOps<func::FuncOp>())
    if (!func.isExternal() && !func->hasAttr(exec::ExecDialect::kKernelAttr) &&
        (options.function.empty() || func.getName() == options.function))
      functions.push_back(func);
  return functions;
}

/// Without a mesh there is one device: a mesh of no axes.
static dist::MeshAttr findMesh(ModuleOp local) {
  dist::MeshOp mesh = dist::lookupMesh(local);
  return mesh ? mesh.getMesh() : dist::MeshAttr::get(local.getContext(), {}, {});
}

double estimateWork(ModuleOp global, ModuleOp local, const VerifyPlanOptions &options) {
  double work = 0;
  for (func::FuncOp localFunc : findFunctions(local, options))
    if (auto globalFunc = global.lookupSymbol<func::FuncOp>(localFunc.getName()))
      work += PlanVerifier(globalFunc, localFunc, findMesh(local), options).estimateWork();
  return work;
}

FailureOr<PlanReport> verifyPlan(ModuleOp global, ModuleOp local,
                                 const VerifyPlanOptions &options) {
  SmallVector<func::FuncOp> functions = findFunctions(local, options);
  if (functions.empty())
    return emitError(local.getLoc()) << "the plan has no function to compare"
                                     << (options.function.empty() ? "" : ": " + options.function);
  dist::MeshAttr mesh = options.onOneDevice ? dist::MeshAttr::get(local.getContext(), {}, {}) : findMesh(local);
  PlanReport sum;
  for (func::FuncOp localFunc : functions) {
    auto globalFunc = global.lookupSymbol<func::FuncOp>(localFunc.getName());
    if (!globalFunc)
      return emitError(localFunc.getLoc())
             << "the reference has no function of that name: " << localFunc.getName();
    FailureOr<PlanReport> report = PlanVerifier(globalFunc, localFunc, mesh, options).verify();
    if (failed(report))
      return failure();
    sum.comparedValues += report->comparedValues;
    sum.comparedResults += report->comparedResults;
    sum.difference = std::move(report->difference);
    if (sum.difference)
      break;
  }
  return sum;
}

LogicalResult checkPlan(ModuleOp global, ModuleOp local, const VerifyPlanOptions &options,
                        PlanReport *details) {
  FailureOr<PlanReport> report = verifyPlan(global, local, options);
  if (failed(report))
    return failure();
  if (details)
    *details = *report;
  if (!report->difference)
    return success();
  InFlightDiagnostic error = emitError(report->difference->local->getLoc())
                             << report->difference->message;
  error.attachNote(report->difference->global->getLoc()) << "here on one device";
  return error;
}

} // namespace shoal::interp
