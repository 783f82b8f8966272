// Names of mesh axes. The compiler may split an axis into parts, "tensor.0", "tensor.1", in its place; users
// know the axis.
#ifndef SHOAL_RT_AXIS_NAMES_H
#define SHOAL_RT_AXIS_NAMES_H

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace shoal::rt {

// The axis that a part was split from; any other name as it is.
inline std::string_view axisOrigin(std::string_view name) {
  size_t dot = name.rfind('.');
  bool isPart = dot != std::string_view::npos && dot > 0 && dot + 1 < name.size() &&
                name.find_first_not_of("0123456789", dot + 1) == std::string_view::npos;
  return isPart ? name.substr(0, dot) : name;
}

// Names of axes with all the parts of one, in order, as that one; `mesh` holds the names of all axes.
inline std::vector<std::string> mergeAxisParts(const std::vector<std::string> &names,
                                               const std::vector<std::string> &mesh) {
  std::vector<std::string> merged;
  for (size_t i = 0; i < names.size();) {
    std::string origin(axisOrigin(names[i]));
    std::vector<std::string> parts;
    for (const std::string &axis : mesh)
      if (axis != origin && axisOrigin(axis) == origin)
        parts.push_back(axis);
    bool isWhole = parts.size() > 1 && parts.size() <= names.size() - i &&
                   std::equal(parts.begin(), parts.end(), names.begin() + i);
    merged.push_back(isWhole ? origin : names[i]);
    i += isWhole ? parts.size() : 1;
  }
  return merged;
}

} // namespace shoal::rt

#endif // SHOAL_RT_AXIS_NAMES_H
