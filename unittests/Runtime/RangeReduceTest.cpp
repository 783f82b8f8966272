#include "mpi/range_reduce.h"
#include "core/element.h"
#include "shoal-rt/traffic.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

namespace shoal::rt {
namespace {

// Buffers of some ranks whose elements are small integers, and what lies around the range.
struct Ranks {
  Ranks(DType type, uint32_t ranks, uint64_t bytes, uint64_t shift)
      : type(type), bytes(bytes), shift(shift), memory(ranks, std::vector<char>(bytes + 256)) {
    for (uint32_t rank = 0; rank < ranks; ++rank) {
      char *base = memory[rank].data() + (-reinterpret_cast<uintptr_t>(memory[rank].data()) & 63);
      for (uint64_t i = 0; i < (bytes + shift) / elementBytes(type); ++i)
        storeElement(base, type, i, value(rank, i));
      in.push_back(base + shift);
      out.push_back(base + shift);
    }
  }
  double value(uint32_t rank, uint64_t element) const {
    double drawn = double((rank * 5 + element * 3) % 11);
    return type == DType::I1 ? double(int(drawn) % 2) : drawn - (type == DType::BF16 ? 0 : 5);
  }
  RangeBuffers buffers() { return {in.data(), out.data(), uint32_t(in.size()), uint32_t(out.size())}; }

  DType type;
  uint64_t bytes, shift;
  std::vector<std::vector<char>> memory;
  std::vector<const char *> in;
  std::vector<char *> out;
};

// Every type, reduction and number of ranks, for ranges that are no whole lines and lie
// anywhere in one: inside they hold the reduction, outside they are as before.
TEST(RangeReduce, AgreesWithTheDefinitionInsideAndLeavesTheRest) {
  for (DType type : {DType::F32, DType::F64, DType::BF16, DType::I32, DType::I64, DType::I1})
    for (Reduction reduction : {Reduction::Sum, Reduction::Max, Reduction::Min})
      for (uint32_t ranks : {2u, 3u, 5u})
        for (uint64_t shift : {uint64_t(0), elementBytes(type), uint64_t(16)})
          for (uint64_t count : {1u, 15u, 16u, 333u})
            for (bool stream : {false, true}) {
              if (type == DType::I1 && reduction == Reduction::Sum)
                continue;
              uint64_t size = elementBytes(type), total = 400;
              Ranks all(type, ranks, total * size, shift);
              Ranks before(type, ranks, total * size, shift);
              uint64_t first = 64 / size;
              rangeReduce(type, reduction)(all.buffers(), 64, count * size, stream);
              for (uint64_t i = 0; i < total; ++i) {
                double want = loadElement(before.in[0], type, i);
                for (uint32_t rank = 1; rank < ranks; ++rank) {
                  double next = loadElement(before.in[rank], type, i);
                  want = reduction == Reduction::Sum   ? want + next
                         : reduction == Reduction::Max ? std::max(want, next)
                                                       : std::min(want, next);
                }
                for (uint32_t rank = 0; rank < ranks; ++rank) {
                  bool inside = i >= first && i < first + count;
                  ASSERT_EQ(loadElement(all.out[rank], type, i),
                            inside ? want : loadElement(before.in[rank], type, i))
                      << "type " << int(type) << " reduction " << int(reduction) << " ranks "
                      << ranks << " shift " << shift << " count " << count << " element " << i;
                }
              }
            }
}

// Three addends whose bf16 sum depends on when it is rounded: 256 + 1 rounds back to 256.
TEST(RangeReduce, RoundsBf16Once) {
  std::vector<uint16_t> a(40, floatToBf16(256)), b(40, floatToBf16(1)), c(40, floatToBf16(1));
  const char *in[] = {reinterpret_cast<char *>(a.data()), reinterpret_cast<char *>(b.data()),
                      reinterpret_cast<char *>(c.data())};
  char *out[] = {reinterpret_cast<char *>(a.data()), reinterpret_cast<char *>(b.data()),
                 reinterpret_cast<char *>(c.data())};
  ASSERT_EQ(floatToBf16(257), floatToBf16(256));
  rangeReduce(DType::BF16, Reduction::Sum)({in, out, 3, 3}, 0, 80, false);
  for (uint16_t bits : a)
    EXPECT_EQ(bf16ToFloat(bits), 258);
}

TEST(RangeReduce, KeepsNan) {
  for (Reduction reduction : {Reduction::Sum, Reduction::Max, Reduction::Min})
    for (int where : {0, 1}) {
      std::vector<float> a(17, 1), b(17, 2);
      (where ? b : a)[3] = (where ? b : a)[16] = NAN;
      const char *in[] = {reinterpret_cast<char *>(a.data()), reinterpret_cast<char *>(b.data())};
      char *out[] = {reinterpret_cast<char *>(a.data()), reinterpret_cast<char *>(b.data())};
      rangeReduce(DType::F32, reduction)({in, out, 2, 2}, 0, 17 * 4, false);
      for (size_t i : {size_t(3), size_t(16)})
        EXPECT_TRUE(std::isnan(a[i]) && std::isnan(b[i]));
      EXPECT_FALSE(std::isnan(a[0]));
    }
}

// What an all-gather is made of: one input to one output, byte by byte, also bits of NaNs, and no line past the end.
TEST(RangeReduce, CopiesOneInput) {
  for (uint64_t bytes : {1u, 63u, 64u, 200u})
    for (bool stream : {false, true}) {
      std::vector<char> from(256), to(256, 7);
      for (size_t i = 0; i < from.size(); ++i)
        from[i] = char(255 - i);
      const char *in[] = {from.data()};
      char *out[] = {to.data()};
      rangeReduce(DType::I1, Reduction::Max)({in, out, 1, 1}, 16, bytes, stream);
      for (size_t i = 0; i < to.size(); ++i)
        ASSERT_EQ(to[i], i >= 16 && i < 16 + bytes ? from[i] : 7) << bytes << " bytes, byte " << i;
    }
}

} // namespace
} // namespace shoal::rt
