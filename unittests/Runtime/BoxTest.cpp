// Shards as boxes: every element of a tensor lies in exactly one box, at the right place,
// for sizes that do not divide and sizes below the number of shards.
#include "core/box.h"
#include "core/program.h"
#include "shoal-rt/blob_builder.h"

#include <numeric>

#include <gtest/gtest.h>

namespace shoal::rt {
namespace {

using DimSpec = BlobBuilder::DimSpec;

// A program whose one parameter has the given dimensions over a 2 x 3 mesh.
Program withParam(const std::vector<DimSpec> &dims) {
  BlobBuilder blob("box");
  uint32_t sizes[] = {blob.addAxis("a", 2), blob.addAxis("b", 3)};
  (void)sizes;
  uint64_t elements = 1;
  for (const DimSpec &dim : dims) {
    uint64_t shards = 1;
    for (uint32_t axis : dim.axes)
      shards *= axis == 0 ? 2 : 3;
    elements *= (dim.global + shards - 1) / shards;
  }
  blob.header().arenaBytes = elements * 4;
  blob.addArg({"w", ArgKind::Param, blob.addView(0, elements, DType::F32), dims, -1,
               InitKind::Constant});
  std::vector<unsigned char> bytes = blob.finish();
  return Program(bytes.data(), bytes.size());
}

TEST(Box, PartitionsTheTensor) {
  const std::vector<std::vector<DimSpec>> shapes = {
      {},                               // a scalar
      {{7, {}}},                        // replicated
      {{7, {0}}},                       // padded
      {{7, {0, 1}}},                    // over both axes
      {{7, {1, 0}}},                    // in the other order
      {{2, {0, 1}}},                    // fewer elements than shards
      {{5, {1}}, {4, {0}}},             // two dimensions
      {{4, {0}}, {3, {}}, {2, {}}},     // trailing whole dimensions
      {{3, {}}, {5, {0}}, {7, {1}}},    // leading whole dimension
      {{1, {0}}, {1, {1}}},             // ones
      {{0, {0}}, {3, {}}},              // nothing
  };
  for (const auto &dims : shapes) {
    Program program = withParam(dims);
    std::span<const Dim> programDims = program.dims(program.args()[0]);
    uint64_t total = 1;
    for (const DimSpec &dim : dims)
      total *= dim.global;
    std::vector<int> copies(total, 0);
    for (uint32_t position : firstHolders(program, shardingAxes(program, programDims), kNone)) {
      Box box = boxOf(program, programDims, position);
      EXPECT_EQ(box.localElements(), program.views()[0].elements);
      std::vector<int> written(box.localElements(), 0);
      uint64_t seen = 0;
      box.forEachRun([&](uint64_t global, uint64_t local, uint64_t count) {
        seen += count;
        for (uint64_t i = 0; i < count; ++i) {
          ASSERT_LT(global + i, total);
          ASSERT_LT(local + i, written.size());
          ++copies[global + i];
          ++written[local + i];
          // The element's coordinates on both sides agree.
          uint64_t g = global + i, l = local + i;
          for (size_t d = dims.size(); d-- > 0;) {
            EXPECT_EQ(g % box.dims[d].global, box.dims[d].start + l % box.dims[d].local);
            g /= box.dims[d].global;
            l /= box.dims[d].local;
          }
        }
      });
      EXPECT_EQ(seen, box.validElements());
    }
    for (int count : copies)
      EXPECT_EQ(count, 1);
  }
}

// Over a 2 x 3 mesh, with `holders` of a tensor that the second axis shards.
TEST(Box, FirstHolders) {
  auto first = [](const std::vector<uint32_t> &holders, std::vector<uint32_t> axes) {
    BlobBuilder blob("box");
    blob.addAxis("a", 2);
    blob.addAxis("b", 3);
    Positions set = holders.empty() ? kNone : blob.addPositions(holders);
    std::vector<unsigned char> bytes = blob.finish();
    return firstHolders(Program(bytes.data(), bytes.size()), axes, set);
  };
  using List = std::vector<uint32_t>;
  EXPECT_EQ(first({}, {1}), (List{0, 1, 2}));
  EXPECT_EQ(first({0, 0, 0, 1, 1, 1}, {1}), (List{3, 4, 5}));
  EXPECT_EQ(first({0, 1, 0, 1, 1, 1}, {1}), (List{1, 3, 5}));
  EXPECT_EQ(first({0, 1, 0, 1, 1, 1}, {}), List{1});
  EXPECT_EQ(first({0, 1, 0, 1, 1, 1}, {0, 1}), (List{1, 3, 4, 5}));
  EXPECT_EQ(first({0, 0, 0, 0, 0, 0}, {1}), List{});
}

TEST(Box, RunsAreAsLongAsTheyCanBe) {
  Program program = withParam({{4, {0}}, {3, {}}, {2, {}}});
  Box box = boxOf(program, program.dims(program.args()[0]), 5);
  int runs = 0;
  box.forEachRun([&](uint64_t global, uint64_t local, uint64_t count) {
    ++runs;
    EXPECT_EQ(global, 12u);
    EXPECT_EQ(local, 0u);
    EXPECT_EQ(count, 12u);
  });
  EXPECT_EQ(runs, 1);
}

TEST(Box, AxisOrderIsLayout) {
  Program ab = withParam({{6, {0, 1}}}), ba = withParam({{6, {1, 0}}});
  // Position 1 is a = 0, b = 1: element 1 of {a, b}, element 2 of {b, a}.
  EXPECT_EQ(boxOf(ab, ab.dims(ab.args()[0]), 1).dims[0].start, 1u);
  EXPECT_EQ(boxOf(ba, ba.dims(ba.args()[0]), 1).dims[0].start, 2u);
}

} // namespace
} // namespace shoal::rt
