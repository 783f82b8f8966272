// How a payload (the shared object with a program's table and kernels) travels: it is
// appended to a copy of the prelinked runtime executable and followed by a footer. The
// compiler writes it, the runtime finds it at the end of its own file.
#ifndef SHOAL_RT_PAYLOAD_H
#define SHOAL_RT_PAYLOAD_H

#include <cstdint>
#include <cstring>

namespace shoal::rt {

inline constexpr char kPayloadMagic[8] = {'S', 'H', 'O', 'A', 'L', 'P', 'A', 'Y'};

// The last 16 bytes of an executable with a payload, little-endian. The payload is the
// `size` bytes before the footer.
struct PayloadFooter {
  uint64_t size;
  char magic[8];
};
static_assert(sizeof(PayloadFooter) == 16);

inline PayloadFooter payloadFooter(uint64_t size) {
  PayloadFooter footer{size, {}};
  std::memcpy(footer.magic, kPayloadMagic, sizeof footer.magic);
  return footer;
}

inline bool isPayloadFooter(const PayloadFooter &footer) {
  return std::memcmp(footer.magic, kPayloadMagic, sizeof footer.magic) == 0;
}

} // namespace shoal::rt

#endif // SHOAL_RT_PAYLOAD_H
