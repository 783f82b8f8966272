// Uniform-cost search over the layouts of a tensor; see ReshardPlan.h.
#include "ReshardPlan.h"

#include "shoal-rt/traffic.h"

#include "llvm/ADT/STLExtras.h"

#include <map>
#include <queue>
#include <vector>

using namespace llvm;

namespace shoal::dist {

using Kind = ReshardStep::Kind;

bool Layout::shards(unsigned axis) const {
  return any_of(dims, [&](const Axes &axes) { return is_contained(axes, axis); });
}

bool Layout::uses(unsigned axis) const { return is_contained(unreduced, axis) || shards(axis); }

int64_t groupSize(ArrayRef<unsigned> axes, ArrayRef<int64_t> axisSizes) {
  int64_t size = 1;
  for (unsigned axis : axes)
    size *= axisSizes[axis];
  return size;
}

SmallVector<int64_t> localShape(ArrayRef<int64_t> shape, ArrayRef<int64_t> axisSizes,
                                const Layout &layout) {
  SmallVector<int64_t> local;
  for (auto [size, axes] : zip_equal(shape, layout.dims))
    local.push_back(shardSize(size, groupSize(axes, axisSizes)));
  return local;
}

bool shardsNest(int64_t size, int64_t outer, int64_t inner) {
  return outer == 1 || inner == 1 ||
         shardSize(size, outer) == inner * shardSize(size, outer * inner);
}

namespace {

/// A layout's identity as a key of ordered maps.
std::vector<unsigned> encode(const Layout &layout) {
  std::vector<unsigned> key;
  for (const Axes &axes : layout.dims) {
    key.insert(key.end(), axes.begin(), axes.end());
    key.push_back(~0u);
  }
  key.insert(key.end(), layout.unreduced.begin(), layout.unreduced.end());
  return key;
}

/// Up to so many axes every order of them is tried.
constexpr size_t kOrderedAxes = 3;

/// The moves that lead from one layout to others, with what they cost.
struct Search {
  ArrayRef<int64_t> shape;
  int64_t elementBytes;
  ArrayRef<int64_t> axisSizes;
  const Layout &from, &to;
  /// Axes that a plan may touch: those of either end.
  Axes relevant;

  std::vector<ReshardStep> moves;

  int64_t devices(ArrayRef<unsigned> axes) const { return groupSize(axes, axisSizes); }

  int64_t sent(rt::Opcode op, int64_t ranks, int64_t elements) const {
    return rt::sentBytes(op, ranks, /*position=*/0, /*root=*/0, elements, elementBytes);
  }

  static ReshardStep make(Kind kind, ArrayRef<unsigned> axes, int64_t dim = -1) {
    ReshardStep step;
    step.kind = kind;
    step.axes = Axes(axes);
    step.dim = dim;
    return step;
  }

  void add(ReshardStep step) {
    step.shape = localShape(shape, axisSizes, step.layout);
    moves.push_back(std::move(step));
  }

  /// Every ordered selection of `pool`, short ones first. They grow as a factorial: of more than
  /// `kOrderedAxes` axes only each alone, all in mesh order, and those of `wanted`, in its order.
  void sequences(ArrayRef<unsigned> pool, ArrayRef<unsigned> wanted,
                 function_ref<void(ArrayRef<unsigned>)> visit) const {
    if (pool.size() > kOrderedAxes) {
      for (unsigned axis : pool)
        visit(axis);
      Axes sorted(pool), some;
      sort(sorted);
      for (unsigned axis : wanted)
        if (is_contained(pool, axis))
          some.push_back(axis);
      if (some.size() > 1)
        visit(some);
      if (some != sorted)
        visit(sorted);
      return;
    }
    std::vector<Axes> level{Axes()};
    for (size_t length = 1; length <= pool.size(); ++length) {
      std::vector<Axes> next;
      for (const Axes &prefix : level)
        for (unsigned axis : pool)
          if (!is_contained(prefix, axis)) {
            next.push_back(prefix);
            next.back().push_back(axis);
            visit(next.back());
          }
      level = std::move(next);
    }
  }

  /// Whether `inner` can be taken off or put on the minor end of `outer` on a dimension.
  bool nests(size_t dim, ArrayRef<unsigned> outer, ArrayRef<unsigned> inner) const {
    return shardsNest(shape[dim], devices(outer), devices(inner));
  }

  void addSlice(const Layout &at, size_t dim, ArrayRef<unsigned> axes) {
    ReshardStep step = make(Kind::AllSlice, axes, dim);
    step.layout = at;
    step.layout.dims[dim].append(axes.begin(), axes.end());
    add(std::move(step));
  }

  /// Where slices alone lead to the end no other move can be cheaper, and only they are added.
  bool addLastSlices(const Layout &at) {
    if (at.unreduced != to.unreduced)
      return false;
    for (size_t dim = 0; dim < shape.size(); ++dim) {
      ArrayRef<unsigned> has = at.dims[dim], wants = to.dims[dim];
      if (wants.size() < has.size() || wants.take_front(has.size()) != has ||
          !nests(dim, has, wants.drop_front(has.size())))
        return false;
    }
    for (size_t dim = 0; dim < shape.size(); ++dim)
      if (at.dims[dim].size() < to.dims[dim].size())
        addSlice(at, dim, ArrayRef(to.dims[dim]).drop_front(at.dims[dim].size()));
    return true;
  }

  void addSlices(const Layout &at) {
    Axes unused;
    for (unsigned axis : relevant)
      if (!at.uses(axis))
        unused.push_back(axis);
    for (size_t dim = 0; dim < shape.size(); ++dim)
      sequences(unused, to.dims[dim], [&](ArrayRef<unsigned> axes) {
        if (nests(dim, at.dims[dim], axes))
          addSlice(at, dim, axes);
      });
  }

  void addGathers(const Layout &at) {
    SmallVector<int64_t> local = localShape(shape, axisSizes, at);
    int64_t elements = product(local);
    for (size_t dim = 0; dim < shape.size(); ++dim)
      for (size_t keep = 0; keep < at.dims[dim].size(); ++keep) {
        ArrayRef<unsigned> outer = ArrayRef(at.dims[dim]).take_front(keep);
        ArrayRef<unsigned> inner = ArrayRef(at.dims[dim]).drop_front(keep);
        if (!nests(dim, outer, inner))
          continue;
        ReshardStep step = make(Kind::AllGather, inner, dim);
        step.layout = at;
        step.layout.dims[dim] = Axes(outer);
        int64_t ranks = devices(inner);
        step.sentBytes = sent(rt::Opcode::AllGather, ranks, ranks * elements);
        add(std::move(step));
      }
  }

  void addExchanges(const Layout &at) {
    for (size_t concat = 0; concat < shape.size(); ++concat)
      for (size_t keep = 0; keep < at.dims[concat].size(); ++keep)
        for (size_t split = 0; split < shape.size(); ++split) {
          ArrayRef<unsigned> outer = ArrayRef(at.dims[concat]).take_front(keep);
          ArrayRef<unsigned> moved = ArrayRef(at.dims[concat]).drop_front(keep);
          if (split == concat || !nests(concat, outer, moved) ||
              !nests(split, at.dims[split], moved))
            continue;
          ReshardStep step = make(Kind::AllToAll, moved, split);
          step.concat = concat;
          step.layout = at;
          step.layout.dims[concat] = Axes(outer);
          step.layout.dims[split].append(moved.begin(), moved.end());
          // What is exchanged: the input, its split dimension padded to equal parts.
          SmallVector<int64_t> buffer = localShape(shape, axisSizes, at);
          int64_t ranks = devices(moved);
          buffer[split] = ranks * shardSize(buffer[split], ranks);
          step.sentBytes = sent(rt::Opcode::AllToAll, ranks, product(buffer));
          add(std::move(step));
        }
  }

  void addReductions(const Layout &at) {
    Axes reducible;
    for (unsigned axis : at.unreduced)
      if (!is_contained(to.unreduced, axis))
        reducible.push_back(axis);
    SmallVector<int64_t> local = localShape(shape, axisSizes, at);
    auto restOf = [&](ArrayRef<unsigned> axes) {
      Axes rest;
      for (unsigned axis : at.unreduced)
        if (!is_contained(axes, axis))
          rest.push_back(axis);
      return rest;
    };
    sequences(reducible, {}, [&](ArrayRef<unsigned> axes) {
      if (!is_sorted(axes))
        return;
      ReshardStep step = make(Kind::AllReduce, axes);
      step.layout = at;
      step.layout.unreduced = restOf(axes);
      step.sentBytes = sent(rt::Opcode::AllReduce, devices(axes), product(local));
      add(std::move(step));
    });
    for (size_t dim = 0; dim < shape.size(); ++dim)
      sequences(reducible, to.dims[dim], [&](ArrayRef<unsigned> axes) {
        if (!nests(dim, at.dims[dim], axes))
          return;
        ReshardStep step = make(Kind::ReduceScatter, axes, dim);
        step.layout = at;
        step.layout.unreduced = restOf(axes);
        step.layout.dims[dim].append(axes.begin(), axes.end());
        SmallVector<int64_t> result = localShape(shape, axisSizes, step.layout);
        int64_t ranks = devices(axes);
        step.sentBytes = sent(rt::Opcode::ReduceScatter, ranks, ranks * product(result));
        add(std::move(step));
      });
  }

  /// Devices exchange whole shards: another order of a dimension's axes, or the wanted layout when
  /// its shards have the same shape.
  void addPermutes(const Layout &at) {
    for (size_t dim = 0; dim < shape.size(); ++dim)
      sequences(at.dims[dim], to.dims[dim], [&](ArrayRef<unsigned> axes) {
        if (axes.size() != at.dims[dim].size() || axes == ArrayRef(at.dims[dim]))
          return;
        Layout next = at;
        next.dims[dim] = Axes(axes);
        addPermute(at, next);
      });
    if (at.unreduced == to.unreduced && at != to &&
        all_of(zip_equal(at.dims, to.dims),
               [&](auto pair) { return devices(std::get<0>(pair)) == devices(std::get<1>(pair)); }))
      addPermute(at, to);
  }

  void addPermute(const Layout &at, const Layout &next) {
    ReshardStep step = make(Kind::Permute, {});
    // The group: axes that either layout shards by, in mesh order.
    for (unsigned axis : relevant)
      if (!is_contained(at.unreduced, axis) && (at.uses(axis) || next.uses(axis)))
        step.axes.push_back(axis);
    step.layout = next;
    step.sentBytes = sent(rt::Opcode::Permute, 2, product(localShape(shape, axisSizes, at)));
    add(std::move(step));
  }

  /// The pairs of a permute that a plan takes; most that the search looks at are not taken.
  void pairPermute(const Layout &at, ReshardStep &step) const {
    const Layout &next = step.layout;
    int64_t count = devices(step.axes);
    auto blockOf = [&](const Layout &layout, int64_t position) {
      SmallVector<int64_t> coordinate(axisSizes.size(), 0);
      for (unsigned axis : reverse(step.axes)) {
        coordinate[axis] = position % axisSizes[axis];
        position /= axisSizes[axis];
      }
      int64_t block = 0;
      for (const Axes &axes : layout.dims)
        for (unsigned axis : axes)
          block = block * axisSizes[axis] + coordinate[axis];
      return block;
    };
    // Both layouts have equally many blocks, so each block has as many holders as seekers. A
    // device that holds what it wants sends it to itself: who receives nothing gets zeros.
    std::vector<SmallVector<int64_t>> holders(count), seekers(count);
    SmallVector<std::pair<int64_t, int64_t>> pairs;
    for (int64_t position = 0; position < count; ++position) {
      int64_t has = blockOf(at, position), wants = blockOf(next, position);
      if (has == wants) {
        pairs.push_back({position, position});
        continue;
      }
      holders[has].push_back(position);
      seekers[wants].push_back(position);
    }
    for (auto [block, sources] : enumerate(holders))
      for (auto [source, target] : zip_equal(sources, seekers[block]))
        pairs.push_back({source, target});
    sort(pairs);
    for (auto [source, target] : pairs) {
      step.sources.push_back(source);
      step.targets.push_back(target);
    }
  }

  static int64_t product(ArrayRef<int64_t> shape) {
    int64_t elements = 1;
    for (int64_t size : shape)
      elements *= size;
    return elements;
  }
};

/// What the search minimises: bytes times the devices of the mesh, without rounding an all-reduce
/// up to equal chunks. Rounded, a scalar would seem cheaper to reduce axis by axis than at once.
/// A double is exact up to 2^53, and passes what 63 bits hold.
double exactCost(const ReshardStep &step, int64_t elementBytes, ArrayRef<int64_t> axisSizes) {
  double devices = 1;
  for (int64_t size : axisSizes)
    devices *= size;
  if (step.kind != Kind::AllReduce)
    return double(step.sentBytes) * devices;
  double ranks = double(groupSize(step.axes, axisSizes));
  return 2 * (ranks - 1) * (devices / ranks) * double(Search::product(step.shape) * elementBytes);
}

struct Node {
  Layout layout;
  double cost;
  unsigned depth;
  int parent; // index into the nodes, -1 at the start
  ReshardStep step;
};

} // namespace

std::optional<ReshardPlan> planReshard(ArrayRef<int64_t> shape, int64_t elementBytes,
                                       ArrayRef<int64_t> axisSizes, const Layout &from,
                                       const Layout &to) {
  if (!to.unreduced.empty() && from.kind != to.kind)
    return std::nullopt;
  for (unsigned axis : to.unreduced)
    if (!is_contained(from.unreduced, axis))
      return std::nullopt;

  Search search{shape, elementBytes, axisSizes, from, to, {}, {}};
  for (unsigned axis = 0; axis < axisSizes.size(); ++axis)
    if (from.uses(axis) || to.uses(axis))
      search.relevant.push_back(axis);

  std::vector<Node> nodes;
  nodes.push_back({from, 0, 0, -1, {}});
  // (cost, steps, order of discovery)
  using Entry = std::tuple<double, unsigned, int>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<Entry>> queue;
  queue.push({0, 0, 0});
  std::map<std::vector<unsigned>, std::pair<double, unsigned>> best;
  best[encode(from)] = {0, 0};
  while (!queue.empty()) {
    auto [cost, depth, index] = queue.top();
    queue.pop();
    Layout at = nodes[index].layout;
    if (best[encode(at)] != std::make_pair(cost, depth))
      continue;
    if (at == to) {
      ReshardPlan plan;
      for (int i = index; nodes[i].parent >= 0; i = nodes[i].parent) {
        plan.sentBytes += nodes[i].step.sentBytes;
        plan.steps.push_back(nodes[i].step);
        if (plan.steps.back().kind == Kind::Permute)
          search.pairPermute(nodes[nodes[i].parent].layout, plan.steps.back());
      }
      std::reverse(plan.steps.begin(), plan.steps.end());
      return plan;
    }
    search.moves.clear();
    if (!search.addLastSlices(at)) {
      search.addReductions(at);
      search.addSlices(at);
      search.addExchanges(at);
      search.addGathers(at);
      search.addPermutes(at);
    }
    for (ReshardStep &step : search.moves) {
      std::pair<double, unsigned> reached{cost + exactCost(step, elementBytes, axisSizes),
                                           depth + 1};
      auto [it, isNew] = best.try_emplace(encode(step.layout), reached);
      if (!isNew && it->second <= reached)
        continue;
      it->second = reached;
      Layout next = step.layout;
      nodes.push_back({std::move(next), reached.first, reached.second, index, std::move(step)});
      queue.push({reached.first, reached.second, int(nodes.size()) - 1});
    }
  }
  return std::nullopt;
}

} // namespace shoal::dist
