// Ring traffic against the published formulas, at sizes that divide and sizes that do not.
#include "shoal-rt/report.h"
#include "shoal-rt/traffic.h"

#include <gtest/gtest.h>

namespace shoal::rt {
namespace {

TEST(Traffic, AllReduceSendsTwiceTheShare) {
  EXPECT_EQ(sentBytes(Opcode::AllReduce, 4, 0, 0, 1024, 4), 2u * 3 * 1024 * 4 / 4);
  EXPECT_EQ(sentBytes(Opcode::AllReduce, 3, 1, 0, 10, 8), 2u * 2 * 4 * 8); // 10 -> 12
  EXPECT_EQ(sentBytes(Opcode::AllReduce, 8, 7, 0, 3, 4), 2u * 7 * 1 * 4);  // fewer than ranks
  EXPECT_EQ(sentBytes(Opcode::AllReduce, 1, 0, 0, 1024, 4), 0u);
}

TEST(Traffic, OneWayCollectivesSendHalfOfIt) {
  for (Opcode op : {Opcode::AllGather, Opcode::ReduceScatter, Opcode::AllToAll})
    EXPECT_EQ(sentBytes(op, 4, 2, 0, 1000, 2), 3u * 250 * 2);
}

TEST(Traffic, RootedCollectivesDependOnThePosition) {
  EXPECT_EQ(sentBytes(Opcode::Broadcast, 4, 1, 1, 10, 4), 40u);
  EXPECT_EQ(sentBytes(Opcode::Broadcast, 4, 0, 1, 10, 4), 0u); // the last of the ring
  EXPECT_EQ(sentBytes(Opcode::Scatter, 4, 2, 2, 40, 4), 120u);
  EXPECT_EQ(sentBytes(Opcode::Scatter, 4, 0, 2, 40, 4), 0u);
  EXPECT_EQ(sentBytes(Opcode::Gather, 4, 2, 2, 40, 4), 0u);
  EXPECT_EQ(sentBytes(Opcode::Gather, 4, 0, 2, 40, 4), 40u);
}

TEST(Traffic, SendsCountWhenTheyLeaveTheRank) {
  EXPECT_EQ(sentBytes(Opcode::Permute, 2, 0, 0, 10, 8), 80u);
  EXPECT_EQ(sentBytes(Opcode::PointToPoint, 1, 0, 0, 10, 8), 0u);
  EXPECT_EQ(sentBytes(Opcode::Barrier, 4, 0, 0, 0, 1), 0u);
}

TEST(Traffic, ReportLinesMergeByKindAndAxes) {
  RankReport rank;
  rank.addCollective("all_reduce", {"data"}, 1, 10);
  rank.addCollective("all_reduce", {"tensor"}, 1, 20);
  rank.addCollective("all_reduce", {"data"}, 2, 30);
  ASSERT_EQ(rank.collectives.size(), 2u);
  EXPECT_EQ(rank.collectives[0].count, 3u);
  EXPECT_EQ(rank.collectives[0].bytes, 40u);
  rank.coords = {{"data", 3}};
  EXPECT_EQ(toJson(rank).dump(),
            R"({"rank":0,"coords":{"data":3},"bytes":{"params":0,"grads":0,"optimizer":0,)"
            R"("activations":0,"workspace":0,"peak":0},"collectives":[{"kind":"all_reduce",)"
            R"("axes":["data"],"count":3,"bytes":40},{"kind":"all_reduce","axes":["tensor"],)"
            R"("count":1,"bytes":20}]})");
}

TEST(Traffic, PartsOfASplitAxisAreReportedAsTheAxis) {
  Report report;
  RankReport rank;
  report.addAxis("data", 2);
  rank.addCoordinate("data", 2, 1);
  const std::pair<std::string, std::pair<uint64_t, uint64_t>> parts[] = {
      {"tensor.0", {2, 1}}, {"tensor.1", {3, 2}}, {"tensor.2", {2, 0}}};
  for (const auto &[name, at] : parts) {
    report.addAxis(name, at.first);
    rank.addCoordinate(name, at.first, at.second);
  }
  using Pairs = std::vector<std::pair<std::string, uint64_t>>;
  EXPECT_EQ(report.axes, (Pairs{{"data", 2}, {"tensor", 12}}));
  EXPECT_EQ(rank.coords, (Pairs{{"data", 1}, {"tensor", (1 * 3 + 2) * 2 + 0}}));
  rank.addCollective("all_reduce", {"data", "tensor.0", "tensor.1", "tensor.2"}, 1, 1);
  rank.addCollective("all_reduce", {"tensor.1", "tensor.2"}, 1, 1); // a part is none of it
  using Names = std::vector<std::string>;
  EXPECT_EQ(rank.collectives[0].axes, (Names{"data", "tensor"}));
  EXPECT_EQ(rank.collectives[1].axes, (Names{"tensor.1", "tensor.2"}));
}

TEST(Traffic, WhatWasMeasuredStandsApart) {
  RankReport promised, counted;
  counted.measured["seconds"] = 2;
  EXPECT_FALSE(toJson(promised).contains("measured"));
  ReportJson json = toJson(counted);
  EXPECT_EQ(json["measured"].dump(), R"({"seconds":2})");
  json.erase("measured");
  EXPECT_EQ(json.dump(), toJson(promised).dump());
}

} // namespace
} // namespace shoal::rt
