// Rows added up by their numbers, in every type, against plain loops.
#include "TestSupport.h"
#include "core/element.h"
#include "host/scatter_add.h"
#include "shoal-rt/traffic.h"

#include <vector>

namespace shoal::rt {
namespace {

struct Case {
  int64_t rows, width;
  std::vector<int64_t> ids;
  int64_t offset = 0;
};

const Case kCases[] = {
    {4, 3, {2, 0, 2, 3, 2}},
    {3, 1, {0}},
    {2, 5, {7, 6, 5, 8, 6}, 6},
    // Numbers of other rows, and those that overflow when the offset is taken from them.
    {3, 2, {-1, 3, INT64_MIN, INT64_MAX, 1}},
    {3, 2, {INT64_MIN, INT64_MIN + 9, 12, 9}, 10},
};

// What each row adds up to; value j of row k is k + j / 4.
std::vector<double> expected(const Case &test) {
  std::vector<double> sums(size_t(test.rows * test.width), 0.0);
  for (size_t k = 0; k < test.ids.size(); ++k)
    for (int64_t row = 0; row < test.rows; ++row)
      if (test.ids[k] == test.offset + row)
        for (int64_t j = 0; j < test.width; ++j)
          sums[size_t(row * test.width + j)] += double(k) + double(j) / 4;
  return sums;
}

template <typename Id> void check(DType idType, DType type) {
  for (const Case &test : kCases) {
    std::vector<Id> ids;
    for (int64_t id : test.ids)
      ids.push_back(Id(id));
    if (std::vector<int64_t>(ids.begin(), ids.end()) != test.ids)
      continue; // does not fit i32
    uint64_t size = elementBytes(type), count = ids.size();
    std::vector<char> values(count * uint64_t(test.width) * size);
    for (uint64_t k = 0; k < count; ++k)
      for (int64_t j = 0; j < test.width; ++j)
        storeElement(values.data(), type, k * uint64_t(test.width) + uint64_t(j),
                     double(k) + double(j) / 4);
    std::vector<double> wanted = expected(test);
    std::vector<char> output(wanted.size() * size, 0x55);
    std::vector<float> workspace(wanted.size(), -1.0f);
    int64_t offset = test.offset;
    std::vector<void *> buffers = {ids.data(), values.data()};
    if (offset)
      buffers.push_back(&offset);
    buffers.push_back(output.data());
    if (type == DType::BF16)
      buffers.push_back(workspace.data());
    int64_t params[kScatterAddNumParams] = {int64_t(count), test.rows, test.width, offset != 0,
                                            int64_t(idType), int64_t(type)};
    std::unique_ptr<LibraryCall> call = makeScatterAdd(params, buffers);
    for (int run = 0; run < 2; ++run) { // a second step starts from zeros again
      call->run();
      for (size_t i = 0; i < wanted.size(); ++i)
        EXPECT_EQ(loadElement(output.data(), type, i), wanted[i]) << i << " in run " << run;
    }
  }
}

TEST(ScatterAdd, EveryType) {
  for (DType type : {DType::F32, DType::F64, DType::BF16}) {
    check<int64_t>(DType::I64, type);
    check<int32_t>(DType::I32, type);
  }
}

// Ones: a sum in bf16 would stay at 256, whose next number is 258.
TEST(ScatterAdd, Bf16IsSummedInF32) {
  constexpr int64_t count = 1024;
  std::vector<int64_t> ids(count, 0);
  std::vector<uint16_t> values(count, floatToBf16(1.0f));
  uint16_t output = 0;
  float workspace = 0;
  void *buffers[] = {ids.data(), values.data(), &output, &workspace};
  int64_t params[kScatterAddNumParams] = {count, 1, 1, 0, int64_t(DType::I64), int64_t(DType::BF16)};
  makeScatterAdd(params, buffers)->run();
  EXPECT_EQ(bf16ToFloat(output), 1024.0f);
}

} // namespace
} // namespace shoal::rt
