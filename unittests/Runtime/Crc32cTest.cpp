// The checksum of checkpoints is CRC-32C: known answers, and the same in any pieces.
#include "core/crc32c.h"

#include <string>

#include <gtest/gtest.h>

namespace shoal::rt {
namespace {

// RFC 3720, B.4, and the check value of the catalogue of CRCs.
TEST(Crc32c, KnownAnswers) {
  EXPECT_EQ(crc32c(""), 0u);
  EXPECT_EQ(crc32c("123456789"), 0xe3069283u);
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8a9136aau);
  EXPECT_EQ(crc32c(std::string(32, '\xff')), 0x62a8ab43u);
  std::string up, down;
  for (int i = 0; i < 32; ++i) {
    up += char(i);
    down += char(31 - i);
  }
  EXPECT_EQ(crc32c(up), 0x46dd794eu);
  EXPECT_EQ(crc32c(down), 0x113fdb5cu);
  EXPECT_EQ(crc32cByTables("123456789"), 0xe3069283u);
  EXPECT_EQ(crc32cByTables(up), 0x46dd794eu);
  EXPECT_EQ(crcText(0xe3069283u), "e3069283");
  EXPECT_EQ(crcText(0), "00000000");
}

TEST(Crc32c, InAnyPieces) {
  std::string bytes;
  for (int i = 0; i < 1000; ++i)
    bytes += char(i * i >> 3);
  uint32_t whole = crc32c(bytes);
  for (size_t first = 0; first < 20; ++first)
    for (size_t size = 0; size < 100; ++size)
      EXPECT_EQ(crc32c(std::string_view(bytes).substr(first, size)),
                crc32cByTables(std::string_view(bytes).substr(first, size)));
  for (size_t first = 0; first < 20; ++first)
    for (size_t second : {size_t(0), size_t(1), size_t(7), size_t(8), size_t(500)}) {
      Crc32c crc;
      crc.add(bytes.data(), first);
      crc.add(bytes.data() + first, second);
      crc.add(bytes.data() + first + second, bytes.size() - first - second);
      EXPECT_EQ(crc.value(), whole) << first << " " << second;
    }
}

} // namespace
} // namespace shoal::rt
