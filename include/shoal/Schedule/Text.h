// Schedules as text and JSON, one line per rank: what the op pipe.schedule prints, and what users write by hand.
//
//     # comment
//     placement = vee            (loop when absent)
//     microbatches = 4           (as many as are named, when absent)
//     chunks = 2                 (the same)
//     peak = 4 4                 (per rank; nothing is promised when absent)
//     0: F0 F1 SF0>1 F0.1 ...    ("0:" may be absent)
//     1: ...
//
// F, B, I, W and the number of the micro-batch; of chunk 1 "F0.1" or "f0", of stage 5 "F0@5". SF0 sends what F0
// makes, SB0 what B0 or I0 makes; RF0 and RB0 receive what F0, or B0 or I0, read; ">1", "<1" name the other rank and
// may be absent. Messages in braces progress together. N is the exchange of the global norm, U the update. Blanks
// between actions may be absent.
//
// In JSON the lines are strings of an array, or of "ranks" in an object with the keys above. In place of a line may
// stand an array of strings, of objects {"action": "SF", "microbatch": 0, "chunk": 0 | "stage": 0, "peer": 1}, and of
// arrays: messages in braces.
#ifndef SHOAL_SCHEDULE_TEXT_H
#define SHOAL_SCHEDULE_TEXT_H

#include "shoal/Schedule/Schedule.h"

namespace shoal::pipe {

/// Of a file; a line of a schedule at its largest is far below.
inline constexpr uint64_t kMostScheduleBytes = uint64_t(1) << 28;

/// Reads text or JSON. What is wrong comes as one line, "NAME:LINE: message". `lines`: where each rank stands.
std::optional<Schedule> readSchedule(llvm::StringRef text, llvm::StringRef name, std::string &error,
                                     std::vector<int64_t> *lines = nullptr);

/// Reads the actions of one rank whose shape is known.
bool readRank(llvm::StringRef text, const Shape &shape, int64_t rank, std::vector<Action> &actions, std::string &error);

/// The actions of one rank on one line.
std::string writeRank(const Schedule &schedule, int64_t rank);
std::string writeText(const Schedule &schedule);
std::string writeJson(const Schedule &schedule);

} // namespace shoal::pipe

#endif // SHOAL_SCHEDULE_TEXT_H
