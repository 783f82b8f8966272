// The progress board as a file, what it says in words, and the line of a rank that waited.
#include "TestSupport.h"
#include "core/board.h"
#include "core/watchdog.h"

#include <thread>

#include <sys/stat.h>

using namespace shoal::rt;
using namespace shoal::rt::test;

namespace {

std::string freePath() {
  ScratchFile scratch;
  return scratch.path();
}

TEST(Board, IsSharedThroughItsFileAndItsUsersAlone) {
  std::string path = freePath();
  Board made = Board::create(path, 3);
  struct stat info;
  ASSERT_EQ(stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  EXPECT_THROW(Board::create(path, 3), Error);
  Board opened = Board::open(path, 3);
  Beacon beacon(made.entry(2));
  beacon.setState(RankState::Running);
  RankPlace place = opened.read(2);
  EXPECT_EQ(place.pid, getpid());
  EXPECT_EQ(placeText(place, true), "is at the start");
  EXPECT_TRUE(opened.claimReport(2));
  EXPECT_FALSE(made.claimReport(0));
  expectBadInput([&] { Board::open(path, 4); }, "it is for 3 ranks, expected 4");
  chmod(path.c_str(), 0640);
  expectBadInput([&] { Board::open(path, 3); }, "must belong to this user alone");
  chmod(path.c_str(), 0600);
  ASSERT_EQ(truncate(path.c_str(), 100), 0);
  expectBadInput([&] { Board::open(path, 0); }, "it has 100 bytes, expected");
  unlink(path.c_str());
  expectBadInput([&] { Board::open(path, 3); }, "cannot be opened");
  expectBadInput([&] { Board::open("/dev/null", 3); }, "no regular file");
}

TEST(Board, TextIsCutAndPrintable) {
  Board board = Board::makePrivate(1);
  Beacon beacon(board.entry(0));
  beacon.setState(RankState::Running);
  beacon.alone("a\nb" + std::string(200, 'c'));
  std::string text = board.read(0).text;
  EXPECT_EQ(text.substr(0, 4), "a?bc");
  EXPECT_EQ(text.size(), kBoardWords * 8 - 1);
  EXPECT_EQ(text.substr(text.size() - 4), "c...");
}

// Four ranks in step 3 at an all-reduce of ranks 0, 1 and 2: rank 1 is in it, rank 2 computes.
struct Meeting {
  Board board = Board::makePrivate(4);
  std::vector<std::unique_ptr<Beacon>> beacons;
  Operation reduce{boardText("all_reduce {data} bucket 0"), 5, 2, {0, 1, 2}};
  Operation kernel{boardText("kernel 'k_relu_3'"), 4, kNone, {}};

  Meeting() {
    for (uint32_t rank = 0; rank < 4; ++rank) {
      beacons.push_back(std::make_unique<Beacon>(board.entry(rank)));
      beacons.back()->setState(RankState::Running);
      beacons.back()->beginStep(3, false);
      beacons.back()->at(kernel, Phase::Computing);
    }
    for (uint32_t rank : {0, 1})
      enter(rank);
  }
  void enter(uint32_t rank) {
    beacons[rank]->entered(reduce);
    beacons[rank]->at(reduce, Phase::Waiting);
    beacons[rank]->transfer(reduce, Phase::Waiting);
  }
  HangLine line() { return hangLine(board, 0, reduce, beacons[0]->ordinal(reduce), 5.04); }
};

TEST(HangLine, NamesWhoIsMissingAndWhereThatOneIs) {
  Meeting meeting;
  EXPECT_EQ(meeting.line().text,
            "rank 0 waited 5.0 s in all_reduce {data} bucket 0 (step 3); rank 2 has not entered it: it is at "
            "kernel 'k_relu_3' (step 3)");
  EXPECT_TRUE(meeting.line().cause);
  // Rank 3 is no member; placesText tells all.
  EXPECT_EQ(placesText(meeting.board, 3),
            "ranks 0, 1 wait in all_reduce {data} bucket 0 (step 3); rank 2 is at kernel 'k_relu_3' (step 3)");
}

TEST(HangLine, PrefersTheCauseToThoseWhoWait) {
  Meeting meeting;
  Operation other{boardText("all_gather {tensor} h"), 4, 2, {2, 3}};
  meeting.beacons[2]->at(other, Phase::Waiting);
  EXPECT_FALSE(meeting.line().cause);
  EXPECT_NE(meeting.line().text.find("rank 2 has not entered it: it waits in all_gather"), std::string::npos);
}

TEST(HangLine, EverybodyIsThere) {
  Meeting meeting;
  meeting.enter(2);
  EXPECT_NE(meeting.line().text.find("all its ranks have entered it"), std::string::npos);
}

TEST(HangLine, ARankIsEnteredOnlyForItsStep) {
  Meeting meeting;
  meeting.enter(2);
  for (uint32_t rank : {0, 1}) {
    meeting.beacons[rank]->beginStep(4, false);
    meeting.enter(rank);
  }
  EXPECT_NE(meeting.line().text.find("(step 4); rank 2 has not entered it"), std::string::npos);
}

// Of what all enter between steps, and some wait for: those alone are named.
TEST(HangLine, NamesWhoIsWaitedFor) {
  Board board = Board::makePrivate(3);
  std::vector<std::unique_ptr<Beacon>> beacons;
  for (uint32_t rank = 0; rank < 3; ++rank) {
    beacons.push_back(std::make_unique<Beacon>(board.entry(rank)));
    beacons.back()->setState(RankState::Running);
  }
  Beacon::Together together(*beacons[0], "the collection of losses and metrics", {0, 2});
  const Operation *operation = beacons[0]->waiting();
  ASSERT_NE(operation, nullptr);
  EXPECT_EQ(hangLine(board, 0, *operation, beacons[0]->ordinal(*operation), 1).text,
            "rank 0 waited 1.0 s in the collection of losses and metrics; rank 2 has not entered it: it is at the "
            "start");
}

TEST(Watchdog, FiresOnlyWhenAWaitDoesNotMove) {
  Meeting meeting;
  Watchdog none(meeting.board, 3, *meeting.beacons[3], 0.05, [] { std::_Exit(7); }); // computes
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  EXPECT_FALSE(meeting.board.isReported());
}

TEST(WatchdogDeathTest, EndsTheJobWithItsLine) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(
      {
        Meeting meeting;
        Watchdog dog(meeting.board, 0, *meeting.beacons[0], 0.05, [] { std::_Exit(7); });
        std::this_thread::sleep_for(std::chrono::seconds(30));
      },
      testing::ExitedWithCode(7), "error: rank 0 waited 0.[0-9] s in all_reduce .*rank 2 has not entered it");
}

} // namespace
