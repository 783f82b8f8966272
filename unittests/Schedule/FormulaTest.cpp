// Makespans, idle times and peaks against the formulas of the publications. F, B = I + W are durations of one rank's
// whole share of a micro-batch, all its chunks; idle time of the makespan is the makespan without what a rank is
// busy.
#include "TestSupport.h"

#include <algorithm>

namespace shoal::pipe {
namespace {

struct Times {
  double forward, input, weight;
  double getWork() const { return forward + input + weight; }
};

// The zero bubble formulas ask for W <= min(F, I).
const Times kTimes[] = {{1, 1, 1}, {2, 2, 1}, {2, 3, 1}, {3, 2, 2}, {3, 4, 3}, {1, 1, 0.5}};

struct Measured {
  double idle = 0, ownIdle = 0; // of the makespan on each rank, since all are equally busy; the most of a rank's own
  Schedule schedule;
  Timeline timeline;
};

Measured measure(const char *name, int64_t ranks, int64_t microbatches, const Times &times, int64_t chunks = 1,
                 Optimizer optimizer = Optimizer::None) {
  std::string error;
  StageCosts rank = durations(times.forward, times.input, times.weight);
  Costs costs = Costs::uniform({ranks, microbatches, chunks}, rank);
  Measured measured;
  measured.schedule = make(name, ranks, microbatches, chunks, {optimizer, costs});
  measured.timeline = *simulate(measured.schedule, costs);
  for (const RankTimeline &line : measured.timeline.ranks) {
    EXPECT_NEAR(line.busy, microbatches * times.getWork(), 1e-9);
    measured.ownIdle = std::max(measured.ownIdle, line.getIdle());
  }
  measured.idle = measured.timeline.getMakespan() - microbatches * times.getWork();
  return measured;
}

template <typename Body> void forShapes(int64_t mostRanks, int64_t mostMicrobatches, Body body) {
  for (const Times &times : kTimes)
    for (int64_t ranks = 1; ranks <= mostRanks; ++ranks)
      for (int64_t microbatches = 1; microbatches <= mostMicrobatches; ++microbatches) {
        SCOPED_TRACE("P=" + std::to_string(ranks) + " M=" + std::to_string(microbatches) +
                     " F=" + std::to_string(times.forward) + " I=" + std::to_string(times.input) +
                     " W=" + std::to_string(times.weight));
        body(times, ranks, microbatches);
      }
}

TEST(Formulas, MakespansOfEqualPasses) {
  const Times ones{1, 1, 1};
  EXPECT_NEAR(measure("gpipe", 4, 8, ones).timeline.getMakespan(), 33, 1e-9);
  EXPECT_NEAR(measure("1f1b", 4, 8, ones).timeline.getMakespan(), 33, 1e-9);
  EXPECT_NEAR(measure("interleaved", 4, 8, ones, 2).timeline.getMakespan(), 28.5, 1e-9);
  EXPECT_NEAR(measure("zb-h1", 4, 8, ones).timeline.getMakespan(), 27, 1e-9);
}

TEST(Formulas, Naive) {
  forShapes(8, 6, [](const Times &times, int64_t ranks, int64_t microbatches) {
    Measured it = measure("naive", ranks, microbatches, times);
    EXPECT_NEAR(it.timeline.getBubble(), double(ranks - 1) / ranks, 1e-9);
    EXPECT_EQ(measurePeak(it.schedule), std::vector<int64_t>(ranks, 1));
  });
}

TEST(Formulas, GpipeAnd1F1B) {
  forShapes(8, 24, [](const Times &times, int64_t ranks, int64_t microbatches) {
    double bubble = double(ranks - 1) / (microbatches + ranks - 1);
    Measured gpipe = measure("gpipe", ranks, microbatches, times), one = measure("1f1b", ranks, microbatches, times);
    EXPECT_NEAR(gpipe.idle, (ranks - 1) * times.getWork(), 1e-9);
    EXPECT_NEAR(gpipe.timeline.getBubble(), bubble, 1e-9);
    EXPECT_NEAR(one.idle, (ranks - 1) * times.getWork(), 1e-9);
    EXPECT_EQ(measurePeak(gpipe.schedule), std::vector<int64_t>(ranks, microbatches));
    for (int64_t rank = 0; rank < ranks; ++rank)
      EXPECT_EQ(one.timeline.ranks[rank].peakStash, std::min(microbatches, ranks - rank));
  });
}

TEST(Formulas, Interleaved) {
  for (int64_t chunks = 1; chunks <= 4; ++chunks)
    forShapes(8, 24, [&](const Times &times, int64_t ranks, int64_t microbatches) {
      int64_t rounds = std::max<int64_t>(1, microbatches / ranks);
      if (microbatches % rounds)
        return;
      Measured it = measure("interleaved", ranks, microbatches, times, chunks);
      // Too few micro-batches leave each chunk but the first to wait for what the ranks behind have not yet done.
      int64_t lacking = std::max<int64_t>(0, ranks - microbatches);
      EXPECT_NEAR(it.idle, (ranks - 1 + lacking * (chunks - 1)) * times.getWork() / chunks, 1e-9) << "v=" << chunks;
      for (int64_t rank = 0; rank < ranks; ++rank) {
        int64_t warmup = (chunks - 1) * (microbatches / rounds) + 2 * (ranks - 1 - rank);
        EXPECT_EQ(it.timeline.ranks[rank].peakStash, std::min(warmup + 1, chunks * microbatches));
      }
    });
}

TEST(Formulas, ZeroBubbleH1) {
  forShapes(8, 24, [](const Times &times, int64_t ranks, int64_t microbatches) {
    Measured it = measure("zb-h1", ranks, microbatches, times);
    EXPECT_EQ(measurePeak(it.schedule), std::vector<int64_t>(ranks, std::min(ranks, microbatches)));
    if (microbatches < ranks)
      return;
    EXPECT_NEAR(it.idle, (ranks - 1) * (times.forward + times.input - times.weight), 1e-9);
    EXPECT_NEAR(it.ownIdle, it.idle, 1e-9) << "of the first rank";
  });
}

TEST(Formulas, ZeroBubbleH2) {
  forShapes(8, 24, [](const Times &times, int64_t ranks, int64_t microbatches) {
    if (microbatches < 2 * ranks - 1)
      return; // fewer do not fill the pipeline twice
    Measured it = measure("zb-h2", ranks, microbatches, times);
    EXPECT_NEAR(it.ownIdle, (ranks - 1) * (times.forward + times.input - 2 * times.weight), 1e-9);
    EXPECT_EQ(measurePeak(it.schedule), std::vector<int64_t>(ranks, 2 * ranks - 1));
  });
}

// An update that waits for the norm of all ranks takes back what ZB-H2 gains over ZB-H1 where passes are equal.
TEST(Formulas, NormTakesBackTheSecondHalf) {
  const Times ones{1, 1, 1};
  for (int64_t ranks = 2; ranks <= 8; ++ranks)
    for (int64_t microbatches : {2 * ranks - 1, 2 * ranks, 4 * ranks}) {
      Measured free = measure("zb-h2", ranks, microbatches, ones, 1, Optimizer::Update);
      Measured h2 = measure("zb-h2", ranks, microbatches, ones, 1, Optimizer::NormAndUpdate);
      Measured h1 = measure("zb-h1", ranks, microbatches, ones, 1, Optimizer::NormAndUpdate);
      EXPECT_NEAR(free.ownIdle, 0, 1e-9);
      EXPECT_NEAR(h2.timeline.getMakespan(), h1.timeline.getMakespan(), 1e-9);
      EXPECT_NEAR(h2.ownIdle, ranks - 1, 1e-9) << "of the first rank, which waits for the last";
    }
}

TEST(Formulas, ZeroBubbleV) {
  const Times ones{1, 1, 1};
  for (int64_t ranks = 1; ranks <= 8; ++ranks)
    for (int64_t microbatches = 2 * ranks - 1; microbatches <= 4 * ranks; ++microbatches) {
      Measured it = measure("zb-v", ranks, microbatches, ones, 2);
      EXPECT_NEAR(it.ownIdle, 0, 1e-9) << ranks << " " << microbatches;
      EXPECT_EQ(measurePeak(it.schedule), std::vector<int64_t>(ranks, 2 * ranks));
    }
}

TEST(Formulas, Messages) {
  // Twice per micro-batch and border between ranks: P-1 borders, vP-1 of interleaved chunks, 2P-2 where the second
  // chunk runs back.
  StageCosts bytes;
  bytes.messageBytes = 1000;
  for (auto [name, chunks, borders] : {std::tuple("1f1b", 1, 3), {"interleaved", 3, 11}, {"zb-v", 2, 6}}) {
    Schedule schedule = make(name, 4, 8, chunks);
    Timeline timeline = *simulate(schedule, Costs::uniform(schedule.shape, bytes));
    EXPECT_EQ(timeline.transfers.size(), size_t(2 * 8 * borders)) << name;
    EXPECT_EQ(timeline.getTransferBytes(), 2 * 8 * borders * 1000) << name;
  }
}

} // namespace
} // namespace shoal::pipe
