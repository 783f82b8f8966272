// Files of schedules: what is read, written, and refused.
#include "TestSupport.h"

#include "llvm/ADT/StringExtras.h"

#include <random>

namespace shoal::pipe {
namespace {

TEST(Text, RoundTrips) {
  for (llvm::StringRef name : getScheduleNames())
    for (bool withMessages : {false, true}) {
      Schedule schedule = make(name, 3, 6, getDefaultChunks(name), {Optimizer::NormAndUpdate, {}});
      if (withMessages)
        ASSERT_TRUE(addMessages(schedule, Costs::uniform(schedule.shape)));
      EXPECT_EQ(read(writeText(schedule)), schedule) << writeText(schedule);
      EXPECT_EQ(read(writeJson(schedule)), schedule) << writeJson(schedule);
    }
}

TEST(Text, WaysToWriteTheSame) {
  Schedule expected = read("F0 F0.1 B0.1 B0\nF0 F0.1 B0.1 B0");
  EXPECT_EQ(expected.shape, (Shape{2, 1, 2}));
  for (const char *text :
       {"F0f0b0B0\nF0 f0 b0 B0\n", "# mine\n\nrank 0: F0 F0.1 B0.1 B0 # so\r\nrank 1:F0 F0.1 B0.1 B0\r\n",
        "placement=loop\nchunks = 2\nmicrobatches = 1\n0: F0@0 F0@2 B0@2 B0@0\n1: F0@1 F0@3 B0@3 B0@1",
        R"(["F0 f0 b0 B0", "F0 f0 b0 B0"])", R"([["F0", "f0b0", "B0"], ["F0", "f0", "b0", "B0"]])",
        R"({"placement": "loop", "ranks": ["F0 f0 b0 B0", [{"action": "F", "microbatch": 0},
            {"action": "F", "microbatch": 0, "chunk": 1}, {"action": "b", "microbatch": 0},
            {"action": "B", "microbatch": 0, "stage": 1}]]})"})
    EXPECT_EQ(read(text), expected) << text;
}

TEST(Text, MessagesAndGroups) {
  Schedule schedule = read("F0 SF0>1 F1 {SF1>1 RB0<1} B0 RB1<1 B1\nRF0<0 F0 B0 {SB0>0 RF1<0} F1 B1 SB1>0");
  EXPECT_EQ(read("F0 SF0 F1 { SF1 RB0 } B0 {RB1} B1\nRF0 F0 B0 {SI0 RF1} F1 B1 SB1"), schedule)
      << "peers may be left out; a group of one is none";
  EXPECT_EQ(read(R"([["F0 SF0 F1", ["SF1", {"action": "RB", "microbatch": 0, "peer": 1}], "B0 RB1 B1"],
                     "RF0 F0 B0 {SB0 RF1} F1 B1 SB1"])"),
            schedule);
  EXPECT_FALSE(schedule.ranks[0][3].joined);
  EXPECT_TRUE(schedule.ranks[0][4].joined);
  // A rank whose line begins with a group is no JSON.
  EXPECT_EQ(read("{RB0 RB1}\nF0").ranks[0].size(), 2u);
}

TEST(Text, WrongLines) {
  const std::string expected =
      ", expected F, B, I or W and a micro-batch (in lower case of chunk 1), SF, SB, RF, RB, N or U";
  EXPECT_EQ(readError(""), "s.txt:1: a schedule needs a line of actions per rank, got: none");
  EXPECT_EQ(readError("# nothing\n\n"), "s.txt:1: a schedule needs a line of actions per rank, got: none");
  EXPECT_EQ(readError("F0 B0\n\nF0 X0 B0"), "s.txt:3: unknown action 'X0'" + expected);
  EXPECT_EQ(readError("F0 B-1"), "s.txt:1: a micro-batch must follow: 'B'");
  EXPECT_EQ(readError("F0 SX0"), "s.txt:1: unknown action 'SX0'" + expected);
  EXPECT_EQ(readError("F0\x01\x02\xff"), "s.txt:1: unknown action '?"
                                         "?"
                                         "?'" +
                                             expected);
  EXPECT_EQ(readError("F99999999999999999999"),
            "s.txt:1: a micro-batch must be a number from 0 to 4194304, got: '99999999999999999999'");
  EXPECT_EQ(readError("F0.-1"), "s.txt:1: a chunk must be a number from 0 to 4194304, got: '-1'");
  EXPECT_EQ(readError("f0.2"), "s.txt:1: a letter in lower case is of chunk 1 and names no other, got: 'f'");
  EXPECT_EQ(readError("F0.1@2"), "s.txt:1: either a chunk or a stage is named, got: 'F' with both");
  EXPECT_EQ(readError("F0>1"), "s.txt:1: only S and R name another rank, got: 'F'");
  EXPECT_EQ(readError("N3"), "s.txt:1: there is one of a rank, without numbers: 'N'");
  EXPECT_EQ(readError("F"), "s.txt:1: a micro-batch must follow: 'F'");
  EXPECT_EQ(readError("{RF0 {RF1}}"),
            "s.txt:1: messages that progress together are in one pair of braces, got: a brace within braces");
  EXPECT_EQ(readError("F0 }"), "s.txt:1: a brace is closed that is not open");
  EXPECT_EQ(readError("F0 {SF0"), "s.txt:1: a brace is open at the end of the line");
  EXPECT_EQ(readError("{F0}"), "s.txt:1: only S and R stand in braces, got: 'F0'");
  EXPECT_EQ(readError("0: F0\n2: F0"), "s.txt:2: the line of rank 1 is expected here, got: '2'");
  EXPECT_EQ(readError("placement = ring\nF0"), "s.txt:1: placement must be loop or vee, got: 'ring'");
  EXPECT_EQ(readError("colour = red\nF0"),
            "s.txt:1: unknown key 'colour', expected placement, microbatches, chunks or peak");
  EXPECT_EQ(readError("chunks = 2 3\nF0"), "s.txt:1: chunks must be one number, got more: ' 3'");
  EXPECT_EQ(readError("peak = [1 2\nF0"), "s.txt:1: a bracket is open at the end of the peak");
  EXPECT_EQ(read("peak = [2, 1]\nF0 F1\nF0 F1").peak, (std::vector<int64_t>{2, 1})) << "as pipe.schedule prints it";
  EXPECT_EQ(readError("peak = 1 x\nF0"), "s.txt:1: a peak must be a number from 0 to 4194304, got: 'x'");
  EXPECT_EQ(readError("\npeak = 1 2\nF0"), "s.txt:2: the peak needs one number per rank (1), got: 2");
  EXPECT_EQ(readError("microbatches = 2\nF0\nF0 F2"), "s.txt:3: a micro-batch must be below 2, got: 2");
  EXPECT_EQ(readError("chunks = 1\nF0 F0.1"), "s.txt:2: a chunk must be below 1, got: 1");
  EXPECT_EQ(readError("chunks = 1\nF0@1"), "s.txt:2: a stage must be below 1, got: 1");
  EXPECT_EQ(readError("F0 SF0>7\nF0"), "s.txt:1: a rank must be below 2, got: 7");
  EXPECT_EQ(readError("F0\nF0 SF0"), "s.txt:2: there is no stage behind the last one to exchange a message with, got: "
                                     "SF0 of stage 1");
  EXPECT_EQ(readError("RF0"), "s.txt:1: there is no stage before the first one to exchange a message with, got: RF0 of "
                              "stage 0");
  EXPECT_EQ(readError("F0 F4000000.4000000"),
            "s.txt:1: ranks times chunks times micro-batches must be at most 4194304, "
            "got: 1 x 4000001 x 4000001");
  EXPECT_EQ(readError(std::string(1 << 20, 'Q')), "s.txt:1: unknown action 'QQQQQQQQQQQQQQQQQQQQQQQQ...'" + expected);
}

TEST(Text, WrongJson) {
  EXPECT_EQ(readError("[\"F0\",\n\"X0\"]").substr(0, 28), "s.txt:2: unknown action 'X0'");
  EXPECT_EQ(readError("[\"F0\",\n\n"), "s.txt:2: the text must be JSON (it begins with a bracket), and is broken here");
  EXPECT_EQ(readError("[]"), "s.txt:1: a schedule needs a line of actions per rank, got: none");
  EXPECT_EQ(readError("{}"), "s.txt:1: a schedule needs a line of actions per rank, got: none");
  EXPECT_EQ(readError("[\n3]"), "s.txt:2: a rank, or messages that progress together, must be an array, got: a number");
  EXPECT_EQ(readError("{\"ranks\": 3}"), "s.txt:1: ranks must be an array, got: a number");
  EXPECT_EQ(readError("{\"rank\":\n [\"F0\"]}"),
            "s.txt:2: unknown key 'rank', expected ranks, placement, microbatches, chunks or peak");
  EXPECT_EQ(readError("{\"chunks\": 1, \"chunks\": 1}"), "s.txt:1: a key stands twice: 'chunks'");
  EXPECT_EQ(readError("{\"microbatches\": -1,\n\"ranks\": [\"F0\"]}"),
            "s.txt:1: microbatches must be a number from 0 to 4194304, got: -1");
  EXPECT_EQ(readError("{\"chunks\": 1e99, \"ranks\": [\"F0\"]}"),
            "s.txt:1: chunks must be a number from 0 to 4194304, got: 1e99");
  EXPECT_EQ(readError("[[{\"action\": \"F\",\n\"microbatch\": 99999999999999999999999}]]"),
            "s.txt:2: microbatch must be a number from 0 to 4194304, got: 99999999999999999999999");
  EXPECT_EQ(readError("[[{\"microbatch\": 0}]]").substr(0, 26), "s.txt:1: unknown action ''");
  EXPECT_EQ(readError("[[[\"F0\"]]]"), "s.txt:1: only messages progress together");
  EXPECT_EQ(readError("[[[[\"SF0\"]]]]"), "s.txt:1: an action must be an object, got: an array");
  EXPECT_EQ(readError(std::string(1 << 20, '[')), "s.txt:1: arrays and objects must be at most 5 deep");
  EXPECT_EQ(readError("[true]"),
            "s.txt:1: a rank, or messages that progress together, must be an array, got: something else");
}

// Bytes changed at random in files of both kinds: read, or refused with one line.
TEST(Text, BrokenBytes) {
  Schedule schedule = make("zb-v", 3, 5, 2);
  ASSERT_TRUE(addMessages(schedule, Costs::uniform(schedule.shape)));
  std::mt19937 random(4);
  constexpr llvm::StringLiteral bytes = "FBIWSRNU019.@<>{}[]\",:=# \n\t-efx\\";
  for (const std::string &whole : {writeText(schedule), writeJson(schedule)})
    for (int round = 0; round < 3000; ++round) {
      std::string text = whole;
      for (int change = 0; change < 3; ++change)
        text[random() % text.size()] = bytes[random() % bytes.size()];
      std::string error;
      if (std::optional<Schedule> read = readSchedule(text, "s.txt", error)) {
        if (std::optional<Fault> fault = check(*read))
          error = fault->message;
      } else {
        EXPECT_TRUE(llvm::StringRef(error).starts_with("s.txt:")) << error;
      }
      EXPECT_EQ(error.find('\n'), std::string::npos) << error;
    }
}

} // namespace
} // namespace shoal::pipe
