// How often each element is held, minus once, is a function that changes at the corners of the boxes and of the tensor
// alone. It is the sum of these changes up to an element, so it is zero everywhere if and only if the changes at each
// corner cancel, and where they do not, the first such corner is the first element that is held too often or not at
// all. (The same in two dimensions: "perfect rectangle".)
#include "core/box_cover.h"
#include "core/error.h"

#include <algorithm>
#include <compare>
#include <utility>

namespace shoal::rt {
namespace {

// What a box adds, along the dimensions that are left.
struct Change {
  const IndexBox *box;
  int64_t count;
};

class CornerSum {
public:
  CornerSum(std::vector<size_t> dims, size_t rank) : dims_(std::move(dims)), corner_(rank, 0) {}

  // What the changes sum up to at the first corner where that is not zero; zero where there is none.
  int64_t first(std::vector<Change> changes, size_t depth) {
    cancel(changes, depth);
    if (changes.empty() || depth == dims_.size())
      return changes.empty() ? 0 : changes.front().count;
    size_t dim = dims_[depth];
    std::vector<std::pair<uint64_t, Change>> planes; // each box begins at one and ends at another
    for (auto [box, count] : changes) {
      planes.push_back({box->start[dim], {box, count}});
      planes.push_back({box->start[dim] + box->shape[dim], {box, -count}});
    }
    std::ranges::sort(planes, {}, &std::pair<uint64_t, Change>::first);
    for (auto at = planes.begin(); at != planes.end();) {
      corner_[dim] = at->first;
      std::vector<Change> here;
      for (; at != planes.end() && at->first == corner_[dim]; ++at)
        here.push_back(at->second);
      if (int64_t count = first(std::move(here), depth + 1))
        return count;
    }
    return 0;
  }
  const std::vector<uint64_t> &corner() const { return corner_; }

private:
  // Boxes that are equal along the dimensions left become one, or none: neighbours of a grid do so at once.
  void cancel(std::vector<Change> &changes, size_t depth) const {
    auto order = [&](const Change &a, const Change &b) {
      for (size_t i = depth; i < dims_.size(); ++i) {
        size_t dim = dims_[i];
        if (a.box->start[dim] != b.box->start[dim])
          return a.box->start[dim] <=> b.box->start[dim];
        if (a.box->shape[dim] != b.box->shape[dim])
          return a.box->shape[dim] <=> b.box->shape[dim];
      }
      return std::strong_ordering::equal;
    };
    std::ranges::sort(changes, [&](const Change &a, const Change &b) { return order(a, b) < 0; });
    std::vector<Change> sums;
    for (const Change &change : changes)
      if (sums.empty() || order(sums.back(), change) != 0)
        sums.push_back(change);
      else
        sums.back().count += change.count;
    std::erase_if(sums, [](const Change &sum) { return sum.count == 0; });
    changes = std::move(sums);
  }

  std::vector<size_t> dims_;
  std::vector<uint64_t> corner_;
};

} // namespace

std::vector<size_t> cutDimensions(const IndexTensor &tensor) {
  std::vector<size_t> dims;
  for (size_t d = 0; d < tensor.shape.size(); ++d)
    if (std::ranges::any_of(tensor.boxes, [&](const IndexBox &box) { return box.shape[d] != tensor.shape[d]; }))
      dims.push_back(d);
  return dims;
}

std::optional<std::string> findCoverCost(const IndexTensor &tensor) {
  constexpr uint64_t kMostCorners = uint64_t(1) << 25;
  size_t cut = cutDimensions(tensor).size();
  if (cut < 25 && tensor.boxes.size() <= kMostCorners >> cut)
    return std::nullopt;
  return cat("its boxes must have at most ", kMostCorners, " corners where they are cut, got: ", tensor.boxes.size(),
             " boxes, cut along ", cut, " dimensions");
}

std::optional<CoverFault> findCoverFault(const IndexTensor &tensor) {
  if (std::ranges::count(tensor.shape, 0u) != 0)
    return std::nullopt;
  IndexBox whole{"", "", std::vector<uint64_t>(tensor.shape.size(), 0), tensor.shape};
  std::vector<Change> changes{{&whole, -1}};
  for (const IndexBox &box : tensor.boxes)
    changes.push_back({&box, 1});
  CornerSum sum(cutDimensions(tensor), tensor.shape.size());
  int64_t count = sum.first(std::move(changes), 0);
  return count == 0 ? std::nullopt : std::optional(CoverFault{sum.corner(), uint64_t(count + 1)});
}

} // namespace shoal::rt
