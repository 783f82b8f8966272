// Boxes that hold each element of a tensor once are known from those that do not, as counting would, and in a time that
// no arrangement of them makes long.
#include "core/box_cover.h"
#include "core/placed_box.h"

#include <algorithm>
#include <chrono>
#include <random>

#include <gtest/gtest.h>

namespace shoal::rt {
namespace {

std::optional<CoverFault> count(const IndexTensor &tensor) {
  auto whole = PlacedBox::dense(std::vector<uint64_t>(tensor.shape.size(), 0), tensor.shape);
  std::vector<uint64_t> held(whole.elements(), 0);
  for (const IndexBox &box : tensor.boxes)
    forEachCommonRun(whole, PlacedBox::dense(box.start, box.shape), [&](uint64_t at, uint64_t, uint64_t run) {
      for (uint64_t i = 0; i < run; ++i)
        ++held[at + i];
    });
  for (uint64_t at = 0; at < held.size(); ++at)
    if (held[at] != 1) {
      CoverFault fault{std::vector<uint64_t>(tensor.shape.size()), held[at]};
      for (size_t d = 0; d < tensor.shape.size(); ++d)
        fault.element[d] = at / whole.strides[d] % tensor.shape[d];
      return fault;
    }
  return std::nullopt;
}

void expectAsCounted(const IndexTensor &tensor) {
  std::optional<CoverFault> found = findCoverFault(tensor), expected = count(tensor);
  ASSERT_EQ(found.has_value(), expected.has_value());
  if (found) {
    EXPECT_EQ(found->element, expected->element);
    EXPECT_EQ(found->boxes, expected->boxes);
  }
}

// Cuts a box in two, again and again.
std::vector<IndexBox> randomParts(const std::vector<uint64_t> &shape, std::mt19937 &random) {
  std::vector<IndexBox> boxes{{"f", "w", std::vector<uint64_t>(shape.size(), 0), shape}};
  for (int cuts = int(random() % 12); cuts > 0 && !shape.empty(); --cuts) {
    IndexBox &box = boxes[random() % boxes.size()];
    size_t d = random() % shape.size();
    if (box.shape[d] < 2)
      continue;
    uint64_t first = 1 + random() % (box.shape[d] - 1);
    IndexBox rest = box;
    rest.start[d] += first;
    rest.shape[d] -= first;
    box.shape[d] = first;
    boxes.push_back(rest);
  }
  std::ranges::shuffle(boxes, random);
  return boxes;
}

TEST(BoxCover, AsCounted) {
  std::mt19937 random(7);
  int faults = 0;
  for (int round = 0; round < 4000; ++round) {
    SCOPED_TRACE(round);
    IndexTensor tensor;
    for (uint64_t rank = random() % 5; rank > 0; --rank)
      tensor.shape.push_back(1 + random() % 4);
    tensor.boxes = randomParts(tensor.shape, random);
    expectAsCounted(tensor);
    ASSERT_FALSE(findCoverFault(tensor).has_value());
    // One box gone, there twice, moved, or replaced by one of as many elements.
    IndexBox &box = tensor.boxes[random() % tensor.boxes.size()];
    size_t d = tensor.shape.empty() ? 0 : random() % tensor.shape.size();
    switch (random() % 4) {
    case 0:
      std::swap(box, tensor.boxes.back());
      tensor.boxes.pop_back();
      break;
    case 1:
      tensor.boxes.push_back(IndexBox(box));
      break;
    case 2:
      if (!tensor.shape.empty())
        box.start[d] = random() % (tensor.shape[d] - box.shape[d] + 1);
      break;
    case 3:
      for (const IndexBox &other : tensor.boxes)
        if (other.shape == box.shape && &other != &box)
          box.start = other.start;
      break;
    }
    expectAsCounted(tensor);
    faults += findCoverFault(tensor).has_value();
  }
  EXPECT_GT(faults, 1500);
}

TEST(BoxCover, NoElements) {
  IndexTensor tensor;
  tensor.shape = {3, 0};
  EXPECT_FALSE(findCoverFault(tensor).has_value());
  tensor.shape = {3, 1};
  EXPECT_EQ(findCoverFault(tensor)->boxes, 0u);
  tensor.shape = {};
  EXPECT_EQ(findCoverFault(tensor)->boxes, 0u);
}

// Boxes that all reach to the end of one dimension, whichever it is: comparing those that are open with each other
// would take minutes.
TEST(BoxCover, ManyThatReachTheEnd) {
  constexpr uint64_t kSize = 30'000;
  auto begin = std::chrono::steady_clock::now();
  for (size_t along : {0, 1}) {
    IndexTensor tensor;
    tensor.shape = {kSize, kSize};
    auto add = [&](uint64_t row, uint64_t column, uint64_t rows, uint64_t columns) {
      std::vector<uint64_t> start{row, column}, shape{rows, columns};
      if (along == 1)
        std::swap(start[0], start[1]), std::swap(shape[0], shape[1]);
      tensor.boxes.push_back({"f", "w", start, shape});
    };
    for (uint64_t i = 0; i < kSize; ++i) {
      add(i, i, kSize - i, 1);
      if (i + 1 < kSize)
        add(i, i + 1, 1, kSize - i - 1);
    }
    EXPECT_FALSE(findCoverFault(tensor).has_value());
    IndexBox &last = tensor.boxes[tensor.boxes.size() - 2]; // one of the last two rows
    last.start = {0, 0};
    std::optional<CoverFault> fault = findCoverFault(tensor);
    ASSERT_TRUE(fault.has_value());
    EXPECT_EQ(fault->boxes, 2u);
    tensor.boxes.erase(tensor.boxes.end() - 2);
    EXPECT_EQ(findCoverFault(tensor)->boxes, 0u);
  }
  std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  EXPECT_LT(took.count(), 60);
}

} // namespace
} // namespace shoal::rt
