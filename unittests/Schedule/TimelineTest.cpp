// Simulated times with transfers and updates, and the files of a timeline.
#include "TestSupport.h"

#include "shoal/Report/TimelinePage.h"

#include "shoal-rt/timeline_page.h"

#include <nlohmann/json.hpp>

namespace shoal::pipe {
namespace {

TEST(Simulate, TransfersRunBesideComputations) {
  Schedule schedule = read("F0 F1 B0 B1\nF0 B0 F1 B1");
  Costs costs = Costs::uniform(schedule.shape);
  costs.transfer = 0.5;
  Timeline timeline = *simulate(schedule, costs);
  const RankTimeline &first = timeline.ranks[0], &second = timeline.ranks[1];
  EXPECT_EQ(first.spans[1], (Span{ActionKind::Forward, 0, 1, 1, 2})) << "does not wait for its send";
  EXPECT_EQ(second.spans[0], (Span{ActionKind::Forward, 1, 0, 1.5, 2.5}));
  EXPECT_EQ(second.spans[1], (Span{ActionKind::Backward, 1, 0, 2.5, 4.5}));
  EXPECT_EQ(first.spans[2], (Span{ActionKind::Backward, 0, 0, 5, 7}));
  EXPECT_EQ(first.getIdle(), 3 + 1);
  EXPECT_EQ(timeline.transfers.size(), 4u);
}

TEST(Simulate, MessagesOfAChannelFollowEachOther) {
  Schedule schedule = read("F0 F1 B0 B1\nF0 F1 B0 B1");
  Costs costs = Costs::uniform(schedule.shape);
  costs.transfer = 3;
  Timeline timeline = *simulate(schedule, costs);
  EXPECT_EQ(timeline.ranks[1].spans[0].begin, 4);
  EXPECT_EQ(timeline.ranks[1].spans[1].begin, 7) << "the second message starts at 4, when the first has ended";
}

TEST(Simulate, BytesTakeTime) {
  Schedule schedule = read("F0 B0\nF0 B0");
  Costs costs = Costs::uniform(schedule.shape);
  costs.transfer = 1;
  costs.transferByte = 0.5;
  costs.stages[0].messageBytes = 4;
  Timeline same = *simulate(schedule, costs);
  EXPECT_EQ(same.ranks[1].spans[0].begin, 1 + 1 + 2);
  EXPECT_EQ(same.ranks[0].spans[1].begin, 4 + 1 + 2 + 3) << "cotangents are as large as activations";
  costs.stages[0].cotangentBytes = 2;
  Timeline fewer = *simulate(schedule, costs);
  EXPECT_EQ(fewer.ranks[0].spans[1].begin, 4 + 1 + 2 + 2);
  EXPECT_EQ(fewer.getTransferBytes(), 4 + 2);
}

TEST(Simulate, SendsStartWhereTheyStand) {
  Costs costs = Costs::uniform({2, 2, 1});
  Schedule late = read("F0 F1 SF0 SF1 RB0 B0 RB1 B1\nRF0 F0 RF1 B0 SB0 F1 B1 SB1");
  ASSERT_EQ(checkError(late), "");
  EXPECT_EQ(simulate(late, costs)->ranks[1].spans[0].begin, 2);
  EXPECT_EQ(simulate(read("F0 F1 B0 B1\nF0 B0 F1 B1"), costs)->ranks[1].spans[0].begin, 1);
}

TEST(Simulate, UpdateWaitsForTheNorm) {
  Costs costs = Costs::uniform({2, 2, 1});
  costs.norm = 0.25;
  costs.update = 0.5;
  Timeline waits = *simulate(read("F0 F1 B0 B1 N U\nF0 B0 F1 B1 N U"), costs);
  EXPECT_EQ(waits.ranks[0].spans[4], (Span{ActionKind::Norm, -1, -1, 9, 9.25}));
  EXPECT_EQ(waits.ranks[1].spans[4], (Span{ActionKind::Norm, -1, -1, 9, 9.25})) << "its last backward ends at 7";
  EXPECT_EQ(waits.ranks[1].getEnd(), 9.75);
  EXPECT_EQ(waits.ranks[1].busy, 6.5) << "to wait is idle";
  Timeline free = *simulate(read("F0 F1 B0 B1 U\nF0 B0 F1 B1 U"), costs);
  EXPECT_EQ(free.ranks[1].getEnd(), 7.5);
}

TEST(TimelinePage, TellsWhatRanksWaitForTheNorm) {
  Schedule schedule = read("F0 F1 B0 B1 N U\nF0 B0 F1 B1 N U");
  rt::Timeline waits = report::toTimeline(*simulate(schedule, Costs::uniform(schedule.shape)));
  EXPECT_EQ(waits.ranks[0].normWait(), 0.0);
  EXPECT_EQ(waits.ranks[1].normWait(), 2.0) << "its last backward ends at 7, that of rank 0 at 9";
  EXPECT_EQ(rt::toReport(waits)["ranks"][1]["norm_wait"], 2.0);
  EXPECT_NE(rt::writeTimelinePage(waits).find("waits for the norm"), std::string::npos);
  Schedule alone = read("F0 B0 U");
  rt::Timeline none = report::toTimeline(*simulate(alone, Costs::uniform(alone.shape)));
  EXPECT_EQ(none.ranks[0].normWait(), std::nullopt);
  EXPECT_EQ(rt::writeTimelinePage(none).find("waits for the norm"), std::string::npos);
}

TEST(Scope, IsReadAsWritten) {
  Action send{ActionKind::Send, true, false, 5, 3, 1};
  EXPECT_EQ(getScope(send), "SB3@5");
  rt::ActionLabel label = rt::parseActionLabel(getScope(send));
  EXPECT_EQ(std::tuple(label.kind, label.backward, label.microbatch, label.stage), std::tuple('S', true, 3, 5));
  EXPECT_EQ(getScope(Action::compute(ActionKind::BackwardWeight, 12, 0)), "W0@12");
  EXPECT_EQ(getScope({.kind = ActionKind::Update}), "U");
}

TEST(Simulate, StashBytes) {
  StageCosts bytes = durations(1, 1, 1);
  bytes.stashBytes = 100;
  bytes.weightStashBytes = 30;
  Schedule schedule = read("F0 I0 F1 I1 W0 W1");
  Timeline timeline = *simulate(schedule, Costs::uniform(schedule.shape, bytes));
  EXPECT_EQ(timeline.ranks[0].peakStash, 2);
  EXPECT_EQ(timeline.ranks[0].peakBytes, 130) << "of micro-batch 0 only what W needs";
}

TEST(Simulate, EvaluationStashesNothing) {
  StageCosts bytes = durations(1, 1, 1);
  bytes.stashBytes = 100;
  GenerateOptions options;
  options.isForwardOnly = true;
  Schedule schedule = make("1f1b", 2, 4, 1, options);
  Timeline timeline = *simulate(schedule, Costs::uniform(schedule.shape, bytes));
  for (const RankTimeline &rank : timeline.ranks) {
    EXPECT_EQ(rank.peakStash, 0);
    EXPECT_EQ(rank.peakBytes, 0);
  }
}

TEST(Simulate, NothingOfACycle) {
  Schedule schedule = read("F0 B0 F1 B1\nF1 F0 B0 B1");
  EXPECT_FALSE(simulate(schedule, Costs::uniform(schedule.shape)).has_value());
}

Timeline makeTimeline(llvm::StringRef name, int64_t ranks, int64_t microbatches) {
  Schedule schedule = make(name, ranks, microbatches, getDefaultChunks(name), {Optimizer::NormAndUpdate, {}});
  StageCosts bytes;
  bytes.stashBytes = 1 << 20;
  bytes.messageBytes = 1 << 10;
  Timeline timeline = *simulate(schedule, Costs::uniform(schedule.shape, bytes));
  timeline.title = name;
  return timeline;
}

TEST(ChromeTrace, HasEverySpanAndMessage) {
  Timeline timeline = makeTimeline("zb-v", 2, 4);
  timeline.ranks[0].spans[0].end = 0.1; // digits that JSON must hold
  nlohmann::json trace = nlohmann::json::parse(report::writeChromeTrace(timeline, 1000), nullptr, false);
  ASSERT_TRUE(trace["traceEvents"].is_array());
  size_t spans = 0, sends = 0, last = 0;
  for (const nlohmann::json &event : trace["traceEvents"]) {
    if (event["ph"] == "X") {
      (event["tid"] == 0 ? spans : sends) += 1;
      EXPECT_GE(event["dur"].get<double>(), 0);
    }
    if (event["ph"] == "C")
      last = event["args"]["micro-batches"];
  }
  EXPECT_EQ(spans, timeline.ranks[0].spans.size() + timeline.ranks[1].spans.size());
  EXPECT_EQ(sends, timeline.transfers.size());
  EXPECT_EQ(last, 0u) << "nothing stays in the stash";
  EXPECT_EQ(trace["traceEvents"][3]["name"], "F0 of stage 0");
  EXPECT_EQ(trace["traceEvents"][3]["dur"], 100);
}

size_t countOf(llvm::StringRef text, llvm::StringRef part) { return text.count(part); }

TEST(TimelinePage, DrawsEverySpanAndMessage) {
  Timeline timeline = makeTimeline("zb-h1", 4, 8);
  std::string page = report::writeTimelinePage(timeline);
  for (auto [kind, count] :
       {std::pair("act F\"", 32), {"act I\"", 32}, {"act W\"", 32}, {"act N\"", 4}, {"act U\"", 4}})
    EXPECT_EQ(countOf(page, kind), size_t(count)) << kind;
  EXPECT_EQ(countOf(page, "<line class=\"send go\"") - 1, 24u) << "beside that of the legend";
  EXPECT_EQ(countOf(page, "<line class=\"send back\"") - 1, 24u);
  EXPECT_NE(page.find("<div class=\"value\">11.1 %</div>"), std::string::npos) << "3 of 27";
  EXPECT_NE(page.find("<div class=\"value\">27</div>"), std::string::npos);
  EXPECT_NE(page.find("4 MiB"), std::string::npos);
  EXPECT_EQ(page.find("act B\""), std::string::npos);
  EXPECT_NE(page.find("<div class=\"value\">48 messages, 48 KiB</div>"), std::string::npos);
  EXPECT_NE(page.find("100 pixels: "), std::string::npos) << "pages of other makespans have another scale";
}

// What is sent behind the micro-batches is drawn, and no activation of any stage.
TEST(TimelinePage, CountsMessagesOfTheSchedule) {
  rt::Timeline timeline = report::toTimeline(makeTimeline("1f1b", 2, 2));
  size_t messages = timeline.transfers.size();
  timeline.transfers.push_back({0, 1, false, -1, -1, 512, 1, 2});
  std::string page = rt::writeTimelinePage(timeline);
  EXPECT_NE(page.find("<div class=\"value\">4 messages, 4 KiB</div>"), std::string::npos);
  EXPECT_NE(page.find("a sum over stages, rank 0 to rank 1, 512 B"), std::string::npos);
  EXPECT_EQ(rt::toReport(timeline)["messages"], messages);
  EXPECT_EQ(rt::toReport(timeline)["bytes"], 4096);
}

// No time is written with an exponent, none of rounding is left, and ticks are round in the unit that is shown.
TEST(TimelinePage, TimesHaveAUnitOfTheirSize) {
  Timeline timeline = makeTimeline("1f1b", 2, 2);
  timeline.unit = "ms";
  auto scaled = [&](double factor) {
    rt::Timeline made = report::toTimeline(timeline);
    for (rt::TimelineRank &rank : made.ranks) {
      rank.busy *= factor * (1 - 1e-15);
      for (rt::TimelineSpan &span : rank.spans) {
        span.begin *= factor;
        span.end *= factor;
      }
    }
    return rt::writeTimelinePage(made);
  };
  double makespan = timeline.getMakespan();
  EXPECT_NE(scaled(8.429e6 / makespan).find("<div class=\"value\">8429 s</div>"), std::string::npos);
  EXPECT_NE(scaled(8.429e6 / makespan).find(">1000 s</text>"), std::string::npos);
  EXPECT_NE(scaled(0.008166 / makespan).find("<div class=\"value\">8.166 µs</div>"), std::string::npos);
  EXPECT_NE(scaled(0.008166 / makespan).find(">1 µs</text>"), std::string::npos);
  for (double size : {3.7e7, 1e4, 9999.0, 27.0, 0.1, 1e-3, 1e-7})
    for (const char *exponent : {"e+", "e-0", "e-1"})
      EXPECT_EQ(scaled(size / makespan).find(exponent), std::string::npos) << size;
  rt::TimelineRank rank;
  rank.spans = {{'F', 0, 0, 0, 0.1}, {'F', 1, 0, 0.1, 0.3}};
  rank.busy = 0.3 - 1e-16;
  EXPECT_EQ(rank.ownIdle(), 0);
}

// What inference has none of is neither in the legend nor in the table.
TEST(TimelinePage, ForwardPassesAloneHaveNoCotangents) {
  GenerateOptions options;
  options.isForwardOnly = true;
  Schedule schedule = make("1f1b", 2, 2, 1, options);
  std::string page = report::writeTimelinePage(*simulate(schedule, Costs::uniform(schedule.shape)));
  EXPECT_NE(page.find("/></svg>activations</span>"), std::string::npos);
  EXPECT_EQ(page.find("/></svg>cotangents</span>"), std::string::npos);
  EXPECT_EQ(page.find("width:0%"), std::string::npos) << "a bar of nothing";
}

TEST(TimelinePage, LoadsAndRunsNothing) {
  Timeline timeline = makeTimeline("1f1b", 2, 2);
  timeline.title = "<script>alert(1)</script>\"'&";
  timeline.unit = "<b>";
  std::string page = report::writeTimelinePage(timeline);
  EXPECT_NE(page.find("Content-Security-Policy\" content=\"default-src &#39;none&#39;; style-src"), std::string::npos);
  for (const char *part : {"<script", "<b>", "http:", "https:", "src=", "url(http"})
    EXPECT_EQ(page.find(part), std::string::npos) << part;
}

TEST(TimelinePage, LargeAndEmptyTimelines) {
  Timeline large = makeTimeline("1f1b", 16, 1024);
  std::string page = report::writeTimelinePage(large);
  EXPECT_NE(page.find("the Chrome trace has them all"), std::string::npos);
  EXPECT_EQ(page.find("<line class=\"send"), std::string::npos);
  EXPECT_LT(page.size(), size_t(4) << 20);
  Timeline empty;
  empty.ranks.resize(2);
  EXPECT_NE(report::writeTimelinePage(empty).find("rank 1"), std::string::npos);
}

} // namespace
} // namespace shoal::pipe
