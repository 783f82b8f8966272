// What runs when on each rank, as simulated. Its files are written by shoal/Report/TimelinePage.h.
#ifndef SHOAL_SCHEDULE_TIMELINE_H
#define SHOAL_SCHEDULE_TIMELINE_H

#include "shoal/Schedule/Schedule.h"

namespace shoal::pipe {

struct Span {
  ActionKind kind;
  int32_t stage = -1, microbatch = -1;
  double begin = 0, end = 0;

  bool operator==(const Span &) const = default;
};

struct Transfer {
  int32_t from = 0, to = 0; // ranks
  bool backward = false;
  int32_t stage = 0, microbatch = 0; // the stage that sends
  int64_t bytes = 0;
  double begin = 0, end = 0;
};

struct RankTimeline {
  std::vector<Span> spans; // in order
  double busy = 0;         // of its computations and updates; to wait for the norm is idle
  int64_t peakStash = 0;   // micro-batches times chunks
  int64_t peakBytes = 0;   // of stashes

  double getBegin() const { return spans.empty() ? 0 : spans.front().begin; }
  double getEnd() const { return spans.empty() ? 0 : spans.back().end; }
  /// Between its own first start and last end: what a step costs where the next one follows without a barrier.
  double getIdle() const { return getEnd() - getBegin() - busy; }
};

struct Timeline {
  std::string title, unit; // "1f1b"; "ms", or empty where costs have none
  std::string note;        // one sentence for people: where the costs come from
  std::vector<std::string> facts; // of the plan: its mesh, its options
  Shape shape;
  std::vector<RankTimeline> ranks;
  std::vector<Transfer> transfers; // by sender and time

  /// From the first start to the last end of all ranks.
  double getMakespan() const;
  /// What of the ranks' time in the makespan is idle, 0 to 1.
  double getBubble() const;
  int64_t getTransferBytes() const;
};

} // namespace shoal::pipe

#endif // SHOAL_SCHEDULE_TIMELINE_H
