// Plans are checked by doing them: every device's shard is held as numbers, each step is carried
// out as its collective is defined, and the outcome must be what the wanted layout says, padding
// aside. Costs are checked against the formulas of rings written out.
#include "ReshardPlan.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <random>

using namespace shoal;
using namespace shoal::dist;
using Kind = ReshardStep::Kind;

namespace {

using Shape = llvm::SmallVector<int64_t>;
constexpr double kPadding = std::numeric_limits<double>::quiet_NaN();

int64_t count(const Shape &shape) {
  int64_t elements = 1;
  for (int64_t size : shape)
    elements *= size;
  return elements;
}

/// Calls `visit` with every index of the shape, in row-major order.
void forEachIndex(const Shape &shape, const std::function<void(const Shape &)> &visit) {
  for (int64_t k = 0; k < count(shape); ++k) {
    Shape index(shape.size());
    int64_t left = k;
    for (size_t d = shape.size(); d-- > 0;) {
      index[d] = left % shape[d];
      left /= shape[d];
    }
    visit(index);
  }
}

struct Tensor {
  Shape shape;
  std::vector<double> values;
  explicit Tensor(Shape shape) : shape(shape), values(count(shape), kPadding) {}
  int64_t at(const Shape &index) const {
    int64_t k = 0;
    for (size_t d = 0; d < shape.size(); ++d)
      k = k * shape[d] + index[d];
    return k;
  }
  double get(const Shape &index) const { return values[at(index)]; }
  void set(const Shape &index, double value) { values[at(index)] = value; }
};

/// All devices of a mesh, and the collectives between them by their definitions.
struct Devices {
  Shape sizes;

  int64_t number() const { return count(sizes); }
  Shape coordinates(int64_t device) const {
    Shape at(sizes.size());
    for (size_t a = sizes.size(); a-- > 0;) {
      at[a] = device % sizes[a];
      device /= sizes[a];
    }
    return at;
  }
  int64_t along(const Shape &coordinates, const Axes &axes) const {
    int64_t index = 0;
    for (unsigned axis : axes)
      index = index * sizes[axis] + coordinates[axis];
    return index;
  }
  /// The devices that share all coordinates but those of `axes`, by position along them.
  std::vector<int64_t> group(int64_t device, const Axes &axes) const {
    std::vector<int64_t> members(groupSize(axes, sizes));
    Shape mine = coordinates(device);
    for (int64_t other = 0; other < number(); ++other) {
      Shape theirs = coordinates(other);
      bool same = true;
      for (unsigned a = 0; a < sizes.size(); ++a)
        same &= llvm::is_contained(axes, a) || mine[a] == theirs[a];
      if (same)
        members[along(theirs, axes)] = other;
    }
    return members;
  }

  static double valueOf(const Shape &index) {
    double value = 1;
    for (int64_t i : index)
      value = value * 31 + i;
    return value;
  }

  /// What each device holds of the tensor in a layout. Partial values add up to the whole.
  std::vector<Tensor> lay(const Shape &shape, const Layout &layout) const {
    std::vector<Tensor> shards;
    for (int64_t device = 0; device < number(); ++device) {
      Shape at = coordinates(device);
      Tensor shard(localShape(shape, sizes, layout));
      forEachIndex(shard.shape, [&](const Shape &index) {
        Shape global = index;
        for (size_t d = 0; d < shape.size(); ++d) {
          global[d] += along(at, layout.dims[d]) * shard.shape[d];
          if (global[d] >= shape[d])
            return;
        }
        double value = valueOf(global);
        int64_t parts = groupSize(layout.unreduced, sizes);
        int64_t position = along(at, layout.unreduced);
        // The first holds the rest, so that every part differs.
        if (parts > 1)
          value = position ? position : value - parts * (parts - 1) / 2.0;
        shard.set(index, value);
      });
      shards.push_back(std::move(shard));
    }
    return shards;
  }

  std::vector<Tensor> apply(const std::vector<Tensor> &in, const ReshardStep &step) const {
    std::vector<Tensor> out;
    for (int64_t device = 0; device < number(); ++device) {
      Tensor result(step.shape);
      std::vector<int64_t> members = group(device, step.axes);
      int64_t mine = along(coordinates(device), step.axes);
      auto reduced = [&](const Shape &index) {
        double sum = 0;
        for (int64_t member : members)
          sum += in[member].get(index);
        return sum;
      };
      switch (step.kind) {
      case Kind::AllSlice:
      case Kind::ReduceScatter:
        forEachIndex(result.shape, [&](const Shape &index) {
          Shape from = index;
          from[step.dim] += mine * result.shape[step.dim];
          if (from[step.dim] < in[device].shape[step.dim])
            result.set(index, step.kind == Kind::AllSlice ? in[device].get(from) : reduced(from));
        });
        break;
      case Kind::AllGather:
        forEachIndex(result.shape, [&](const Shape &index) {
          Shape from = index;
          int64_t part = in[device].shape[step.dim];
          from[step.dim] = index[step.dim] % part;
          result.set(index, in[members[index[step.dim] / part]].get(from));
        });
        break;
      case Kind::AllToAll:
        forEachIndex(result.shape, [&](const Shape &index) {
          Shape from = index;
          int64_t part = in[device].shape[step.concat];
          from[step.concat] = index[step.concat] % part;
          from[step.dim] += mine * result.shape[step.dim];
          if (from[step.dim] < in[device].shape[step.dim])
            result.set(index, in[members[index[step.concat] / part]].get(from));
        });
        break;
      case Kind::AllReduce:
        forEachIndex(result.shape, [&](const Shape &index) { result.set(index, reduced(index)); });
        break;
      case Kind::Permute:
        for (auto [source, target] : llvm::zip(step.sources, step.targets))
          if (target == mine)
            result = in[members[source]];
        break;
      }
      out.push_back(std::move(result));
    }
    return out;
  }

  /// Does the plan, and compares what is no padding.
  void check(const Shape &shape, const Layout &from, const Layout &to,
             const ReshardPlan &plan) const {
    std::vector<Tensor> now = lay(shape, from), wanted = lay(shape, to);
    int64_t sent = 0;
    for (const ReshardStep &step : plan.steps) {
      now = apply(now, step);
      sent += step.sentBytes;
      ASSERT_EQ(step.shape, localShape(shape, sizes, step.layout));
    }
    EXPECT_EQ(sent, plan.sentBytes);
    ASSERT_TRUE(plan.steps.empty() ? from == to : plan.steps.back().layout == to);
    if (!to.unreduced.empty())
      return; // parts differ from those that `lay` makes, their sum is checked where reduced
    for (int64_t device = 0; device < number(); ++device)
      for (size_t k = 0; k < wanted[device].values.size(); ++k) {
        double want = wanted[device].values[k], got = now[device].values[k];
        if (!std::isnan(want))
          ASSERT_EQ(got, want) << "device " << device << ", element " << k;
      }
  }
};

Layout layout(std::initializer_list<Axes> dims, Axes unreduced = {}) {
  Layout result;
  result.dims.append(dims.begin(), dims.end());
  result.unreduced = unreduced;
  return result;
}

/// The plan between two layouts, done and checked.
ReshardPlan planned(const Shape &sizes, const Shape &shape, const Layout &from, const Layout &to) {
  auto plan = planReshard(shape, 4, sizes, from, to);
  EXPECT_TRUE(plan.has_value());
  Devices{sizes}.check(shape, from, to, *plan);
  return *plan;
}

std::vector<Kind> kinds(const ReshardPlan &plan) {
  std::vector<Kind> list;
  for (const ReshardStep &step : plan.steps)
    list.push_back(step.kind);
  return list;
}

TEST(ReshardPlan, EqualLayoutsNeedNothing) {
  EXPECT_TRUE(planned({2, 2}, {8, 8}, layout({{0}, {1}}), layout({{0}, {1}})).steps.empty());
}

TEST(ReshardPlan, SlicingIsFree) {
  ReshardPlan plan = planned({2, 3}, {8, 7}, layout({{}, {}}), layout({{0}, {1}}));
  EXPECT_EQ(kinds(plan), (std::vector{Kind::AllSlice, Kind::AllSlice}));
  EXPECT_EQ(plan.sentBytes, 0);
}

TEST(ReshardPlan, GatherSendsAllOtherShards) {
  ReshardPlan plan = planned({4}, {8, 3}, layout({{0}, {}}), layout({{}, {}}));
  EXPECT_EQ(kinds(plan), std::vector{Kind::AllGather});
  EXPECT_EQ(plan.sentBytes, 3 * 2 * 3 * 4);
}

TEST(ReshardPlan, MinorAxisIsGatheredAlone) {
  ReshardPlan plan = planned({2, 2}, {8}, layout({{0, 1}}), layout({{0}}));
  EXPECT_EQ(kinds(plan), std::vector{Kind::AllGather});
  EXPECT_EQ(plan.steps[0].axes, Axes({1}));
}

// 5 elements over 2 x 2 devices lie as 2 + 2 + 1 + 0, over 2 as 3 + 2: not by gathering pairs.
TEST(ReshardPlan, PaddedShardsOfTwoAxesAreGatheredTogether) {
  ReshardPlan plan = planned({2, 2}, {5}, layout({{0, 1}}), layout({{0}}));
  EXPECT_EQ(kinds(plan), (std::vector{Kind::AllGather, Kind::AllSlice}));
  EXPECT_EQ(plan.steps[0].axes, Axes({0, 1}));
  EXPECT_FALSE(shardsNest(5, 2, 2));
  EXPECT_TRUE(shardsNest(7, 2, 2));
}

TEST(ReshardPlan, MoreDevicesThanElements) {
  planned({8}, {3}, layout({{0}}), layout({{}}));
  planned({8}, {3}, layout({{}}), layout({{0}}));
  planned({2, 4}, {3}, layout({{0, 1}}), layout({{1, 0}}));
}

TEST(ReshardPlan, DimensionsExchangeByAllToAll) {
  ReshardPlan plan = planned({4}, {8, 6}, layout({{0}, {}}), layout({{}, {0}}));
  EXPECT_EQ(kinds(plan), std::vector{Kind::AllToAll});
  // This device's buffer is 2 x 6, its split dimension padded to 8; 3 of 4 chunks leave.
  EXPECT_EQ(plan.sentBytes, 3 * (2 * 8 / 4) * 4);
}

TEST(ReshardPlan, AxisOrderIsALayout) {
  ReshardPlan plan = planned({2, 3}, {12, 2}, layout({{0, 1}, {}}), layout({{1, 0}, {}}));
  EXPECT_EQ(kinds(plan), std::vector{Kind::Permute});
  EXPECT_EQ(plan.sentBytes, 2 * 2 * 4);
  planned({2, 3}, {11, 2}, layout({{0, 1}, {}}), layout({{1, 0}, {}}));
}

TEST(ReshardPlan, EqualShardsChangePlacesByPermute) {
  EXPECT_EQ(kinds(planned({2, 2}, {8, 8}, layout({{0}, {1}}), layout({{1}, {0}}))),
            std::vector{Kind::Permute});
  EXPECT_EQ(kinds(planned({2, 2}, {8}, layout({{0}}), layout({{1}}))), std::vector{Kind::Permute});
}

TEST(ReshardPlan, PartialToShardedIsReduceScatter) {
  ReshardPlan plan = planned({4}, {7, 2}, layout({{}, {}}, {0}), layout({{0}, {}}));
  EXPECT_EQ(kinds(plan), std::vector{Kind::ReduceScatter});
  EXPECT_EQ(plan.sentBytes, 3 * 2 * 2 * 4);
}

TEST(ReshardPlan, PartialToWholeIsAllReduce) {
  ReshardPlan plan = planned({4}, {10}, layout({{}}, {0}), layout({{}}));
  EXPECT_EQ(kinds(plan), std::vector{Kind::AllReduce});
  EXPECT_EQ(plan.sentBytes, 2 * 3 * 3 * 4); // 10 elements round up to 4 chunks of 3
  EXPECT_EQ(kinds(planned({2, 2}, {}, layout({}, {0, 1}), layout({}))),
            std::vector{Kind::AllReduce});
}

TEST(ReshardPlan, ShardBeforeReducing) {
  ReshardPlan plan = planned({2, 2}, {8}, layout({{}}, {0}), layout({{1}}));
  EXPECT_EQ(kinds(plan), (std::vector{Kind::AllSlice, Kind::AllReduce}));
}

TEST(ReshardPlan, WholeCannotBecomePartial) {
  EXPECT_FALSE(planReshard({8}, 4, {2}, layout({{}}), layout({{}}, {0})).has_value());
  Layout sum = layout({{}}, {0}), max = sum;
  max.kind = ReduceKind::Max;
  EXPECT_FALSE(planReshard({8}, 4, {2}, sum, max).has_value());
}

// Bytes of all devices of the largest tensors on the largest meshes pass 63 bits.
TEST(ReshardPlan, LargestIsPlannedAsSmaller) {
  const Shape mesh = {1024, 900};
  const std::vector<std::pair<Layout, Layout>> ways = {
      {layout({{}, {}}, {0, 1}), layout({{}, {}})},   {layout({{}, {}}, {0, 1}), layout({{0}, {}})},
      {layout({{}, {}}, {0, 1}), layout({{0, 1}, {}})}, {layout({{0, 1}, {}}), layout({{}, {}})},
      {layout({{0}, {1}}), layout({{}, {0}})},         {layout({{0}, {}}, {1}), layout({{}, {}})}};
  for (const auto &[from, to] : ways) {
    auto small = planReshard({921600, 1 << 4}, 8, mesh, from, to);
    auto large = planReshard({921600, 1 << 20}, 8, mesh, from, to);
    ASSERT_TRUE(small && large);
    ASSERT_EQ(kinds(*large), kinds(*small));
    for (auto [a, b] : llvm::zip_equal(large->steps, small->steps))
      EXPECT_EQ(a.axes, b.axes);
  }
}

TEST(ReshardPlan, SameInEveryRun) {
  Layout from = layout({{0}, {1}}, {2}), to = layout({{1, 2}, {}});
  ReshardPlan first = planned({2, 2, 2}, {8, 8}, from, to);
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(kinds(planned({2, 2, 2}, {8, 8}, from, to)), kinds(first));
}

/// Plans between any two layouts of any shape on meshes of so many axes, sizes that do not divide
/// included.
void planRandomLayouts(int rounds, int64_t fewestAxes, int64_t mostAxes) {
  std::mt19937 random(7);
  auto upTo = [&](int64_t n) { return int64_t(random() % (n + 1)); };
  for (int round = 0; round < rounds; ++round) {
    Shape sizes, shape;
    for (int64_t a = 0, n = fewestAxes + upTo(mostAxes - fewestAxes); a < n; ++a)
      sizes.push_back(2 + (n > 3 ? 0 : upTo(a ? 1 : 2)));
    for (int64_t d = 0, n = 1 + upTo(2); d < n; ++d)
      shape.push_back(1 + upTo(12));
    auto make = [&](const Axes &mayBePartial) {
      Layout result;
      result.dims.resize(shape.size());
      Axes axes;
      for (unsigned a = 0; a < sizes.size(); ++a)
        axes.push_back(a);
      std::shuffle(axes.begin(), axes.end(), random);
      for (unsigned axis : axes) {
        if (llvm::is_contained(mayBePartial, axis) && upTo(2) == 0)
          result.unreduced.push_back(axis);
        else if (upTo(3) != 0)
          result.dims[upTo(shape.size() - 1)].push_back(axis);
      }
      llvm::sort(result.unreduced);
      return result;
    };
    Axes all;
    for (unsigned a = 0; a < sizes.size(); ++a)
      all.push_back(a);
    Layout from = make(all), to = make({});
    SCOPED_TRACE(round);
    planned(sizes, shape, from, to);
    if (testing::Test::HasFatalFailure())
      return;
  }
}

TEST(ReshardPlan, RandomLayouts) { planRandomLayouts(1500, 1, 3); }

// More axes than all orders of can be tried.
TEST(ReshardPlan, RandomLayoutsOnManyAxes) { planRandomLayouts(60, 4, 6); }

TEST(ReshardPlan, SixAxesInReverse) {
  Shape sizes(6, 2);
  ReshardPlan plan =
      planned(sizes, {64, 64}, layout({{0, 1, 2, 3, 4, 5}, {}}), layout({{}, {5, 4, 3, 2, 1, 0}}));
  EXPECT_LE(plan.steps.size(), 2u);
}

} // namespace
