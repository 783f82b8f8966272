// The parts of `check`, in the order in which they rely on each other.
#ifndef SHOAL_LIB_SCHEDULE_CHECK_H
#define SHOAL_LIB_SCHEDULE_CHECK_H

#include "shoal/Schedule/Check.h"

namespace shoal::pipe {

/// "rank 2: F3".
std::string place(const Schedule &schedule, int64_t rank, const Action &action);

/// Where ranks wait for each other in a circle: `next` has per rank the one that it waits for, -1 where it does not
/// wait, `at` its action. Found from the first rank that waits.
Fault describeCycle(const Schedule &schedule, llvm::StringRef what, const std::vector<int64_t> &next,
                    const std::vector<size_t> &at, const std::vector<std::string> &why);

/// Every message has its other end, in order; then the ranks meet. Of a schedule that is complete.
std::optional<Fault> checkMessages(const Schedule &schedule);

} // namespace shoal::pipe

#endif // SHOAL_LIB_SCHEDULE_CHECK_H
