// Orders of the generators: equal, op for op, to the orders that PyTorch's torch.distributed.pipelining generates,
// and over all small shapes complete, without deadlock and within their peak.
#include "TestSupport.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <algorithm>

namespace shoal::pipe {
namespace {

struct Published {
  const char *name;
  int64_t chunks;
  std::vector<std::string> ranks; // lower case: the rank's second chunk
};

// Orders that PyTorch's torch.distributed.pipelining generates for 4 ranks and 8 micro-batches.
const Published kPublished[] = {
    {"gpipe",
     1,
     {"F0F1F2F3F4F5F6F7B0B1B2B3B4B5B6B7", "F0F1F2F3F4F5F6F7B0B1B2B3B4B5B6B7", "F0F1F2F3F4F5F6F7B0B1B2B3B4B5B6B7",
      "F0F1F2F3F4F5F6F7B0B1B2B3B4B5B6B7"}},
    {"1f1b",
     1,
     {"F0F1F2F3B0F4B1F5B2F6B3F7B4B5B6B7", "F0F1F2B0F3B1F4B2F5B3F6B4F7B5B6B7", "F0F1B0F2B1F3B2F4B3F5B4F6B5F7B6B7",
      "F0B0F1B1F2B2F3B3F4B4F5B5F6B6F7B7"}},
    {"interleaved",
     2,
     {"F0F1F2F3f0f1f2f3F4F5F6b0F7b1f4b2f5b3f6B0f7B1B2B3b4b5b6b7B4B5B6B7",
      "F0F1F2F3f0f1f2f3F4b0F5b1F6b2F7b3f4B0f5B1f6B2f7B3b4b5b6b7B4B5B6B7",
      "F0F1F2F3f0f1f2b0f3b1F4b2F5b3F6B0F7B1f4B2f5B3f6b4f7b5b6b7B4B5B6B7",
      "F0F1F2F3f0b0f1b1f2b2f3b3F4B0F5B1F6B2F7B3f4b4f5b5f6b6f7b7B4B5B6B7"}},
    {"zb-h1",
     1,
     {"F0F1F2F3I0W0F4I1W1F5I2W2F6I3W3F7I4W4I5W5I6W6I7W7", "F0F1F2I0F3I1W0F4I2W1F5I3W2F6I4W3F7I5W4I6W5I7W6W7",
      "F0F1I0F2I1F3I2W0F4I3W1F5I4W2F6I5W3F7I6W4I7W5W6W7", "F0I0F1I1F2I2F3I3W0F4I4W1F5I5W2F6I6W3F7I7W4W5W6W7"}},
};

TEST(Generate, OrdersAreThePublishedOnes) {
  for (const Published &published : kPublished) {
    SCOPED_TRACE(published.name);
    Schedule schedule = make(published.name, 4, 8, published.chunks);
    EXPECT_EQ(schedule.ranks, read(llvm::join(published.ranks, "\n")).ranks);
  }
}

// Whoever wrote the order, the step says what follows it.
TEST(Generate, OptimizerIsTheSteps) {
  auto complete = [](llvm::StringRef text, Optimizer optimizer) {
    Schedule schedule = read(text);
    std::optional<Fault> fault = setOptimizer(schedule, optimizer);
    return fault ? std::to_string(fault->rank) + ": " + fault->message : writeRank(schedule, 1);
  };
  const char *bare = "F0 B0\nF0 B0", *update = "F0 B0 U\nF0 B0 U", *norm = "F0 B0 N\nF0 B0 N";
  EXPECT_EQ(complete(bare, Optimizer::None), "F0 B0");
  EXPECT_EQ(complete(bare, Optimizer::Update), "F0 B0 U");
  EXPECT_EQ(complete(bare, Optimizer::NormAndUpdate), "F0 B0 N U");
  EXPECT_EQ(complete(update, Optimizer::NormAndUpdate), "F0 B0 N U");
  EXPECT_EQ(complete(norm, Optimizer::NormAndUpdate), "F0 B0 N U");
  EXPECT_EQ(complete("F0 B0 N U\nF0 B0 N U", Optimizer::NormAndUpdate), "F0 B0 N U");
  EXPECT_EQ(
      complete("F0 B0\nF0 B0 N", Optimizer::Update),
      "1: rank 1: N is the exchange of the gradients' norm, for which no update of this step waits; leave it out, or "
      "clip by the norm (--clip-grad-norm)");
  EXPECT_EQ(complete(update, Optimizer::None), "0: rank 0: U is an update, which this step has not; leave it out");
  // One that only some ranks have is not made up for.
  Schedule lacking = read("F0 B0 U\nF0 B0");
  EXPECT_FALSE(setOptimizer(lacking, Optimizer::Update));
  EXPECT_EQ(checkError(lacking), "rank 0: U has no counterpart on rank 1: all ranks update");
}

// Figures of "Zero Bubble Pipeline Parallelism" and of "Pipeline Parallelism with Controllable Memory" for 4 ranks:
// forwards before the first backward, and stashes that all ranks have alike.
TEST(Generate, ZeroBubbleWarmups) {
  auto leading = [](const std::vector<Action> &actions) {
    return llvm::find_if(actions, [](const Action &it) { return it.kind != ActionKind::Forward; }) - actions.begin();
  };
  Schedule h2 = make("zb-h2", 4, 8), vee = make("zb-v", 4, 8, 2);
  for (int64_t rank = 0; rank < 4; ++rank) {
    EXPECT_EQ(leading(h2.ranks[rank]), 7 - 2 * rank);
    EXPECT_EQ(leading(vee.ranks[rank]), 8);
    EXPECT_EQ(vee.shape.getStage(rank, 1), 7 - rank);
  }
  EXPECT_EQ(h2.peak, std::vector<int64_t>(4, 7));
  EXPECT_EQ(vee.peak, std::vector<int64_t>(4, 8));
}

TEST(Generate, AllSmallShapes) {
  int64_t made = 0, refused = 0;
  for (llvm::StringRef name : getScheduleNames())
    for (int64_t ranks = 1; ranks <= 8; ++ranks)
      for (int64_t microbatches = 1; microbatches <= 16; ++microbatches)
        for (int64_t chunks = 1; chunks <= 3; ++chunks)
          for (Optimizer optimizer : {Optimizer::None, Optimizer::NormAndUpdate}) {
            SCOPED_TRACE(name.str() + " P=" + std::to_string(ranks) + " M=" + std::to_string(microbatches) +
                         " v=" + std::to_string(chunks));
            std::string error;
            std::optional<Schedule> schedule = generate(name, {ranks, microbatches, chunks}, {optimizer, {}}, error);
            if (!schedule) {
              ++refused;
              EXPECT_NE(error, "");
              EXPECT_NE(error.find("got: "), std::string::npos) << error;
              continue;
            }
            ++made;
            EXPECT_EQ(checkError(*schedule), "");
            EXPECT_EQ(measurePeak(*schedule), schedule->peak) << "a peak is stated as it is";
            Costs costs = Costs::uniform(schedule->shape);
            ASSERT_TRUE(simulate(*schedule, costs).has_value());
            ASSERT_TRUE(addMessages(*schedule, costs));
            EXPECT_EQ(checkError(*schedule), "") << "with messages";
            for (int64_t rank = 0; rank < ranks; ++rank)
              EXPECT_EQ(schedule->ranks[rank].back().kind == ActionKind::Update, optimizer != Optimizer::None);
          }
  // Five schedules take one chunk, zb-v takes two, interleaved all but where rounds would not be equal.
  int64_t uneven = 0;
  for (int64_t ranks = 1; ranks <= 8; ++ranks)
    for (int64_t microbatches = 1; microbatches <= 16; ++microbatches)
      uneven += microbatches % std::max<int64_t>(1, microbatches / ranks) != 0;
  EXPECT_GT(uneven, 0);
  EXPECT_EQ(made, 2 * (6 * 8 * 16 + 3 * (8 * 16 - uneven)));
  EXPECT_EQ(made + refused, 2 * 7 * 8 * 16 * 3);
}

TEST(Generate, RefusalsHaveRuleValueAndNextStep) {
  auto refuse = [](llvm::StringRef name, int64_t ranks, int64_t microbatches, int64_t chunks) {
    std::string error;
    EXPECT_FALSE(generate(name, {ranks, microbatches, chunks}, {}, error).has_value());
    return error;
  };
  EXPECT_EQ(refuse("gpipe", 4, 8, 2), "gpipe takes 1 chunk per rank, got: 2; interleaved takes any number, zb-v 2");
  EXPECT_EQ(refuse("zb-v", 4, 8, 3), "zb-v takes 2 chunks per rank, got: 3; interleaved takes any number");
  EXPECT_EQ(refuse("interleaved", 4, 13, 2),
            "interleaved works in max(1, M / P) rounds of equally many micro-batches: M must be divisible by 3 with 4 "
            "ranks, got: 13 micro-batches; take 12, or 1f1b");
  EXPECT_EQ(refuse("1f1b", 0, 8, 1), "a schedule needs at least 1 of ranks, got: 0");
  EXPECT_EQ(refuse("1f1b", 4, -1, 1), "a schedule needs at least 1 of micro-batches, got: -1");
  EXPECT_EQ(refuse("1f1b", int64_t(1) << 40, int64_t(1) << 40, 1),
            "ranks times chunks times micro-batches must be at most 4194304, got: 1099511627776 x 1 x 1099511627776");
  EXPECT_EQ(refuse("zb", 4, 8, 1),
            "schedule must be one of naive, gpipe, 1f1b, interleaved, zb-h1, zb-h2, zb-v, got: zb");
  std::string error;
  EXPECT_FALSE(generate("1f1b", {4, 8, 1}, {Optimizer::None, Costs{{StageCosts{}}}}, error).has_value());
  EXPECT_EQ(error, "costs must be of each stage (4), got: 1");
}

// The largest schedule that is promised in a second.
TEST(Generate, LargeSchedulesAreSound) {
  Schedule schedule = make("interleaved", 64, 512, 4, {Optimizer::NormAndUpdate, {}});
  EXPECT_EQ(checkError(schedule), "");
  ASSERT_TRUE(addMessages(schedule, Costs::uniform(schedule.shape)));
  EXPECT_EQ(checkError(schedule), "");
}

} // namespace
} // namespace shoal::pipe
