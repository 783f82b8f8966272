// Whether a schedule can run: complete, in an order that its dependencies allow, without a deadlock, within its peak.
#ifndef SHOAL_SCHEDULE_CHECK_H
#define SHOAL_SCHEDULE_CHECK_H

#include "shoal/Schedule/Schedule.h"

namespace shoal::pipe {

/// What is wrong. A cycle is in the message as "rank 0: B0 -> rank 1: F1 -> rank 0: B0"; `notes` say why each waits
/// for the next.
struct Fault {
  std::string message;
  std::vector<std::string> notes;
  int64_t rank = -1; ///< in whose list; -1: of the whole schedule
};

/// The first fault, in time and memory linear in the schedule:
/// - each stage has F and either B or I and W of each micro-batch once, on the rank that has the stage, in this order,
///   so that every gradient is summed once, before the norm and the update; or each has F alone, as evaluation does,
///   where the step has no gradients;
/// - every message has its other end, and those from one rank to another are received in the order in which they are
///   sent;
/// - the ranks come to their ends when a send ends with its receive (rendezvous; joined messages wait together);
/// - no rank stashes more than the peak that the schedule states.
/// A schedule without messages is judged by its dependencies alone.
std::optional<Fault> check(const Schedule &schedule, bool hasGradients = false);

/// Per rank the most micro-batches (times chunks) between F and B or W at once.
std::vector<int64_t> measurePeak(const Schedule &schedule);

} // namespace shoal::pipe

#endif // SHOAL_SCHEDULE_CHECK_H
