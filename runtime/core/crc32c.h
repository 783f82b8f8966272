// CRC-32C (Castagnoli), the checksum of checkpoints' files: that of iSCSI (RFC 3720, 12.1), ext4 and Btrfs, so that
// other tools can check them. By the processor's instruction where it has one (SSE 4.2, 8 bytes in 3 cycles), else
// eight bytes a turn by tables ("slicing by 8", Kounavis and Berry, 2005).
#ifndef SHOAL_RT_CORE_CRC32C_H
#define SHOAL_RT_CORE_CRC32C_H

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace shoal::rt {

class Crc32c {
public:
  void add(const void *bytes, size_t size);
  uint32_t value() const { return ~state_; }

private:
  uint32_t state_ = ~0u;
};

uint32_t crc32c(std::string_view bytes);
// The same without the instruction.
uint32_t crc32cByTables(std::string_view bytes);

// "e3069283": as it stands in an index.
std::string crcText(uint32_t value);

} // namespace shoal::rt

#endif // SHOAL_RT_CORE_CRC32C_H
