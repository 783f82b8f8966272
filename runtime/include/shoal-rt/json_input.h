// JSON that comes from outside. Before anything is read from it, its nesting is bounded and no name
// stands twice in one object: readers differ in which of the two they take.
#ifndef SHOAL_RT_JSON_INPUT_H
#define SHOAL_RT_JSON_INPUT_H

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

namespace shoal::rt {

// Sorted by name: an ordered one searches all names for each that is added.
using InputJson = nlohmann::json;

struct ParsedObject {
  InputJson value;
  std::string problem; // what is wrong, to be put behind the name of the text; empty when `value` is an object
};

// A value as a message shows it, in ASCII.
inline std::string toMessage(const InputJson &value) {
  return value.dump(-1, ' ', /*ensure_ascii=*/true, InputJson::error_handler_t::replace);
}

// Needs no exceptions. Objects and arrays may be nested `maxDepth` deep, the object itself included.
inline ParsedObject parseJsonObject(std::string_view text, int maxDepth = 8) {
  std::vector<std::set<std::string>> open; // names of the objects around
  bool deep = false;
  std::string twice; // the first name that is there again
  auto watch = [&](int depth, InputJson::parse_event_t event, InputJson &value) {
    using Event = InputJson::parse_event_t;
    if (event == Event::object_start || event == Event::array_start)
      deep |= depth >= maxDepth;
    if (event == Event::object_start)
      open.emplace_back();
    if (event == Event::object_end)
      open.pop_back();
    if (event == Event::key)
      if (!open.back().insert(value.get<std::string>()).second && twice.empty())
        twice = value.dump(-1, ' ', /*ensure_ascii=*/true);
    return !deep && twice.empty();
  };
  ParsedObject parsed;
  parsed.value = InputJson::parse(text.begin(), text.end(), watch, /*allow_exceptions=*/false);
  if (!twice.empty())
    parsed.problem = "holds " + twice + " twice";
  else if (deep)
    parsed.problem = "is nested more than " + std::to_string(maxDepth) + " deep";
  else if (!parsed.value.is_object())
    parsed.problem = "is not a JSON object";
  return parsed;
}

} // namespace shoal::rt

#endif // SHOAL_RT_JSON_INPUT_H
