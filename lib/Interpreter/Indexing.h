// Walks over multi-indices: the only loops the reference semantics are made of.
#ifndef SHOAL_LIB_INTERPRETER_INDEXING_H
#define SHOAL_LIB_INTERPRETER_INDEXING_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"

#include <cstdint>

namespace shoal::interp {

using Index = llvm::SmallVector<int64_t, 6>;

/// Calls `visit(index, linear)` for every index of a shape, row-major.
template <typename Visit> void forEachIndex(llvm::ArrayRef<int64_t> shape, Visit visit) {
  for (int64_t size : shape)
    if (size == 0)
      return;
  Index index(shape.size(), 0);
  for (int64_t linear = 0;; ++linear) {
    visit(llvm::ArrayRef<int64_t>(index), linear);
    int64_t d = int64_t(shape.size()) - 1;
    for (; d >= 0; --d) {
      if (++index[d] < shape[d])
        break;
      index[d] = 0;
    }
    if (d < 0)
      return;
  }
}

/// Number of elements; 1 for no dimensions.
inline int64_t product(llvm::ArrayRef<int64_t> shape) {
  int64_t count = 1;
  for (int64_t size : shape)
    count *= size;
  return count;
}

/// Row-major position of an index.
inline int64_t linearIndex(llvm::ArrayRef<int64_t> index, llvm::ArrayRef<int64_t> shape) {
  int64_t linear = 0;
  for (size_t d = 0; d < shape.size(); ++d)
    linear = linear * shape[d] + index[d];
  return linear;
}

/// Position in a tensor that is broadcast as in numpy: aligned at the last dimension, size 1
/// stretches.
inline int64_t broadcastIndex(llvm::ArrayRef<int64_t> index, llvm::ArrayRef<int64_t> shape) {
  size_t skipped = index.size() - shape.size();
  int64_t linear = 0;
  for (size_t d = 0; d < shape.size(); ++d)
    linear = linear * shape[d] + (shape[d] == 1 ? 0 : index[d + skipped]);
  return linear;
}

} // namespace shoal::interp

#endif // SHOAL_LIB_INTERPRETER_INDEXING_H
