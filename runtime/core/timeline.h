// The timeline of a pipeline's step as it was measured, for `--timeline`: rows by what the program says they are part
// of (Instr::scope). Each rank tells its own, and rank 0 puts them together.
#ifndef SHOAL_RT_CORE_TIMELINE_H
#define SHOAL_RT_CORE_TIMELINE_H

#include "core/trace.h"
#include "shoal-rt/report.h"
#include "shoal-rt/timeline.h"

#include <string>
#include <vector>

namespace shoal::rt {

// Whether the program says of any row what it is part of.
bool hasScopes(const Program &program);

// What the rank at `position` did in a step, as JSON for `joinTimeline`. `zero`: as for Trace::text.
std::string tellRank(const Program &program, uint32_t position, const Trace &trace, uint64_t step, int64_t zero);

// All ranks, by MPI rank.
struct MeasuredTimeline {
  Timeline timeline; // in milliseconds
  ReportJson costs;  // mean seconds per stage and part, as shoalc --pipeline-costs reads them
};
// Costs are of `stages`; of a program that does not say how many it has (0), of those that compute, as far as they are
// numbered without a gap.
MeasuredTimeline joinTimeline(const std::vector<std::string> &ranks, int64_t stages);

} // namespace shoal::rt

#endif // SHOAL_RT_CORE_TIMELINE_H
