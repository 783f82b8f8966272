// Schedules that adapt to costs: never longer than the published order, never above its stash, and shorter where
// passes differ.
#include "Generate.h"
#include "TestSupport.h"

#include <algorithm>
#include <random>

namespace shoal::pipe {
namespace {

double longestSpan(const Schedule &schedule, const Costs &costs) {
  std::optional<Timeline> timeline = simulate(schedule, costs);
  EXPECT_TRUE(timeline.has_value());
  double longest = 0;
  for (const RankTimeline &rank : timeline->ranks)
    longest = std::max(longest, rank.getEnd() - rank.getBegin());
  return longest;
}

Costs randomCosts(std::mt19937 &random, const Shape &shape) {
  std::uniform_int_distribution<int> number(1, 8);
  Costs costs = Costs::uniform(shape);
  for (StageCosts &stage : costs.stages) {
    stage.forward = number(random);
    stage.backwardInput = number(random);
    stage.backwardWeight = number(random);
    stage.backward = stage.backwardInput + stage.backwardWeight;
  }
  costs.transfer = number(random) / 4.0;
  return costs;
}

TEST(ListSchedule, RunsWithinItsLimit) {
  std::mt19937 random(1);
  for (int64_t chunks : {1, 2})
    for (int64_t ranks = 1; ranks <= 6; ++ranks)
      for (int64_t microbatches : {1, 2, 5, 12}) {
        Shape shape{ranks, microbatches, chunks, chunks == 2 ? Placement::Vee : Placement::Loop};
        int64_t limit = 2 * ranks;
        for (bool forwardFirst : {false, true})
          for (double patience : {0.0, 1.0}) {
            auto schedule = listSchedule(shape, randomCosts(random, shape), limit, {forwardFirst, patience});
            ASSERT_TRUE(schedule.has_value()) << ranks << " " << microbatches << " " << chunks;
            EXPECT_EQ(checkError(*schedule), "");
            for (int64_t peak : measurePeak(*schedule))
              EXPECT_LE(peak, limit);
          }
      }
}

TEST(ListSchedule, CostsMakeTheOrderNoLonger) {
  std::mt19937 random(2);
  int shorter = 0;
  for (int i = 0; i < 40; ++i)
    for (auto [name, chunks] : {std::pair("zb-h2", 1), {"zb-v", 2}}) {
      Schedule published = make(name, 4, 12, chunks);
      Costs costs = randomCosts(random, published.shape);
      Schedule adapted = make(name, 4, 12, chunks, {Optimizer::None, costs});
      double before = longestSpan(published, costs), after = longestSpan(adapted, costs);
      EXPECT_LE(after, before * (1 + 1e-9));
      shorter += after < before * 0.99;
      EXPECT_EQ(checkError(adapted), "");
      for (int64_t peak : adapted.peak)
        EXPECT_LE(peak, chunks == 1 ? 7 : 8);
    }
  EXPECT_GT(shorter, 10) << "of 80: published orders leave little where one stage is slow";
}

} // namespace
} // namespace shoal::pipe
