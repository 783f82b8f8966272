// CRC-32C by instruction and by tables.
#include "core/crc32c.h"

#include <array>
#include <cstdio>
#include <cstring>

namespace shoal::rt {
namespace {

constexpr uint32_t kPolynomial = 0x82f63b78; // of Castagnoli, its bits reversed

using Table = std::array<uint32_t, 256>;

// Table k: what a byte does that k more bytes follow.
constexpr std::array<Table, 8> makeTables() {
  std::array<Table, 8> tables{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t value = byte;
    for (int bit = 0; bit < 8; ++bit)
      value = value >> 1 ^ (value & 1 ? kPolynomial : 0);
    tables[0][byte] = value;
  }
  for (size_t k = 1; k < 8; ++k)
    for (size_t byte = 0; byte < 256; ++byte)
      tables[k][byte] = tables[k - 1][byte] >> 8 ^ tables[0][tables[k - 1][byte] & 255];
  return tables;
}
constexpr std::array<Table, 8> kTables = makeTables();

uint32_t updateByTables(uint32_t state, const unsigned char *at, size_t size) {
  for (; size >= 8; at += 8, size -= 8) {
    uint64_t word;
    std::memcpy(&word, at, 8); // little-endian, as the files are
    word ^= state;
    state = 0;
    for (int k = 0; k < 8; ++k)
      state ^= kTables[size_t(7 - k)][word >> 8 * k & 255];
  }
  for (; size != 0; ++at, --size)
    state = state >> 8 ^ kTables[0][(state ^ *at) & 255];
  return state;
}

#ifdef __x86_64__
__attribute__((target("sse4.2"))) uint32_t updateByInstruction(uint32_t state, const unsigned char *at, size_t size) {
  uint64_t wide = state;
  for (; size >= 8; at += 8, size -= 8) {
    uint64_t word;
    std::memcpy(&word, at, 8);
    wide = __builtin_ia32_crc32di(wide, word);
  }
  state = uint32_t(wide);
  for (; size != 0; ++at, --size)
    state = __builtin_ia32_crc32qi(state, *at);
  return state;
}
#endif

using Update = uint32_t (*)(uint32_t, const unsigned char *, size_t);

Update fastest() {
#ifdef __x86_64__
  if (__builtin_cpu_supports("sse4.2"))
    return updateByInstruction;
#endif
  return updateByTables;
}

} // namespace

void Crc32c::add(const void *bytes, size_t size) {
  static const Update update = fastest();
  state_ = update(state_, static_cast<const unsigned char *>(bytes), size);
}

uint32_t crc32c(std::string_view bytes) {
  Crc32c crc;
  crc.add(bytes.data(), bytes.size());
  return crc.value();
}

uint32_t crc32cByTables(std::string_view bytes) {
  return ~updateByTables(~0u, reinterpret_cast<const unsigned char *>(bytes.data()), bytes.size());
}

std::string crcText(uint32_t value) {
  char text[9];
  std::snprintf(text, sizeof text, "%08x", value);
  return text;
}

} // namespace shoal::rt
