// The timeline of a step from its rows: two ranks, their actions, waits and messages.
#include "core/timeline.h"
#include "shoal-rt/blob_builder.h"
#include "shoal-rt/timeline_page.h"

#include <gtest/gtest.h>

using namespace shoal::rt;

namespace {

// Rank 0 has stage 0, rank 1 stage 1: a forward pass of two rows with other work between, and a message.
std::vector<unsigned char> makeProgram() {
  BlobBuilder blob("p");
  blob.addAxis("pipe", 2);
  blob.header().arenaBytes = 64;
  blob.header().numKernels = 1;
  uint32_t view = blob.addView(0, 16, DType::F32);
  Positions first = blob.addPositions({1, 0}), second = blob.addPositions({0, 1});
  auto launch = [&](const char *name, const char *scope, Positions at, uint32_t event = kNone) {
    blob.addInstr({.event = event, .operands = {view}, .name = name, .scope = scope, .onlyAt = at});
  };
  auto message = [&](bool isSend, const char *scope, Positions at, uint32_t event) {
    std::vector<uint32_t> peers = isSend ? std::vector<uint32_t>{1, kNone} : std::vector<uint32_t>{kNone, 0};
    blob.addInstr({.op = Opcode::PointToPoint, .stream = 1, .event = event, .a = kNone,
                   .peers = {{isSend, view, peers}}, .name = isSend ? "send" : "recv", .scope = scope, .onlyAt = at});
  };
  launch("product", "F0@0", first);                                  // 0
  launch("mask", "", first);                                         // 1
  launch("sum", "F0@0", first);                                      // 2
  message(true, "SF0@0", first, 0);                                  // 3
  message(false, "RF0@1", second, 1);                                // 4
  blob.addInstr({.op = Opcode::Wait, .params = {1}, .onlyAt = second}); // 5
  launch("product", "F0@1", second);                                 // 6
  launch("product", "B0@1", second);                                 // 7
  launch("adam", "U", second);                                       // 8
  return blob.finish();
}

constexpr int64_t kMs = 1000000; // in nanoseconds

MeasuredTimeline measure(int64_t stages = 2) {
  std::vector<unsigned char> bytes = makeProgram();
  Program program(bytes.data(), bytes.size());
  Trace first(program, 0, 2), second(program, 1, 2);
  first.beginStep(1); // which is not asked for
  first.add(0, 0, 0, 90 * kMs);
  first.beginStep(2);
  first.add(0, 0, 100 * kMs, 102 * kMs);
  first.add(0, 1, 102 * kMs, 103 * kMs);
  first.add(0, 2, 103 * kMs, 104 * kMs);
  first.add(1, 3, 104 * kMs, 107 * kMs);
  first.add(0, kTraceEnd, 104 * kMs, 107 * kMs);
  second.beginStep(2);
  second.add(1, 4, 1100 * kMs, 1106 * kMs); // its clock reads 1000 ms more
  second.add(0, 5, 1101 * kMs, 1106 * kMs);
  second.add(0, 6, 1106 * kMs, 1110 * kMs);
  second.add(0, 7, 1110 * kMs, 1116 * kMs);
  second.add(0, 8, 1116 * kMs, 1117 * kMs);
  return joinTimeline({tellRank(program, 0, first, 2, 0), tellRank(program, 1, second, 2, 1000 * kMs)},
                      stages);
}

} // namespace

TEST(Timeline, RowsOfAnActionAreOneSpan) {
  Timeline timeline = measure().timeline;
  ASSERT_EQ(timeline.ranks.size(), 2u);
  EXPECT_EQ(timeline.ranks[0].name, "rank 0");
  ASSERT_EQ(timeline.ranks[0].spans.size(), 1u) << "the mask is of the action around it";
  const TimelineSpan &span = timeline.ranks[0].spans[0];
  EXPECT_EQ(std::tuple(span.kind, span.microbatch, span.stage, span.begin, span.end), std::tuple('F', 0, 0, 100.0, 104.0));
  EXPECT_EQ(timeline.ranks[0].busy, 4);
  std::string kinds;
  for (const TimelineSpan &each : timeline.ranks[1].spans)
    kinds += each.kind;
  EXPECT_EQ(kinds, "FBU");
  EXPECT_EQ(timeline.ranks[1].peakStash, 1);
  EXPECT_EQ(timeline.makespan(), 17) << "from 100 to 117 on the common clock";
  EXPECT_DOUBLE_EQ(timeline.bubble(), 1 - (4 + 11) / 34.0);
}

TEST(Timeline, WaitsSayForWhat) {
  Timeline timeline = measure().timeline;
  ASSERT_EQ(timeline.ranks[1].waits.size(), 1u);
  EXPECT_EQ(timeline.ranks[1].waits[0].what, "recv RF0@1");
  EXPECT_EQ(timeline.ranks[1].waits[0].end, 106);
  EXPECT_EQ(timeline.ranks[0].waits[0].what, "the end of the step");
}

TEST(Timeline, AMessageEndsWhereItIsReceived) {
  Timeline timeline = measure().timeline;
  ASSERT_EQ(timeline.transfers.size(), 1u);
  const TimelineTransfer &it = timeline.transfers[0];
  EXPECT_EQ(std::tuple(it.from, it.to, it.backward, it.stage, it.microbatch, it.bytes), std::tuple(0, 1, false, 0, 0, 64u));
  EXPECT_EQ(it.begin, 104);
  EXPECT_EQ(it.end, 106);
}

TEST(Timeline, TellsCostsOfStages) {
  std::string two = R"({"unit":"s","stages":[{"forward":0.004,"backward":0.0},{"forward":0.004,"backward":0.006})";
  std::string end = R"(],"update":0.001})";
  EXPECT_EQ(measure().costs.dump(), two + end);
  EXPECT_EQ(measure(3).costs.dump(), two + R"(,{"forward":0.0,"backward":0.0})" + end) << "it computes nothing";
  EXPECT_EQ(measure(0).costs.dump(), two + end) << "as many as have passes";
}

TEST(Timeline, DrawsSpansWaitsAndMessages) {
  std::string page = writeTimelinePage(measure().timeline);
  for (const char *part : {"<rect class=\"act F\"", "<rect class=\"act B\"", "<rect class=\"wait\"",
                           "<line class=\"send go\"", "F0 of stage 1: 6 ms to 10 ms", "waits for recv RF0@1"})
    EXPECT_NE(page.find(part), std::string::npos) << part;
}

// Rank 0 comes to the exchange at 12, rank 1 at 7; both leave it at 14. A second one follows at once.
TEST(Timeline, TheNormBeginsWhenTheLastRankHasCome) {
  BlobBuilder blob("p");
  blob.addAxis("pipe", 2);
  blob.header().arenaBytes = 64;
  blob.header().numKernels = 1;
  uint32_t view = blob.addView(0, 16, DType::F32), group = blob.addGroup({0});
  auto launch = [&](const char *scope) { blob.addInstr({.operands = {view}, .name = "k", .scope = scope}); };
  launch("B0@0");                                              // 0
  launch("U");                                                 // 1: squares
  blob.addInstr({.op = Opcode::AllReduce, .stream = 1, .event = 0, .a = group, .operands = {view, view},
                 .name = "all_reduce {pipe}", .scope = "N"});  // 2
  blob.addInstr({.op = Opcode::Wait, .params = {0}});          // 3
  launch("U");                                                 // 4
  blob.addInstr({.op = Opcode::AllReduce, .a = group, .operands = {view, view}, .name = "again", .scope = "N"}); // 5
  std::vector<unsigned char> bytes = blob.finish();
  Program program(bytes.data(), bytes.size());
  std::vector<std::string> told;
  for (int64_t rank = 0; rank < 2; ++rank) {
    int64_t came = rank == 0 ? 12 : 7;
    Trace trace(program, uint32_t(rank), 2);
    trace.beginStep(1);
    trace.add(0, 0, 0, (came - 1) * kMs);
    trace.add(0, 1, (came - 1) * kMs, came * kMs);
    trace.add(1, 2, came * kMs, 14 * kMs);
    trace.add(0, 3, came * kMs, 14 * kMs);
    trace.add(0, 4, 14 * kMs, 16 * kMs);
    trace.add(0, 5, 16 * kMs, (18 + rank) * kMs);
    told.push_back(tellRank(program, uint32_t(rank), trace, 1, 0));
  }
  Timeline timeline = joinTimeline(told, 1).timeline;
  for (const TimelineRank &rank : timeline.ranks) {
    ASSERT_EQ(rank.spans.size(), 5u);
    const TimelineSpan &norm = rank.spans[2];
    EXPECT_EQ(std::tuple(norm.kind, norm.begin, norm.end), std::tuple('N', 12.0, 14.0));
    EXPECT_EQ(rank.spans[4].begin, 16);
    EXPECT_EQ(rank.waits.size(), 2u);
  }
  EXPECT_EQ(timeline.ranks[0].normWait(), 0.0);
  EXPECT_EQ(timeline.ranks[1].normWait(), 5.0);
  EXPECT_EQ(timeline.ranks[1].busy, 9) << "to exchange the norm is no work";
  EXPECT_NE(writeTimelinePage(timeline).find("<rect class=\"act N\""), std::string::npos);
}

TEST(Timeline, WithoutBackwardPassesNothingIsStashed) {
  TimelineRank rank;
  rank.spans = {{'F', 0, 0, 0, 1}, {'F', 1, 0, 1, 2}};
  EXPECT_EQ(countPeakStash(rank.spans), 0);
  Timeline timeline;
  timeline.ranks = {rank};
  EXPECT_EQ(toChromeTrace(timeline).dump().find("\"stash\""), std::string::npos);
}

TEST(Timeline, AProgramSaysHowManyStagesItHas) {
  EXPECT_EQ(countStages("m, 12 stages (0123456789abcdef), micro-batches of 1x8xi64"), 12);
  EXPECT_EQ(countStages("5 stages (of, 2 stages (01)"), 2) << "a model of any name";
  for (const char *text : {"", "m", "stages (", " stages (", "m, x stages (", "m, 3 stages"})
    EXPECT_EQ(countStages(text), 0) << text;
  EXPECT_EQ(countStages("m, 99999999999 stages ("), 9999999) << "of so many digits none is made";
}

// A stage that only hands cotangents on has no W, one whose input nobody differentiates no I.
TEST(Timeline, AMicrobatchIsStashedUntilItsLastBackwardPass) {
  auto peak = [](std::vector<TimelineSpan> spans) { return countPeakStash(spans); };
  EXPECT_EQ(peak({{'F', 0, 1}, {'F', 1, 1}, {'I', 0, 1}, {'W', 0, 1}, {'I', 1, 1}, {'W', 1, 1}}), 2);
  EXPECT_EQ(peak({{'F', 0, 1}, {'I', 0, 1}, {'F', 1, 1}, {'W', 0, 1}, {'I', 1, 1}, {'W', 1, 1}}), 2);
  EXPECT_EQ(peak({{'F', 0, 1}, {'I', 0, 1}, {'F', 1, 1}, {'I', 1, 1}}), 1) << "I alone is a backward pass";
  EXPECT_EQ(peak({{'F', 0, 0}, {'W', 0, 0}, {'F', 1, 0}, {'W', 1, 0}}), 1);
  EXPECT_EQ(peak({{'F', 0, 0}, {'F', 0, 2}, {'B', 0, 2}, {'F', 1, 0}, {'F', 1, 2}, {'B', 1, 2}}), 1)
      << "stage 0 keeps nothing";
  EXPECT_EQ(peak({{'B', 0, 2}, {'F', 0, 0}, {'B', 0, 0}}), 1) << "stage 2 has nothing to keep";
}

TEST(Timeline, LabelsThatAreNoneAreOtherWork) {
  for (const char *text : {"", "F", "F0", "F0@", "F@1", "X0@1", "F0@1x", "SF", "S0@1", "UU", "F99999999999@1"})
    EXPECT_EQ(parseActionLabel(text).kind, 0) << text;
  EXPECT_EQ(parseActionLabel("N").kind, 'N');
}
