// Messages that are derived from dependencies.
#include "TestSupport.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <random>

namespace shoal::pipe {
namespace {

TEST(Messages, Of1F1B) {
  Schedule schedule = make("1f1b", 2, 2, 1, {Optimizer::Update, {}});
  ASSERT_TRUE(addMessages(schedule, Costs::uniform(schedule.shape)));
  EXPECT_EQ(writeRank(schedule, 0), "F0 SF0>1 F1 {SF1>1 RB0<1} B0 RB1<1 B1 U");
  EXPECT_EQ(writeRank(schedule, 1), "RF0<0 F0 RF1<0 B0 SB0>0 F1 B1 SB1>0 U");
}

TEST(Messages, TurnOfTheVeeIsLocal) {
  Schedule schedule = make("zb-v", 2, 3, 2);
  ASSERT_TRUE(addMessages(schedule, Costs::uniform(schedule.shape)));
  int64_t sends = 0;
  for (const auto &actions : schedule.ranks)
    sends += llvm::count_if(actions, [](const Action &it) { return it.kind == ActionKind::Send; });
  EXPECT_EQ(sends, 2 * 3 * (2 * 2 - 2));
}

TEST(Messages, AreReplaced) {
  Schedule schedule = make("1f1b", 3, 4);
  ASSERT_TRUE(addMessages(schedule, Costs::uniform(schedule.shape)));
  Schedule again = schedule;
  ASSERT_TRUE(addMessages(again, Costs::uniform(schedule.shape)));
  EXPECT_EQ(again, schedule);
}

TEST(Messages, NotOfACycle) {
  Schedule schedule = read("F0 B0 F1 B1\nF1 F0 B0 B1");
  EXPECT_FALSE(addMessages(schedule, Costs::uniform(schedule.shape)));
}

// Any order that dependencies allow, however odd, is free of deadlocks with these messages, also where actions take
// no time.
TEST(Messages, OfRandomOrders) {
  std::mt19937 random(3);
  for (int round = 0; round < 300; ++round) {
    auto pick = [&](int64_t most) { return std::uniform_int_distribution<int64_t>(1, most)(random); };
    Shape shape{pick(5), pick(6), pick(3), round % 2 ? Placement::Vee : Placement::Loop};
    // A random linear order of all computations that dependencies allow.
    Schedule schedule{shape, std::vector<std::vector<Action>>(shape.ranks), {}};
    std::vector<std::pair<int64_t, int64_t>> open; // stage of the way there and back, micro-batch
    for (int64_t microbatch = 0; microbatch < shape.microbatches; ++microbatch)
      open.push_back({0, microbatch});
    int64_t stages = shape.getStages();
    while (!open.empty()) {
      size_t index = pick(open.size()) - 1;
      auto &[place, microbatch] = open[index];
      int64_t stage = place < stages ? place : 2 * stages - 1 - place;
      schedule.ranks[shape.getRank(stage)].push_back(
          Action::compute(place < stages ? ActionKind::Forward : ActionKind::Backward, stage, microbatch));
      if (++place == 2 * stages)
        open.erase(open.begin() + index);
    }
    ASSERT_EQ(checkError(schedule), "");
    Costs costs = Costs::uniform(shape, durations(pick(3) - 1, pick(3) - 1, pick(3) - 1));
    costs.transfer = pick(3) - 1;
    Schedule bare = schedule;
    ASSERT_TRUE(addMessages(schedule, costs));
    EXPECT_EQ(checkError(schedule), "");
    EXPECT_NEAR(simulate(schedule, costs)->getMakespan(), simulate(bare, costs)->getMakespan(), 1e-9)
        << "messages stand where they cost nothing";
  }
}

} // namespace
} // namespace shoal::pipe
