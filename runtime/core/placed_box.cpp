// Cuts flat ranges of row-major buffers into boxes.
#include "core/placed_box.h"

#include <utility>

namespace shoal::rt {
namespace {

std::vector<uint64_t> rowMajorStrides(const std::vector<uint64_t> &shape) {
  std::vector<uint64_t> strides(shape.size(), 1);
  for (size_t d = shape.size(); d-- > 1;)
    strides[d - 1] = strides[d] * shape[d];
  return strides;
}

class RangeCutter {
public:
  RangeCutter(const Box &box, uint64_t begin, uint64_t at) : box_(box), begin_(begin), at_(at) {
    for (const BoxDim &dim : box.dims)
      local_.push_back(dim.local);
    strides_ = rowMajorStrides(local_);
  }

  // Elements [begin, end) of what is left of the buffer when the dimensions before `dim` are at the indices taken.
  void cut(size_t dim, uint64_t begin, uint64_t end) {
    if (begin >= end)
      return;
    if (dim == local_.size())
      return emit();
    uint64_t row = strides_[dim];
    auto part = [&](uint64_t index, uint64_t from, uint64_t to) {
      taken_.push_back({index, index + 1});
      cut(dim + 1, from - index * row, to - index * row);
      taken_.pop_back();
    };
    if (begin % row != 0) {
      uint64_t index = begin / row, upTo = std::min(end, (index + 1) * row);
      part(index, begin, upTo);
      begin = upTo;
    }
    if (uint64_t first = begin / row, last = end / row; first < last) {
      taken_.push_back({first, last});
      emit();
      taken_.pop_back();
      begin = last * row;
    }
    if (begin < end)
      part(begin / row, begin, end);
  }

  std::vector<PlacedBox> take() { return std::move(boxes_); }

private:
  // The indices taken, and all of the dimensions behind them, without padding.
  void emit() {
    PlacedBox placed;
    uint64_t offset = 0;
    for (size_t d = 0; d < local_.size(); ++d) {
      const BoxDim &dim = box_.dims[d];
      auto [first, last] = d < taken_.size() ? taken_[d] : std::pair<uint64_t, uint64_t>{0, dim.local};
      last = std::min(last, dim.valid);
      if (first >= last)
        return;
      placed.start.push_back(dim.start + first);
      placed.shape.push_back(last - first);
      offset += first * strides_[d];
    }
    placed.strides = strides_;
    placed.offset = offset - begin_ + at_;
    boxes_.push_back(std::move(placed));
  }

  const Box &box_;
  uint64_t begin_, at_;
  std::vector<uint64_t> local_, strides_;
  std::vector<std::pair<uint64_t, uint64_t>> taken_; // first and last index of the dimensions so far
  std::vector<PlacedBox> boxes_;
};

} // namespace

uint64_t PlacedBox::elements() const {
  uint64_t count = 1;
  for (uint64_t size : shape)
    count *= size;
  return count;
}

PlacedBox PlacedBox::dense(std::vector<uint64_t> start, std::vector<uint64_t> shape) {
  std::vector<uint64_t> strides = rowMajorStrides(shape);
  return {std::move(start), std::move(shape), std::move(strides), 0};
}

std::vector<PlacedBox> boxesOfRange(const Box &box, uint64_t begin, uint64_t end, uint64_t at) {
  if (box.validElements() == 0)
    return {};
  RangeCutter cutter(box, begin, at);
  cutter.cut(0, begin, end);
  return cutter.take();
}

} // namespace shoal::rt
