// The one allocation a rank program lives in: zeroed, page-aligned, on huge pages where
// the system has them. Its size is the compiler's peak.
#ifndef SHOAL_RT_CORE_ARENA_H
#define SHOAL_RT_CORE_ARENA_H

#include <cstdint>

namespace shoal::rt {

class Arena {
public:
  explicit Arena(uint64_t bytes); // exit 1 when the memory is not there
  ~Arena();
  Arena(const Arena &) = delete;
  Arena &operator=(const Arena &) = delete;

  char *base() const { return base_; }
  uint64_t size() const { return size_; } // as asked for

private:
  char *base_ = nullptr;
  uint64_t size_ = 0;
};

} // namespace shoal::rt

#endif // SHOAL_RT_CORE_ARENA_H
