// The arena, as an anonymous mapping.
#include "core/arena.h"
#include "core/error.h"

#include <cerrno>
#include <cstring>
#include <sys/mman.h>

namespace shoal::rt {

Arena::Arena(uint64_t bytes) : size_(bytes) {
  if (bytes == 0)
    return;
  constexpr uint64_t hugePage = 2 << 20;
  void *address = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (address == MAP_FAILED)
    workFailed("cannot allocate the arena of ", bytes, " bytes: ", std::strerror(errno));
  if (bytes >= hugePage)
    madvise(address, bytes, MADV_HUGEPAGE); // advice only: the arena works without
  base_ = static_cast<char *>(address);
}

Arena::~Arena() {
  if (base_)
    munmap(base_, size_);
}

} // namespace shoal::rt
