// The order of nn.zigzag in closed form: which row of the sequence lies at which place.
#ifndef SHOAL_DIALECT_NN_IR_ZIGZAG_H
#define SHOAL_DIALECT_NN_IR_ZIGZAG_H

#include <algorithm>
#include <cstdint>

namespace shoal::nn {

/// `size` rows over `ranks`, both at least 1. Every rank but the last that stores rows stores `rows` of them, `front`
/// from the beginning of the sequence and `back` from its end; that last one may store fewer.
struct Zigzag {
  Zigzag(int64_t size, int64_t ranks)
      : size(size), ranks(ranks), rows(std::max<int64_t>(1, size / ranks + (size % ranks != 0))), front((rows + 1) / 2),
        back(rows - front), fronts(size / rows * front + (size % rows + 1) / 2) {}

  /// The row of the sequence that lies at a place.
  int64_t rowAt(int64_t place) const {
    int64_t rank = place / rows, i = place % rows, stored = std::min(rows, size - rank * rows);
    return i < (stored + 1) / 2 ? rank * front + i : size - rank * back - stored + i;
  }
  /// The place at which a row of the sequence lies.
  int64_t placeOf(int64_t row) const {
    if (row < fronts)
      return row / front * rows + row % front;
    int64_t fromEnd = size - 1 - row, rank = fromEnd / back;
    return std::min(size, (rank + 1) * rows) - 1 - fromEnd % back;
  }
  /// Whether each rank stores two chunks of one size, one from each end.
  bool hasEqualChunks() const { return rows % 2 == 0 && size % rows == 0 && size / rows == ranks; }
  bool isIdentity() const { return rows == size || back == 0; }

  int64_t size, ranks, rows, front, back;
  /// Rows that ranks store from the beginning, all together; the others are from the end.
  int64_t fronts;
};

} // namespace shoal::nn

#endif // SHOAL_DIALECT_NN_IR_ZIGZAG_H
