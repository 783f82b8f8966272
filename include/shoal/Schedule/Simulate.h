// A schedule in time.
#ifndef SHOAL_SCHEDULE_SIMULATE_H
#define SHOAL_SCHEDULE_SIMULATE_H

#include "shoal/Schedule/Costs.h"
#include "shoal/Schedule/Timeline.h"

namespace shoal::pipe {

/// Each rank does its actions in order, each as soon as the rank is free and what it needs is there. Messages run
/// beside the computations: one starts where the schedule sends it (behind the action that makes it, without
/// messages) and when the message before it between the same two ranks has ended; to receive it takes no time of a
/// rank, which only waits where it computes with it. Nothing where the schedule has a cycle: `check` says which.
std::optional<Timeline> simulate(const Schedule &schedule, const Costs &costs);

/// Replaces the messages of a schedule by those that its dependencies need. Each is sent right behind the action that
/// makes it and received before the first action that begins, by `costs`, when it has been sent; messages between two
/// actions are joined. Both ends stand in one order of all ranks' events, so the ranks meet whatever the order of the
/// actions. False where that has a cycle.
bool addMessages(Schedule &schedule, const Costs &costs);

} // namespace shoal::pipe

#endif // SHOAL_SCHEDULE_SIMULATE_H
