// Schedules of the tests, by generator or by hand.
#ifndef SHOAL_UNITTESTS_SCHEDULE_TESTSUPPORT_H
#define SHOAL_UNITTESTS_SCHEDULE_TESTSUPPORT_H

#include "shoal/Schedule/Check.h"
#include "shoal/Schedule/Generate.h"
#include "shoal/Schedule/Simulate.h"
#include "shoal/Schedule/Text.h"

#include "gtest/gtest.h"

namespace shoal::pipe {

inline Schedule make(llvm::StringRef name, int64_t ranks, int64_t microbatches, int64_t chunks = 1,
                     const GenerateOptions &options = {}) {
  std::string error;
  std::optional<Schedule> schedule = generate(name, {ranks, microbatches, chunks}, options, error);
  EXPECT_TRUE(schedule.has_value()) << error;
  return schedule.value_or(Schedule{});
}

inline Schedule read(llvm::StringRef text) {
  std::string error;
  std::optional<Schedule> schedule = readSchedule(text, "s.txt", error);
  EXPECT_TRUE(schedule.has_value()) << error;
  return schedule.value_or(Schedule{});
}

inline std::string readError(llvm::StringRef text) {
  std::string error;
  EXPECT_FALSE(readSchedule(text, "s.txt", error).has_value());
  EXPECT_EQ(error.find('\n'), std::string::npos) << error;
  return error;
}

inline std::string checkError(const Schedule &schedule) {
  std::optional<Fault> fault = check(schedule);
  return fault ? fault->message : "";
}

/// Durations of F, B = I + W, I and W of a rank's whole share.
inline StageCosts durations(double forward, double input, double weight) {
  StageCosts costs;
  costs.forward = forward;
  costs.backward = input + weight;
  costs.backwardInput = input;
  costs.backwardWeight = weight;
  return costs;
}

} // namespace shoal::pipe

#endif // SHOAL_UNITTESTS_SCHEDULE_TESTSUPPORT_H
