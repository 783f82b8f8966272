// How a payload (the shared object with a program's table and kernels) travels: it is
// appended to a copy of the prelinked runtime executable and followed by a footer. The
// compiler writes it, the runtime finds it at the end of its own file.
#ifndef SHOAL_RT_PAYLOAD_H
#define SHOAL_RT_PAYLOAD_H

#include <cstdint>
#include <cstring>

namespace shoal::rt {

inline constexpr char kPayloadMagic[8] = {'S', 'H', 'O', 'A', 'L', 'P', 'A', '2'};

// A runtime executable holds this text; the compiler appends payloads to nothing else.
inline constexpr char kRuntimeMarker[] = "shoal runtime for payloads SHOALPA2";

// The last 24 bytes of an executable with a payload, little-endian. The payload is the
// `size` bytes before the footer.
struct PayloadFooter {
  uint64_t size;
  uint64_t checksum; // payloadChecksum of the payload
  char magic[8];
};
static_assert(sizeof(PayloadFooter) == 24);

inline constexpr uint64_t kChecksumStart = 0xcbf29ce484222325u;

// FNV-1a, 64 bits: finds damaged files, not forged ones. Parts are chained through `state`.
inline uint64_t payloadChecksum(const void *bytes, uint64_t size, uint64_t state = kChecksumStart) {
  const unsigned char *at = static_cast<const unsigned char *>(bytes);
  for (uint64_t i = 0; i < size; ++i)
    state = (state ^ at[i]) * 0x100000001b3u;
  return state;
}

inline PayloadFooter payloadFooter(const void *payload, uint64_t size) {
  PayloadFooter footer{size, payloadChecksum(payload, size), {}};
  std::memcpy(footer.magic, kPayloadMagic, sizeof footer.magic);
  return footer;
}

inline bool isPayloadFooter(const PayloadFooter &footer) {
  return std::memcmp(footer.magic, kPayloadMagic, sizeof footer.magic) == 0;
}

} // namespace shoal::rt

#endif // SHOAL_RT_PAYLOAD_H
