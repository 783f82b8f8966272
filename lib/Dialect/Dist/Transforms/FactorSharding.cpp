// Projects layouts to factors, resolves them, and projects back; see FactorSharding.h.
#include "FactorSharding.h"

#include "llvm/ADT/STLExtras.h"

#include <numeric>

using namespace llvm;

namespace shoal::dist {

bool OpSharding::shards(const ShardingRule &rule, FactorKind kind) const {
  return any_of(zip_equal(rule.factors, factors), [&](auto pair) {
    return std::get<0>(pair).kind == kind && !std::get<1>(pair).empty();
  });
}

double OpSharding::localWork(const ShardingRule &rule, ArrayRef<int64_t> axisSizes) const {
  double work = 1; // products of factors that no tensor has together leave 64 bits
  for (auto [factor, axes] : zip_equal(rule.factors, factors)) {
    // All shards of what passes from device to device are computed with.
    int64_t shards = factor.kind == FactorKind::Permutation ? 1 : groupSize(axes, axisSizes);
    work *= double(shardSize(factor.size, shards));
  }
  return work;
}

namespace {

class Resolver {
public:
  Resolver(const ShardingRule &rule, ArrayRef<int64_t> axisSizes)
      : rule(rule), axisSizes(axisSizes), axesOf(rule.factors.size()),
        isDecided(rule.factors.size(), false), users(axisSizes.size()) {}

  /// Takes the axes of a tensor's dimensions over to its factors, as far as they are free.
  void adopt(const TensorFactors &tensor, const Layout &layout) {
    for (auto [dim, axes] : zip_equal(tensor, layout.dims)) {
      // Factors of size 1 hold nothing to shard, unless the dimension has no other.
      SmallVector<unsigned> factors = nontrivial(dim);
      ArrayRef<unsigned> left = axes;
      for (auto [i, factor] : enumerate(factors)) {
        bool isOnly = factors.size() == 1;
        int64_t parts = 1;
        size_t taken = 0;
        while (taken < left.size()) {
          int64_t more = parts * axisSizes[left[taken]];
          if (!isOnly && rule.factors[factor].size % more != 0)
            break;
          parts = more;
          ++taken;
        }
        propose(factor, left.take_front(taken));
        left = left.drop_front(taken);
        // Axes go on to the next factor only when this one is down to single elements.
        if (parts != rule.factors[factor].size)
          break;
      }
    }
  }

  /// No one else may shard the factors of this tensor.
  void decide(const TensorFactors &tensor) {
    for (ArrayRef<unsigned> dim : tensor)
      for (unsigned factor : dim)
        isDecided[factor] = true;
  }

  /// Makes every tensor's dimensions expressible: of several factors the minor one is sharded only
  /// under a major one that is down to single elements, and sizes divide. What passes from device to device is sharded
  /// as what it passes by.
  void legalize() {
    for (auto [lead, passing] : rule.aligned)
      if (axesOf[passing] != axesOf[lead])
        clear(passing);
    for (auto [lead, passing, shards] : rule.reordered)
      if (axesOf[passing] != axesOf[lead] || groupSize(axesOf[passing], axisSizes) != shards)
        clear(passing);
    bool changed = true;
    while (changed) {
      changed = false;
      for (ArrayRef<TensorFactors> tensors : {ArrayRef(rule.operands), ArrayRef(rule.results)})
        for (const TensorFactors &tensor : tensors)
          for (ArrayRef<unsigned> dim : tensor)
            changed |= legalize(dim);
    }
  }

  Layout project(const TensorFactors &tensor) const {
    Layout layout;
    for (ArrayRef<unsigned> dim : tensor) {
      Axes &axes = layout.dims.emplace_back();
      for (unsigned factor : dim)
        axes.append(axesOf[factor].begin(), axesOf[factor].end());
    }
    return layout;
  }

  bool uses(unsigned axis) const { return !users[axis].empty(); }
  ArrayRef<Axes> getAxes() const { return axesOf; }

private:
  SmallVector<unsigned> nontrivial(ArrayRef<unsigned> dim) const {
    SmallVector<unsigned> factors;
    for (unsigned factor : dim)
      if (rule.factors[factor].size != 1)
        factors.push_back(factor);
    if (factors.empty() && !dim.empty())
      factors.push_back(dim.front());
    return factors;
  }

  void propose(unsigned factor, ArrayRef<unsigned> axes) {
    if (isDecided[factor] || rule.factors[factor].kind == FactorKind::NeedReplication)
      return;
    Axes &have = axesOf[factor];
    if (axes.size() <= have.size() || axes.take_front(have.size()) != ArrayRef(have))
      return;
    for (unsigned axis : axes.drop_front(have.size())) {
      if (!all_of(users[axis], [&](unsigned other) { return areAligned(factor, other); }))
        break;
      users[axis].push_back(factor);
      have.push_back(axis);
    }
  }

  /// Whether the same axes may shard both.
  bool areAligned(unsigned a, unsigned b) const {
    auto isPair = [&](auto pair) {
      return (pair.lead == a && pair.passing == b) || (pair.lead == b && pair.passing == a);
    };
    return any_of(rule.aligned, isPair) || any_of(rule.reordered, isPair);
  }

  bool legalize(ArrayRef<unsigned> dim) {
    if (dim.size() < 2)
      return false;
    SmallVector<unsigned> factors = nontrivial(dim);
    bool changed = false, majorIsSingle = true;
    for (unsigned factor : dim)
      if (rule.factors[factor].size == 1 && !is_contained(factors, factor))
        changed |= clear(factor);
    for (unsigned factor : factors) {
      int64_t size = rule.factors[factor].size;
      Axes &axes = axesOf[factor];
      while (!axes.empty() && (!majorIsSingle || size % groupSize(axes, axisSizes) != 0)) {
        release(factor, axes.pop_back_val());
        changed = true;
      }
      majorIsSingle &= groupSize(axes, axisSizes) == size;
    }
    return changed;
  }

  bool clear(unsigned factor) {
    bool changed = !axesOf[factor].empty();
    for (unsigned axis : axesOf[factor])
      release(factor, axis);
    axesOf[factor].clear();
    return changed;
  }

  void release(unsigned factor, unsigned axis) { erase(users[axis], factor); }

  const ShardingRule &rule;
  ArrayRef<int64_t> axisSizes;
  SmallVector<Axes> axesOf;
  SmallVector<bool> isDecided;
  SmallVector<SmallVector<unsigned, 2>> users; // of each axis, the factors that it shards
};

/// The operands that may stay partial with `kind` and make a partial result, given those that are
/// partial: a group in which the op is linear, the others being reduced first. Empty: none may.
SmallVector<unsigned, 2> linearPart(const ShardingRule &rule, ArrayRef<unsigned> partial, ReduceKind kind) {
  SmallVector<unsigned, 2> part;
  if (rule.movesOnly) {
    // Scalars beside what is moved, as the offset of a shard, say where.
    auto isMoved = [&](unsigned operand) { return !rule.operands[operand].empty() || rule.operands.size() == 1; };
    if (all_of(seq<unsigned>(0, rule.operands.size()),
               [&](unsigned operand) { return !isMoved(operand) || is_contained(partial, operand); }))
      part.assign(partial.begin(), partial.end());
    return part;
  }
  if (kind != rule.linearKind)
    return part;
  for (const auto &group : rule.linear)
    if (all_of(group, [&](unsigned operand) { return is_contained(partial, operand); }) &&
        group.size() > part.size())
      part.assign(group.begin(), group.end());
  return part;
}

} // namespace

OpSharding shardOp(const ShardingRule &rule, ArrayRef<int64_t> axisSizes,
                   ArrayRef<const Layout *> operands, ArrayRef<int64_t> operandBytes,
                   ArrayRef<const Layout *> results, Lead lead, bool keepPartial) {
  Resolver resolver(rule, axisSizes);
  auto adoptResults = [&] {
    for (auto [tensor, layout] : zip_equal(rule.results, results))
      if (layout)
        resolver.adopt(tensor, *layout);
  };
  if (lead == Lead::Results) {
    adoptResults();
    for (auto [tensor, layout] : zip_equal(rule.results, results))
      if (layout)
        resolver.decide(tensor);
  }
  // Where operands disagree, the largest one stays where it is.
  SmallVector<unsigned> order(operands.size());
  std::iota(order.begin(), order.end(), 0);
  stable_sort(order, [&](unsigned a, unsigned b) { return operandBytes[a] > operandBytes[b]; });
  for (unsigned i : order)
    resolver.adopt(rule.operands[i], *operands[i]);
  if (lead == Lead::Operands)
    adoptResults();
  resolver.legalize();

  OpSharding sharding;
  sharding.factors.assign(resolver.getAxes().begin(), resolver.getAxes().end());
  for (const TensorFactors &tensor : rule.operands)
    sharding.operands.push_back(resolver.project(tensor));
  Layout partial;
  for (auto [factor, axes] : zip_equal(rule.factors, resolver.getAxes()))
    if (factor.kind == FactorKind::Reduction && !axes.empty()) {
      partial.unreduced.append(axes.begin(), axes.end());
      partial.kind = factor.reduce;
    }
  for (unsigned axis = 0; keepPartial && axis < axisSizes.size(); ++axis) {
    SmallVector<unsigned, 2> holders;
    std::optional<ReduceKind> kind;
    bool kindsAgree = true;
    for (auto [i, layout] : enumerate(operands))
      if (is_contained(layout->unreduced, axis)) {
        holders.push_back(i);
        kindsAgree &= !kind || *kind == layout->kind;
        kind = layout->kind;
      }
    if (holders.empty() || !kindsAgree || resolver.uses(axis) ||
        (!partial.unreduced.empty() && partial.kind != *kind))
      continue;
    SmallVector<unsigned, 2> kept = linearPart(rule, holders, *kind);
    if (kept.empty())
      continue;
    for (unsigned i : kept) {
      sharding.operands[i].unreduced.push_back(axis);
      sharding.operands[i].kind = *kind;
    }
    partial.unreduced.push_back(axis);
    partial.kind = *kind;
  }
  sort(partial.unreduced);
  for (const TensorFactors &tensor : rule.results) {
    Layout &layout = sharding.results.emplace_back(resolver.project(tensor));
    layout.kind = partial.kind;
    // A result that has the reduced factor is no sum over its axes.
    for (unsigned axis : partial.unreduced)
      if (!layout.uses(axis))
        layout.unreduced.push_back(axis);
  }
  return sharding;
}

} // namespace shoal::dist
