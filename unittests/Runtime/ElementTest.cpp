// Conversion of elements: exact where the types allow it, refused where they do not.
#include "TestSupport.h"
#include "core/element.h"

#include <cmath>
#include <cstring>
#include <limits>

namespace shoal::rt {
namespace {

using test::expectBadInput;

TEST(Element, Bf16RoundsToNearestEven) {
  EXPECT_EQ(floatToBf16(1.0f), 0x3f80);
  EXPECT_EQ(floatToBf16(1.0f + 0x1p-8f), 0x3f80);            // tie, to even
  EXPECT_EQ(floatToBf16(1.0f + 3 * 0x1p-8f), 0x3f82);        // tie, to even
  EXPECT_EQ(floatToBf16(1.0f + 0x1p-8f + 0x1p-20f), 0x3f81); // past the tie
  EXPECT_EQ(floatToBf16(std::numeric_limits<float>::max()), 0x7f80);
  EXPECT_TRUE(std::isnan(bf16ToFloat(floatToBf16(NAN))));
  for (uint32_t bits = 0; bits < 0x10000; ++bits)
    if (!std::isnan(bf16ToFloat(uint16_t(bits)))) {
      ASSERT_EQ(floatToBf16(bf16ToFloat(uint16_t(bits))), bits);
    }
}

TEST(Element, ReadsHalfPrecision) {
  const uint16_t halves[] = {0x3c00, 0xc000, 0x0001, 0x7bff, 0x7c00, 0x8000};
  const double values[] = {1.0, -2.0, 0x1p-24, 65504.0, INFINITY, -0.0};
  double got[6];
  convert(halves, FileType::F16, got, DType::F64, 6, "file");
  for (int i = 0; i < 6; ++i)
    EXPECT_EQ(got[i], values[i]);
}

TEST(Element, IntegersMustFit) {
  const int64_t wide[] = {-5, 1ll << 40};
  int32_t narrow[2];
  convert(wide, FileType::I64, narrow, DType::I32, 1, "file");
  EXPECT_EQ(narrow[0], -5);
  expectBadInput([&] { convert(wide, FileType::I64, narrow, DType::I32, 2, "y.npy"); },
                 "y.npy: value 1099511627776 does not fit i32");
  const uint64_t huge = ~0ull;
  int64_t signedValue;
  expectBadInput([&] { convert(&huge, FileType::U64, &signedValue, DType::I64, 1, "y.npy"); },
                 "value 18446744073709551615 does not fit i64");
  double real;
  convert(&huge, FileType::U64, &real, DType::F64, 1, "file");
  EXPECT_EQ(real, 0x1p64);
  const uint8_t bytes[] = {0, 1, 2};
  uint8_t bits[3];
  expectBadInput([&] { convert(bytes, FileType::U8, bits, DType::I1, 3, "m.npy"); },
                 "value 2 does not fit i1");
  convert(bytes, FileType::Bool, bits, DType::I1, 3, "m.npy");
  EXPECT_EQ(bits[2], 1); // any byte of a bool is true
}

TEST(Element, FloatsAreNotIntegers) {
  EXPECT_FALSE(canConvert(FileType::F32, DType::I64));
  EXPECT_TRUE(canConvert(FileType::U8, DType::F32));
  const float value = 3;
  int64_t integer;
  expectBadInput([&] { convert(&value, FileType::F32, &integer, DType::I64, 1, "y.npy"); },
                 "cannot read f32 as an integer");
}

TEST(Element, ReadsUnalignedData) {
  char bytes[9] = {};
  double value = 2.5;
  std::memcpy(bytes + 1, &value, 8);
  float got;
  convert(bytes + 1, FileType::F64, &got, DType::F32, 1, "file");
  EXPECT_EQ(got, 2.5f);
}

} // namespace
} // namespace shoal::rt
