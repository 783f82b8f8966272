// Buffers with random lives, on one stream and on several: those that are in use at once never
// share bytes.
#include "Arena.h"

#include "gtest/gtest.h"
#include "llvm/ADT/STLExtras.h"

#include <map>
#include <random>

using namespace shoal::exec;

namespace {

constexpr int64_t kAlignment = 64;

// A random straight-line program: `streams` streams in lockstep every `sync` rows, so that clocks
// are those a real program could have.
std::vector<ArenaBuffer> randomBuffers(std::mt19937 &random, unsigned count, unsigned streams,
                                       unsigned rows, unsigned sync) {
  auto pick = [&](unsigned low, unsigned high) {
    return std::uniform_int_distribution<unsigned>(low, high)(random);
  };
  std::vector<ArenaBuffer> buffers(count);
  for (ArenaBuffer &buffer : buffers) {
    buffer.bytes = pick(1, 10) == 1 ? pick(1, 100000) : pick(1, 2000);
    unsigned first = pick(0, rows - 1), last = std::min(rows - 1, first + pick(0, 20));
    buffer.birth = first;
    buffer.last.assign(streams, 0);
    buffer.known.assign(streams, 0);
    unsigned stream = pick(0, streams - 1);
    buffer.last[stream] = last + 1;
    for (unsigned s = 0; s < streams; ++s)
      buffer.known[s] = s == stream ? first : first / sync * sync;
    if (streams > 1 && pick(0, 1)) { // touched by a second stream as well
      unsigned other = (stream + 1) % streams;
      buffer.last[other] = last + 1;
      buffer.known[stream] = std::min(buffer.known[stream], first / sync * sync);
    }
  }
  return buffers;
}

/// In use in rows [first, last] of the only stream.
ArenaBuffer between(unsigned first, unsigned last, int64_t bytes) {
  ArenaBuffer buffer;
  buffer.bytes = bytes;
  buffer.birth = first;
  buffer.known = {first};
  buffer.last = {last + 1};
  return buffer;
}

/// The most that is in use in a row of the only stream.
int64_t fullestRow(const std::vector<ArenaBuffer> &buffers) {
  std::map<unsigned, int64_t> changes;
  for (const ArenaBuffer &buffer : buffers) {
    int64_t bytes = (buffer.bytes + kAlignment - 1) / kAlignment * kAlignment;
    changes[buffer.birth] += bytes;
    changes[buffer.last[0]] -= bytes;
  }
  int64_t most = 0, now = 0;
  for (auto [row, change] : changes)
    most = std::max(most, now += change);
  return most;
}

/// `top`: the last base of a class, where it is not that of all.
void expectApart(const std::vector<ArenaBuffer> &buffers, int64_t base, int64_t end, int64_t top = 0) {
  int64_t total = 0;
  for (const ArenaBuffer &buffer : buffers) {
    ASSERT_EQ(buffer.offset % kAlignment, 0);
    ASSERT_GE(buffer.offset, base);
    ASSERT_LE(buffer.offset + buffer.bytes, end);
    total += (buffer.bytes + kAlignment - 1) / kAlignment * kAlignment;
  }
  ASSERT_LE(end, (std::max(base, top) + kAlignment - 1) / kAlignment * kAlignment + total);
  for (size_t i = 0; i < buffers.size(); ++i)
    for (size_t j = 0; j < i; ++j) {
      const ArenaBuffer &a = buffers[i], &b = buffers[j];
      bool share = a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
      ASSERT_FALSE(share && !endsBefore(a, b) && !endsBefore(b, a))
          << "buffers " << i << " and " << j;
    }
}

} // namespace

TEST(Arena, EndsBeforeNeedsEveryStream) {
  ArenaBuffer a, b;
  a.last = {3, 2};
  a.known = {0, 0};
  b.last = {5, 5};
  b.known = {3, 1};
  EXPECT_FALSE(endsBefore(a, b)); // stream 1 may still be in its second row
  b.known = {3, 2};
  EXPECT_TRUE(endsBefore(a, b));
  EXPECT_FALSE(endsBefore(b, a));
}

TEST(Arena, ReusesWhatIsDone) {
  // Three in a chain: the first and the third share.
  std::vector<ArenaBuffer> buffers(3);
  for (unsigned i = 0; i < 3; ++i) {
    buffers[i].bytes = 100;
    buffers[i].birth = i;
    buffers[i].known = {i};
    buffers[i].last = {i + 2};
  }
  int64_t end = assignArena(buffers, 10, kAlignment);
  EXPECT_EQ(buffers[0].offset, buffers[2].offset);
  EXPECT_EQ(end, 64 + 128 + 128);
}

TEST(Arena, RandomLivesOnOneStream) {
  std::mt19937 random(1);
  for (unsigned round = 0; round < 200; ++round) {
    std::vector<ArenaBuffer> buffers = randomBuffers(random, 1 + round % 60, 1, 80, 1);
    int64_t end = assignArena(buffers, round, kAlignment);
    expectApart(buffers, round, end);
  }
}

TEST(Arena, RandomLivesOnSeveralStreams) {
  std::mt19937 random(2);
  for (unsigned round = 0; round < 200; ++round) {
    unsigned streams = 2 + round % 3;
    std::vector<ArenaBuffer> buffers =
        randomBuffers(random, 1 + round % 60, streams, 80, 1 + round % 7);
    int64_t end = assignArena(buffers, 0, kAlignment);
    expectApart(buffers, 0, end);
  }
}

/// As many micro-batches of a large model have: one order is all that there is time for, and half of what is born is in use
/// until the end.
TEST(Arena, MorePairsThanOneOrderMayTake) {
  std::mt19937 random(11);
  constexpr unsigned kCount = 10000;
  std::vector<ArenaBuffer> buffers;
  for (unsigned i = 0; i < kCount; ++i)
    buffers.push_back(between(i, i % 2 ? i + 10 : kCount, 64 * (1 + random() % 50)));
  int64_t bound = fullestRow(buffers), end = assignArena(buffers, 0, kAlignment);
  EXPECT_LE(end, bound + bound / 20);
  expectApart(buffers, 0, end);
}

TEST(Arena, OffsetsAreTheSameWhereNoPairIsKept) {
  std::mt19937 random(3);
  for (unsigned round = 0; round < 100; ++round) {
    std::vector<ArenaBuffer> kept = randomBuffers(random, 2 + round % 60, 1 + round % 3, 80, 1 + round % 7);
    std::vector<ArenaBuffer> asked = kept;
    EXPECT_EQ(assignArena(kept, 0, kAlignment), assignArena(asked, 0, kAlignment, /*mostMeetings=*/0));
    for (auto [a, b] : llvm::zip_equal(kept, asked))
      EXPECT_EQ(a.offset, b.offset);
  }
}

TEST(Arena, NothingInUseTakesNoMoreThanTheLargest) {
  // Buffers that follow each other without overlap in time need the room of one.
  std::vector<ArenaBuffer> buffers(50);
  for (unsigned i = 0; i < 50; ++i) {
    buffers[i].bytes = 64 * (1 + i % 7);
    buffers[i].birth = i;
    buffers[i].known = {i};
    buffers[i].last = {i + 1};
  }
  EXPECT_EQ(assignArena(buffers, 0, kAlignment), 64 * 7);
}

TEST(Arena, FillsWhatTheLargestFirstLeavesOpen) {
  // By size alone 5 lies at 0, between two of 4 that need 8 at once with others: 4 above 5 above 4.
  std::vector<ArenaBuffer> buffers = {
      between(0, 3, 64 * 4), between(2, 5, 64 * 5), between(4, 7, 64 * 4), between(6, 9, 64 * 5),
      between(0, 1, 64 * 5), between(8, 9, 64 * 4), between(3, 3, 64 * 1), between(6, 6, 64 * 1),
  };
  int64_t end = assignArena(buffers, 0, kAlignment);
  expectApart(buffers, 0, end);
  EXPECT_LE(end, fullestRow(buffers));
}

TEST(Arena, TrainingStepTakesItsFullestRow) {
  // Forward keeps an activation per layer, of two sizes in turn, beside what is gone at once; backward takes them in
  // the other order and leaves gradients that live to the end.
  for (unsigned layers : {3, 8, 24, 61}) {
    std::vector<ArenaBuffer> buffers;
    unsigned end = 4 * layers + 2;
    for (unsigned layer = 0; layer < layers; ++layer) {
      unsigned forward = 2 * layer, backward = end - 2 - 2 * layer;
      buffers.push_back(between(forward, backward, 6400 + 640 * (layer % 2)));
      buffers.push_back(between(forward, forward + 1, 25600));
      buffers.push_back(between(backward - 1, backward, 12800 + 64 * (layer % 3)));
      buffers.push_back(between(backward, end, 1280 + 320 * (layer % 5)));
    }
    int64_t bound = fullestRow(buffers);
    EXPECT_LE(assignArena(buffers, 0, kAlignment), bound + bound / 50) << layers << " layers";
    expectApart(buffers, 0, bound + bound / 50);
  }
}

TEST(Arena, RandomLivesComeNearTheFullestRow) {
  std::mt19937 random(3);
  for (unsigned round = 0; round < 50; ++round) {
    std::vector<ArenaBuffer> buffers = randomBuffers(random, 100, 1, 80, 1);
    int64_t bound = fullestRow(buffers);
    EXPECT_LE(assignArena(buffers, 0, kAlignment), bound + bound / 20);
  }
}

TEST(Arena, SameBuffersSameOffsets) {
  std::mt19937 random(4);
  std::vector<ArenaBuffer> buffers = randomBuffers(random, 200, 2, 80, 3), again = buffers;
  assignArena(buffers, 0, kAlignment);
  assignArena(again, 0, kAlignment);
  for (size_t i = 0; i < buffers.size(); ++i)
    EXPECT_EQ(buffers[i].offset, again[i].offset);
}

TEST(Arena, ManyBuffersThatMeetFewOthers) {
  // As many as a long step has, each in use for at most 20 rows.
  std::mt19937 random(5);
  std::vector<ArenaBuffer> buffers;
  for (unsigned i = 0; i < 20000; ++i)
    buffers.push_back(between(i, i + std::uniform_int_distribution<unsigned>(0, 20)(random), 64 * (1 + i % 97)));
  int64_t end = assignArena(buffers, 0, kAlignment);
  int64_t bound = fullestRow(buffers);
  EXPECT_LE(end, bound + bound / 10);
}

TEST(Arena, PositionsApartShareBytes) {
  // Two classes of positions have a buffer each all the time, and one in common at first: it is as large as one of
  // them.
  std::vector<ArenaBuffer> buffers = {between(0, 9, 640), between(0, 9, 640), between(0, 2, 64)};
  for (ArenaBuffer &buffer : buffers)
    buffer.classes = llvm::SmallBitVector(2);
  buffers[0].classes.set(0);
  buffers[1].classes.set(1);
  buffers[2].classes.set();
  buffers[2].known = {0, 0};
  buffers[2].last = {3, 3};
  EXPECT_TRUE(endsBefore(buffers[0], buffers[1]));
  EXPECT_TRUE(endsBefore(buffers[1], buffers[0]));
  EXPECT_FALSE(endsBefore(buffers[2], buffers[1]));
  EXPECT_FALSE(endsBefore(buffers[0], buffers[2]));
  EXPECT_EQ(assignArena(buffers, {0, 0}, kAlignment), 640 + 64);
  // Where one class has more before its buffers, those of the other go on below that.
  buffers.pop_back();
  EXPECT_EQ(assignArena(buffers, {0, 128}, kAlignment), 128 + 640);
  EXPECT_EQ(buffers[0].offset, 0);
  EXPECT_EQ(buffers[1].offset, 128);
  // What stands before all buffers counts, too.
  EXPECT_EQ(assignArena(buffers, {2048, 0}, kAlignment), 2048 + 640);
  buffers.erase(buffers.begin());
  EXPECT_EQ(assignArena(buffers, {2048, 0}, kAlignment), 2048);
}

TEST(Arena, EndsBeforeAtThePositionsThatHaveBoth) {
  ArenaBuffer a, b;
  a.classes = llvm::SmallBitVector(4);
  b.classes = a.classes;
  a.classes.set(0);
  a.classes.set(2);
  b.classes.set(1);
  b.classes.set(2);
  // Of two streams: [class 0, class 2], [class 1, class 2].
  a.last = {9, 9, 3, 2};
  b.known = {0, 0, 3, 2};
  EXPECT_TRUE(endsBefore(a, b));
  b.known = {9, 9, 3, 1};
  EXPECT_FALSE(endsBefore(a, b));
}

TEST(Arena, RandomLivesOfSeveralClasses) {
  std::mt19937 random(7);
  for (unsigned round = 0; round < 200; ++round) {
    unsigned numClasses = 1 + round % 5, streams = 1 + round % 3;
    std::vector<ArenaBuffer> buffers = randomBuffers(random, 1 + round % 60, streams, 80, 1 + round % 7);
    std::vector<int64_t> bases;
    for (unsigned number = 0; number < numClasses; ++number)
      bases.push_back(64 * int64_t(random() % 50));
    for (ArenaBuffer &buffer : buffers) {
      buffer.classes = llvm::SmallBitVector(numClasses);
      buffer.classes.set(random() % numClasses);
      if (random() % 3 == 0)
        buffer.classes.set(random() % numClasses);
      if (buffer.classes.count() == 2) { // the same life at both
        for (auto *clock : {&buffer.last, &buffer.known})
          clock->append(llvm::SmallVector<unsigned, 2>(*clock));
      }
    }
    std::vector<ArenaBuffer> asked = buffers;
    int64_t end = assignArena(buffers, bases, kAlignment);
    expectApart(buffers, *llvm::min_element(bases), end, *llvm::max_element(bases));
    for (const ArenaBuffer &buffer : buffers)
      for (unsigned number : buffer.classes.set_bits())
        EXPECT_GE(buffer.offset, bases[number]);
    EXPECT_EQ(assignArena(asked, bases, kAlignment, /*mostMeetings=*/0), end);
    for (auto [a, b] : llvm::zip_equal(buffers, asked))
      EXPECT_EQ(a.offset, b.offset);
  }
}
