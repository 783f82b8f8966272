// The text of a trace: JSON elements with microseconds from the common moment.
#include "core/trace.h"
#include "shoal-rt/blob_builder.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

using namespace shoal::rt;

TEST(Trace, TellsNamesCategoriesAndTimes) {
  BlobBuilder blob("p");
  uint32_t data = blob.addAxis("data", 1);
  uint32_t group = blob.addGroup({data});
  blob.addInstr({.op = Opcode::Barrier, .stream = 1, .event = 0, .a = group, .name = "meet \"all\"", .reason = "why"});
  blob.addInstr({.op = Opcode::Wait, .params = {0}});
  std::vector<unsigned char> bytes = blob.finish();
  Program program(bytes.data(), bytes.size());
  Trace trace(program, 0, 2);
  trace.beginStep(1);
  trace.add(1, 0, 1000, 4500);
  trace.add(0, 1, 2000, 4600);
  trace.add(0, kTraceEnd, 4600, 4700);
  auto events = nlohmann::json::parse("[" + trace.text(3, 1000, 1) + "]");
  std::map<std::string, nlohmann::json> spans;
  for (const auto &event : events)
    if (event["ph"] == "X")
      spans[event["cat"].get<std::string>() + " " + event["name"].get<std::string>()] = event;
  ASSERT_EQ(spans.size(), 3u) << events.dump(1);
  const auto &meet = spans["communication meet \"all\""];
  EXPECT_EQ(meet["ts"], 0.0);
  EXPECT_EQ(meet["dur"], 3.5);
  EXPECT_EQ(meet["pid"], 3);
  EXPECT_EQ(meet["tid"], 1);
  EXPECT_EQ(meet["args"]["reason"], "why");
  EXPECT_EQ(meet["args"]["step"], 1);
  EXPECT_EQ(spans["waiting wait"]["ts"], 1.0);
  EXPECT_TRUE(spans.count("waiting end of step"));
}
