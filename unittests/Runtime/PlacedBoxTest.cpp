// Flat ranges of row-major buffers as boxes, against counting element by element; and the runs that two boxes share.
#include "core/placed_box.h"
#include "shoal-rt/random.h"

#include <functional>
#include <map>
#include <numeric>

#include <gtest/gtest.h>

namespace shoal::rt {
namespace {

uint64_t product(const std::vector<uint64_t> &sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), uint64_t(1), std::multiplies<>());
}

// Calls call(coordinates in the logical tensor, offset) for each element of a box.
template <typename Call> void forEachElement(const PlacedBox &box, Call call) {
  for (uint64_t i = 0; i < box.elements(); ++i) {
    std::vector<uint64_t> at(box.shape.size());
    uint64_t rest = i, offset = box.offset;
    for (size_t d = box.shape.size(); d-- > 0;) {
      uint64_t index = rest % box.shape[d];
      rest /= box.shape[d];
      at[d] = box.start[d] + index;
      offset += index * box.strides[d];
    }
    call(at, offset);
  }
}

// A box of a shard of a tensor of up to four dimensions, some padded, some whole.
Box someBox(uint64_t seed) {
  Box box;
  std::array<uint32_t, 4> words = philox(seed, 0, 0);
  size_t rank = words[0] % 5;
  for (size_t d = 0; d < rank; ++d) {
    std::array<uint32_t, 4> draw = philox(seed, 1, d);
    uint64_t local = 1 + draw[0] % 4, start = draw[1] % 3 * local,
             valid = draw[2] % 3 == 0 ? draw[3] % (local + 1) : local;
    box.dims.push_back({start + valid, start, local, valid});
  }
  return box;
}

TEST(PlacedBox, RangesOfBuffersAreBoxes) {
  uint64_t checked = 0;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    Box box = someBox(seed);
    uint64_t elements = box.localElements();
    for (uint64_t begin = 0; begin < elements; begin += 1 + elements / 7)
      for (uint64_t end = begin; end <= elements; end += 1 + elements / 9) {
        const uint64_t at = 5;
        std::vector<int> seen(elements, 0); // of the buffer
        std::vector<PlacedBox> boxes = boxesOfRange(box, begin, end, at);
        ASSERT_LE(boxes.size(), box.dims.empty() ? 1 : 2 * box.dims.size() - 1);
        for (const PlacedBox &placed : boxes)
          forEachElement(placed, [&](const std::vector<uint64_t> &global, uint64_t offset) {
            uint64_t flat = offset - at + begin, rest = flat;
            ASSERT_LT(flat, elements);
            ++seen[flat];
            for (size_t d = box.dims.size(); d-- > 0;) {
              EXPECT_EQ(global[d], box.dims[d].start + rest % box.dims[d].local);
              rest /= box.dims[d].local;
            }
          });
        for (uint64_t flat = 0; flat < elements; ++flat) {
          bool real = flat >= begin && flat < end;
          uint64_t rest = flat;
          for (size_t d = box.dims.size(); d-- > 0;) {
            real &= rest % box.dims[d].local < box.dims[d].valid;
            rest /= box.dims[d].local;
          }
          ASSERT_EQ(seen[flat], real ? 1 : 0)
              << "seed " << seed << ", element " << flat << " of " << begin << " to " << end;
          ++checked;
        }
      }
  }
  EXPECT_GT(checked, 50000u);
}

TEST(PlacedBox, CommonRunsAreTheElementsOfBoth) {
  for (uint64_t seed = 0; seed < 2000; ++seed) {
    std::array<uint32_t, 4> words = philox(seed, 2, 0);
    size_t rank = words[0] % 4;
    PlacedBox boxes[2];
    for (size_t k = 0; k < 2; ++k) {
      std::vector<uint64_t> start, shape;
      for (size_t d = 0; d < rank; ++d) {
        std::array<uint32_t, 4> draw = philox(seed, 3 + k, d);
        start.push_back(draw[0] % 3);
        shape.push_back(1 + draw[1] % 4);
      }
      boxes[k] = PlacedBox::dense(start, shape);
    }
    // The second one lies in a buffer with a gap behind each row.
    if (rank > 1) {
      for (size_t d = 0; d + 1 < rank; ++d)
        boxes[1].strides[d] += words[1] % 2 * product(boxes[1].shape);
      boxes[1].offset = 11;
    }
    std::map<uint64_t, uint64_t> expected, got;
    std::map<std::vector<uint64_t>, uint64_t> first;
    forEachElement(boxes[0], [&](const std::vector<uint64_t> &at, uint64_t offset) { first[at] = offset; });
    forEachElement(boxes[1], [&](const std::vector<uint64_t> &at, uint64_t offset) {
      if (auto same = first.find(at); same != first.end())
        expected[same->second] = offset;
    });
    forEachCommonRun(boxes[0], boxes[1], [&](uint64_t a, uint64_t b, uint64_t count) {
      for (uint64_t i = 0; i < count; ++i)
        EXPECT_TRUE(got.emplace(a + i, b + i).second);
    });
    EXPECT_EQ(got, expected) << "seed " << seed;
  }
}

// What is contiguous on both sides is one run.
TEST(PlacedBox, RunsAreLong) {
  PlacedBox whole = PlacedBox::dense({0, 0, 0}, {4, 5, 6}), rows = PlacedBox::dense({1, 0, 0}, {2, 5, 6});
  int runs = 0;
  forEachCommonRun(whole, rows, [&](uint64_t a, uint64_t b, uint64_t count) {
    ++runs;
    EXPECT_EQ(a, 30u);
    EXPECT_EQ(b, 0u);
    EXPECT_EQ(count, 60u);
  });
  EXPECT_EQ(runs, 1);
}

} // namespace
} // namespace shoal::rt
