// The page of a timeline: ranks as rows, what they compute in colours, messages between them, bubbles and stashes.
#ifndef SHOAL_REPORT_TIMELINEPAGE_H
#define SHOAL_REPORT_TIMELINEPAGE_H

#include "shoal/Schedule/Timeline.h"

#include <string>

namespace shoal::report {

/// One file without scripts, or anything from elsewhere.
std::string writeTimelinePage(const pipe::Timeline &timeline);

} // namespace shoal::report

#endif // SHOAL_REPORT_TIMELINEPAGE_H
