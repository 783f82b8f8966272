// The generators, by the family that they belong to.
#ifndef SHOAL_LIB_SCHEDULE_GENERATE_H
#define SHOAL_LIB_SCHEDULE_GENERATE_H

#include "shoal/Schedule/Generate.h"

namespace shoal::pipe {

/// Lists of actions without the optimizer's, and the peak. What they refuse is in `error`.
using Generator = std::optional<Schedule> (*)(const Shape &shape, const GenerateOptions &options, std::string &error);

std::optional<Schedule> generateZbH1(const Shape &shape, const GenerateOptions &options, std::string &error);
std::optional<Schedule> generateZbH2(const Shape &shape, const GenerateOptions &options, std::string &error);
std::optional<Schedule> generateZbV(const Shape &shape, const GenerateOptions &options, std::string &error);

/// A schedule in which every rank does, at each time, what its rule prefers of what is there: I, then F while the
/// stash is below `limit`, then W. `patience`: a rank leaves W for what it knows to arrive within this part of W's
/// duration. Nothing where the ranks get stuck.
struct ListRule {
  bool forwardFirst = false;
  double patience = 0;
};
std::optional<Schedule> listSchedule(const Shape &shape, const Costs &costs, int64_t limit, const ListRule &rule);

/// The candidate that is done first: of which no rank is longer busy from its own start on or, where updates wait for
/// the norm, whose makespan is least. The first one among equals; its peak is what it has.
Schedule takeShortest(Schedule published, int64_t limit, const GenerateOptions &options);

} // namespace shoal::pipe

#endif // SHOAL_LIB_SCHEDULE_GENERATE_H
