// Schedules that are broken by hand, and what is said of each.
#include "TestSupport.h"

namespace shoal::pipe {
namespace {

std::string errorOf(llvm::StringRef text) { return checkError(read(text)); }

// What the others break: two ranks, two micro-batches.
TEST(Check, WholeSchedules) {
  EXPECT_EQ(errorOf("F0 F1 B0 B1\nF0 B0 F1 B1"), "");
  EXPECT_EQ(errorOf("F0 F1 I0 W0 B1 N U\nF0 B0 F1 I1 W1 N U"), "")
      << "a backward pass may be split in one micro-batch only";
  EXPECT_EQ(errorOf("F0 SF0>1 F1 {SF1>1 RB0<1} B0 RB1<1 B1\nRF0<0 F0 B0 {SB0>0 RF1<0} F1 B1 SB1>0"), "");
}

TEST(Check, Completeness) {
  EXPECT_EQ(errorOf("F0 F1 B0 B1\nF0 B0"), "rank 1: F1 is missing");
  EXPECT_EQ(errorOf("F0 F1 B0 B1\nF0 B0 F1"), "rank 1: B1 is missing (or I and W)");
  EXPECT_EQ(errorOf("F0 F1 I0 I1 W1\nF0 B0 F1 B1"),
            "rank 0: W0 is missing: the gradients of micro-batch 0 never reach the sum");
  EXPECT_EQ(errorOf("F0 F1 F1 B0 B1\nF0 B0 F1 B1"), "rank 0: F1 stands twice");
  EXPECT_EQ(errorOf("F0 I0 W0 W0\nF0 B0"), "rank 0: W0 stands twice; its gradients would be summed twice");
  EXPECT_EQ(errorOf("F0 B0 W0\nF0 B0"), "rank 0: W0 is backward once more: either B, or I and W");
}

TEST(Check, ForwardAlone) {
  Schedule schedule = read("F0 F1\nF0 F1");
  EXPECT_EQ(checkError(schedule), "");
  std::optional<Fault> fault = check(schedule, /*hasGradients=*/true);
  ASSERT_TRUE(fault.has_value());
  EXPECT_EQ(fault->message, "rank 0: B0 is missing (or I and W)");
}

TEST(Check, OrderOnARank) {
  EXPECT_EQ(errorOf("B0 F0\nF0 B0"), "rank 0: B0 stands before F0, or that is missing");
  EXPECT_EQ(errorOf("F0 W0 I0\nF0 B0"), "rank 0: W0 stands before I0, or that is missing");
  EXPECT_EQ(errorOf("F0 B0 N\nF0 N B0"), "rank 1: B0 stands behind N, which needs every gradient of the rank");
  EXPECT_EQ(errorOf("F0 U B0\nF0 B0 U"), "rank 0: B0 stands behind U, which needs every gradient of the rank");
  EXPECT_EQ(errorOf("F0 B0 U N\nF0 B0 N U"), "rank 0: N stands behind U, which reads the norm");
  EXPECT_EQ(errorOf("F0 B0 U U\nF0 B0 U"), "rank 0: U stands twice; a step has one");
  EXPECT_EQ(errorOf("F0 B0 N U\nF0 B0 U"), "rank 0: N has no counterpart on rank 1: all ranks exchange the norm");
  EXPECT_EQ(errorOf("F0 B0\nF0 B0 U"), "rank 1: U has no counterpart on rank 0: all ranks update");
}

TEST(Check, WrongRank) { EXPECT_EQ(errorOf("F0 B0 F0@1\nB0"), "rank 0: F0@1 is of stage 1, which lies on rank 1"); }

TEST(Check, CyclesOverRanks) {
  std::optional<Fault> fault = check(read("F0 B0 F1 B1\nF1 F0 B0 B1"));
  ASSERT_TRUE(fault.has_value());
  EXPECT_EQ(fault->message, "the order of actions has a cycle: rank 0: B0 -> rank 1: F1 -> rank 0: B0");
  EXPECT_EQ(fault->notes, (std::vector<std::string>{"rank 0: B0 waits for rank 1: B0, which stands behind F1",
                                                    "rank 1: F1 waits for rank 0: F1, which stands behind B0"}));
  // Over three ranks; rank 3 only waits for those in the circle.
  EXPECT_EQ(errorOf("F0 F1 B0 B1\nF0 F1 B0 B1\nF1 B1 F0 B0\nF0 B0 F1 B1"),
            "the order of actions has a cycle: rank 2: B1 -> rank 3: F0 -> rank 2: B1");
  // Of a rank with itself: the second chunk runs before the first one of the same rank.
  EXPECT_EQ(errorOf("placement = vee\nF0.1 F0 B0.1 B0"),
            "the order of actions has a cycle: rank 0: F0.1 -> rank 0: F0.1");
}

TEST(Check, BothSendThenReceive) {
  std::optional<Fault> fault = check(read("F0 SF0>1 F1 SF1>1 RB0<1 B0 RB1<1 B1\nRF0<0 F0 B0 SB0>0 RF1<0 F1 B1 SB1>0"));
  ASSERT_TRUE(fault.has_value());
  EXPECT_EQ(fault->message,
            "the ranks wait for each other in a circle: rank 0: SF1>1 -> rank 1: SB0>0 -> rank 0: SF1>1");
  EXPECT_EQ(fault->notes, (std::vector<std::string>{"rank 0: SF1>1 waits for rank 1, which is at SB0>0",
                                                    "rank 1: SB0>0 waits for rank 0, which is at SF1>1"}));
}

TEST(Check, GroupsWaitForTheMessageThatIsNotThere) {
  // SF0 of the group has met its end, RB0 waits.
  EXPECT_EQ(errorOf("F0 F1 {SF0>1 RB0<1} B0 SF1>1 RB1<1 B1\nRF0<0 F0 RF1<0 B0 SB0>0 F1 B1 SB1>0"),
            "the ranks wait for each other in a circle: rank 0: RB0<1 -> rank 1: RF1<0 -> rank 0: RB0<1");
}

TEST(Check, MessagesWithoutTheirOtherEnd) {
  EXPECT_EQ(errorOf("F0 RB0<1 B0\nRF0<0 F0 B0 SB0>0"), "rank 1: RF0<0 has no counterpart: rank 0 never sends it");
  EXPECT_EQ(errorOf("F0 SF0>1 RB0<1 B0\nF0 B0 SB0>0"),
            "rank 1: F0 reads what the rank has not received: RF must stand before it (a file without any S and R gets "
            "all of them)");
  EXPECT_EQ(errorOf("F0 SF0>1 RB0<1 B0\nRF0<0 F0 B0"), "rank 0: RB0<1 has no counterpart: rank 1 never sends it");
  EXPECT_EQ(errorOf("F0 SF0>1 SF0>1 RB0<1 B0\nRF0<0 F0 B0 SB0>0"), "rank 0: SF0>1 stands twice");
  EXPECT_EQ(errorOf("SF0>1 F0 RB0<1 B0\nRF0<0 F0 B0 SB0>0"), "rank 0: SF0>1 stands before what makes it");
  EXPECT_EQ(errorOf("F0 SF0>2 RB0<1 B0\nRF0<0 F0 SF0>2 RB0<2 B0 SB0>0\nRF0<1 F0 B0 SB0>1"),
            "rank 0: SF0>2 must name rank 1, which has stage 1");
  EXPECT_EQ(errorOf("placement = vee\nF0 SF0>1 RF0.1<1 F0.1 B0.1 SB0.1>1 RB0<1 B0\n"
                    "RF0<0 F0 SF0>0 F0.1 SF0.1>0 RB0.1<0 B0.1 B0 SB0>0"),
            "rank 1: SF0>0 is of two stages of one rank: there is nothing to send");
}

TEST(Check, MessagesInAnotherOrder) {
  EXPECT_EQ(errorOf("F0 SF0>1 F1 SF1>1 {RB1<1 RB0<1} B0 B1\nRF0<0 F0 RF1<0 F1 B0 {SB0>0 SB1>0} B1"),
            "rank 1: SB1>0 stands before what makes it");
  EXPECT_EQ(
      errorOf("F0 SF0>1 F1 SF1>1 {RB1<1 RB0<1} B0 B1\nRF0<0 F0 RF1<0 F1 B0 B1 {SB0>0 SB1>0}"),
      "rank 1: SB0>0 meets rank 0: RB1<1, which is another message: both are number 0 of those from rank 1 to rank "
      "0, and messages arrive in the order in which they are sent");
}

TEST(Check, Stash) {
  EXPECT_EQ(errorOf("peak = 1 1\nF0 F1 B0 B1\nF0 B0 F1 B1"),
            "rank 0: F1 is the stash of 2 micro-batches at once, above the stated peak of 1");
  EXPECT_EQ(errorOf("peak = 2 1\nF0 F1 B0 B1\nF0 B0 F1 B1"), "");
  EXPECT_EQ(errorOf("peak = 1\nF0 I0 F1 W0 I1 W1"),
            "rank 0: F1 is the stash of 2 micro-batches at once, above the stated peak of 1")
      << "until W";
}

TEST(Check, SchedulesThatNoFileHolds) {
  Schedule schedule = make("1f1b", 2, 2);
  schedule.ranks[1][0].microbatch = 7;
  EXPECT_EQ(checkError(schedule), "rank 1: F7 must be of one of 2 stages and 2 micro-batches");
  schedule = make("1f1b", 2, 2);
  schedule.ranks.pop_back();
  EXPECT_EQ(checkError(schedule), "the schedule needs a list per rank (2), got: 1");
  schedule = make("1f1b", 2, 2);
  schedule.peak.pop_back();
  EXPECT_EQ(checkError(schedule), "the peak needs one number per rank (2), got: 1");
  schedule = make("1f1b", 2, 2);
  schedule.shape.chunks = 0;
  EXPECT_EQ(checkError(schedule), "a schedule needs at least 1 of chunks, got: 0");
}

// Whatever one action is lost, doubled or moved to: the schedule still runs, or is refused with a line. What is lost
// or doubled never runs.
TEST(Check, EveryBrokenScheduleIsRefused) {
  for (llvm::StringRef name : getScheduleNames()) {
    Schedule whole = make(name, 3, 6, getDefaultChunks(name), {Optimizer::NormAndUpdate, {}});
    ASSERT_TRUE(addMessages(whole, Costs::uniform(whole.shape)));
    ASSERT_EQ(checkError(whole), "");
    for (size_t rank = 0; rank < 3; ++rank)
      for (size_t index = 0; index < whole.ranks[rank].size(); ++index) {
        SCOPED_TRACE(name.str() + " " + format(whole.ranks[rank][index], whole.shape, rank));
        Schedule lost = whole;
        lost.ranks[rank].erase(lost.ranks[rank].begin() + index);
        EXPECT_NE(checkError(lost), "");
        Schedule doubled = whole;
        doubled.ranks[rank].insert(doubled.ranks[rank].begin() + index, whole.ranks[rank][index]);
        EXPECT_NE(checkError(doubled), "");
        for (size_t to = 0; to < whole.ranks[rank].size(); ++to) {
          Schedule moved = whole;
          std::vector<Action> &actions = moved.ranks[rank];
          std::swap(actions[index], actions[to]);
          if (std::string error = checkError(moved); error.empty())
            EXPECT_TRUE(simulate(moved, Costs::uniform(moved.shape)).has_value()) << to;
          else
            EXPECT_EQ(error.find('\n'), std::string::npos);
        }
      }
  }
}

} // namespace
} // namespace shoal::pipe
