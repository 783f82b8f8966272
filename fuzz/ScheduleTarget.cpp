// Files of pipeline schedules, text and JSON: read or refused with one line that names the place. What is read is
// written and read back as the same, checked, and, where it can run, simulated and given messages.
#include "Target.h"

#include "shoal/Schedule/Check.h"
#include "shoal/Schedule/Simulate.h"
#include "shoal/Schedule/Text.h"

using namespace shoal;

namespace {

// Larger schedules are read, but not checked: the fuzzer should not wait for them.
constexpr int64_t kMostWork = 1 << 14;

void requireLine(const std::string &error) {
  fuzz::require(!error.empty(), "what is refused must say why");
  for (unsigned char c : error)
    fuzz::require(c >= 0x20 && c != 0x7f, "an error must be one line of text");
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::string error;
  std::optional<pipe::Schedule> schedule =
      pipe::readSchedule({reinterpret_cast<const char *>(data), size}, "schedule", error);
  if (!schedule) {
    fuzz::require(error.starts_with("schedule:"), "an error must name the place");
    requireLine(error);
    return 0;
  }
  for (const std::string &text : {pipe::writeText(*schedule), pipe::writeJson(*schedule)})
    fuzz::require(pipe::readSchedule(text, "schedule", error) == schedule, "what is written must be read as the same");
  if (schedule->shape.getStages() * schedule->shape.microbatches > kMostWork)
    return 0;
  if (std::optional<pipe::Fault> fault = pipe::check(*schedule)) {
    requireLine(fault->message);
    return 0;
  }
  pipe::Costs costs = pipe::Costs::uniform(schedule->shape);
  fuzz::require(pipe::simulate(*schedule, costs).has_value(), "what can run must be simulated");
  fuzz::require(pipe::addMessages(*schedule, costs) && !pipe::check(*schedule), "messages must keep it so");
  return 0;
}
