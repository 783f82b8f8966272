// The files of a simulated timeline: a page with ranks as rows, what they compute in colours, messages between them,
// bubbles and stashes, and a Chrome trace. Programs write the same page of what they measured.
#ifndef SHOAL_REPORT_TIMELINEPAGE_H
#define SHOAL_REPORT_TIMELINEPAGE_H

#include "shoal/Schedule/Timeline.h"

#include "shoal-rt/timeline.h"

#include <string>

namespace shoal::report {

/// As programs have it.
rt::Timeline toTimeline(const pipe::Timeline &timeline);

/// One file without scripts, or anything from elsewhere.
std::string writeTimelinePage(const pipe::Timeline &timeline);

/// The Trace Event Format: a process per rank, for chrome://tracing and Perfetto. `microseconds` of one unit.
std::string writeChromeTrace(const pipe::Timeline &timeline, double microseconds = 1);

} // namespace shoal::report

#endif // SHOAL_REPORT_TIMELINEPAGE_H
