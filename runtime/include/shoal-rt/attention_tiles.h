// Which tiles of scores a call of attention computes, and which keys of a tile each query of it sees: the one rule that
// kernels loop by and that tiles are counted by.
#ifndef SHOAL_RT_ATTENTION_TILES_H
#define SHOAL_RT_ATTENTION_TILES_H

#include "shoal-rt/attention.h"

#include <algorithm>
#include <cstdlib>
#include <limits>

namespace shoal::rt {

// See shoal-rt/attention.h; null where the shape has none.
struct AttentionMasks {
  const int64_t *querySegments = nullptr, *keySegments = nullptr;
  const int64_t *queryPositions = nullptr, *keyPositions = nullptr;
};

class AttentionTiles {
public:
  struct Range {
    int64_t begin, end;
    int64_t size() const { return end - begin; }
  };

  // Looks once at all positions.
  AttentionTiles(const AttentionShape &shape, const AttentionMasks &masks);

  // Calls body(queries) for every tile of queries.
  template <typename Body> void forEachQueryTile(Body body) const {
    int64_t size = tileSize(chunk_, attentionQueryTile(s));
    for (int64_t i = 0, end; i < s.queries; i = end) {
      end = std::min(i + size, i < chunk_ ? chunk_ : s.queries);
      body(Range{i, end});
    }
  }

  // What follows is about this tile of queries. Whether any of them may see a key, as far as segments let it.
  bool select(Range queries);

  // Calls body(keys) for the tiles of keys that the queries may see any of in a batch row.
  template <typename Body> void forEachKeyTile(int64_t batch, Body body) {
    batch_ = batch;
    if (s.segments)
      segmentsOfTile_ = extremes(masks_.querySegments + batch * s.queries, queries_);
    // At most the tile of all keys, which the workspace is made for.
    int64_t size = std::min(tileSize(seen_.size(), kAttentionKeyTile), attentionRowSize(s));
    for (int64_t j = seen_.begin; j < seen_.end; j += size) {
      Range keys{j, std::min(j + size, seen_.end)};
      if (!meetsByPosition(keys) || !meetsBySegment(keys))
        continue;
      ++count_;
      body(keys);
    }
  }

  // Inside of body: keys of the tile, counted from its first, outside of which the tile's `row`-th query sees none.
  Range visibleColumns(int64_t row, Range keys) const {
    Range visible = visible_[row];
    int64_t begin = std::clamp(visible.begin, keys.begin, keys.end);
    return {begin - keys.begin, std::clamp(visible.end, begin, keys.end) - keys.begin};
  }
  // Inside of body: makes minus infinity of its scores in `columns` with keys that it does not see.
  template <typename T> void maskRow(T *scores, int64_t row, Range keys, Range columns) const;

  // Tiles of keys so far.
  int64_t count() const { return count_; }

private:
  // A place in the keys: the positions of those that exist are at most `position` before it, and larger from it on.
  struct Cut {
    int64_t position, key;
  };

  Range visibleByIndex(int64_t i) const {
    int64_t begin = s.window != 0 ? std::max<int64_t>(0, i - s.window + 1) : 0;
    int64_t end = s.causal ? i + 1 : s.window != 0 ? std::min(s.keys, i + s.window) : s.keys;
    return {begin, end};
  }
  Range visibleByPosition(int64_t i, Cut &begin, Cut &end) const;
  int64_t findCut(int64_t position, Cut &last) const;

  // Whether a query and a key that exist see each other, of both their positions.
  bool areNear(int64_t query, int64_t key) const {
    return !(s.causal && key > query) && (s.window == 0 || (query - key < s.window && key - query < s.window));
  }
  bool meetsByPosition(Range keys);
  bool meetsBySegment(Range keys);

  static Range extremes(const int64_t *values, Range range) {
    auto [least, most] = std::minmax_element(values + range.begin, values + range.end);
    return {*least, *most};
  }
  // The queries before the cut.
  int64_t findChunk() const {
    int64_t half = (s.queries + 1) / 2;
    if (!s.positions || half == s.queries)
      return s.queries;
    int64_t last = masks_.queryPositions[half - 1], next = masks_.queryPositions[half];
    return last >= 0 && next >= 0 && std::abs(next - last) > 1 ? half : s.queries;
  }
  // Of the positions that exist: {0, -1} where there are none.
  static Range extremesOfExisting(const int64_t *positions, Range range);

  const AttentionShape &s;
  const AttentionMasks masks_;
  // Queries that are two chunks which lie far apart in the sequence (zigzag) are cut between them: a tile of both would
  // compute for each what only the other sees.
  int64_t chunk_;
  Range existing_;         // from the first key that exists to the last
  bool increasing_ = true; // the positions of keys that exist: a later one is not smaller
  bool holes_ = false;     // keys that do not exist between those that do

  Range queries_ = {0, 0}, seen_ = {0, 0}; // the tile of queries, the keys from the first to the last that it sees
  Range visible_[kAttentionQueryTile];     // likewise per query
  Range positionsOfTile_ = {0, -1}, segmentsOfTile_ = {0, 0}; // of its queries: the least, the most
  // Whether ranges do not say all of the tile that body was called with.
  bool positionsDecide_ = false, segmentsDecide_ = false;
  int64_t batch_ = 0, count_ = 0;
};

inline AttentionTiles::AttentionTiles(const AttentionShape &shape, const AttentionMasks &masks)
    : s(shape), masks_(masks), chunk_(findChunk()), existing_{0, shape.keys} {
  if (!s.positions)
    return;
  const int64_t *positions = masks_.keyPositions;
  while (existing_.size() != 0 && positions[existing_.begin] < 0)
    ++existing_.begin;
  while (existing_.size() != 0 && positions[existing_.end - 1] < 0)
    --existing_.end;
  int64_t last = 0;
  for (int64_t j = existing_.begin; j < existing_.end; ++j) {
    holes_ |= positions[j] < 0;
    if (positions[j] < 0)
      continue;
    increasing_ &= positions[j] >= last;
    last = positions[j];
  }
}

inline AttentionTiles::Range AttentionTiles::extremesOfExisting(const int64_t *positions, Range range) {
  Range found{0, -1};
  for (int64_t i = range.begin; i < range.end; ++i) {
    if (positions[i] < 0)
      continue;
    bool first = found.end < 0;
    found = {first ? positions[i] : std::min(found.begin, positions[i]), std::max(found.end, positions[i])};
  }
  return found;
}

// Queries mostly follow each other as keys do: the cut of a query is looked for from that of the one before, in steps
// that grow, and then by halves.
inline int64_t AttentionTiles::findCut(int64_t position, Cut &last) const {
  const int64_t *positions = masks_.keyPositions;
  int64_t low = position >= last.position ? last.key : existing_.begin, high = low;
  for (int64_t step = 1; high < existing_.end && positions[high] <= position; step *= 2) {
    if (positions[high] >= 0)
      low = high + 1;
    high = std::min(high + step, existing_.end);
  }
  while (low < high) {
    int64_t middle = low + (high - low) / 2, key = middle;
    while (key < high && positions[key] < 0)
      ++key;
    if (key == high || positions[key] > position)
      high = middle;
    else
      low = key + 1;
  }
  last = {position, low};
  return low;
}

inline AttentionTiles::Range AttentionTiles::visibleByPosition(int64_t i, Cut &begin, Cut &end) const {
  int64_t position = masks_.queryPositions[i];
  if (position < 0)
    return {0, 0};
  if (!increasing_)
    return existing_;
  Range visible = existing_;
  if (s.window != 0)
    visible.begin = findCut(position - s.window, begin);
  if (s.causal)
    visible.end = findCut(position, end);
  else if (s.window != 0 && position <= std::numeric_limits<int64_t>::max() - s.window)
    visible.end = findCut(position + s.window - 1, end);
  return visible;
}

inline bool AttentionTiles::select(Range queries) {
  queries_ = queries;
  seen_ = {s.keys, 0};
  Cut begin{-1, existing_.begin}, end = begin;
  for (int64_t i = queries.begin; i < queries.end; ++i) {
    Range visible = s.positions ? visibleByPosition(i, begin, end) : visibleByIndex(i);
    visible_[i - queries.begin] = visible;
    if (visible.begin < visible.end)
      seen_ = {std::min(seen_.begin, visible.begin), std::max(seen_.end, visible.end)};
  }
  if (s.positions)
    positionsOfTile_ = extremesOfExisting(masks_.queryPositions, queries);
  if (seen_.begin < seen_.end)
    return true;
  seen_ = {0, 0};
  return false;
}

inline bool AttentionTiles::meetsByPosition(Range keys) {
  if (!s.positions)
    return true;
  auto sees = [&](Range visible) { return std::max(visible.begin, keys.begin) < std::min(visible.end, keys.end); };
  if (std::none_of(visible_, visible_ + queries_.size(), sees))
    return false;
  positionsDecide_ = false;
  if (increasing_ && !holes_)
    return true;
  Range found = extremesOfExisting(masks_.keyPositions, keys), queries = positionsOfTile_;
  if (found.end < 0 || (s.causal && found.begin > queries.end) ||
      (s.window != 0 && (found.begin - queries.end >= s.window || queries.begin - found.end >= s.window)))
    return false;
  auto exists = [](int64_t position) { return position >= 0; };
  bool all = std::all_of(masks_.keyPositions + keys.begin, masks_.keyPositions + keys.end, exists) &&
             (increasing_ || (areNear(queries.begin, found.end) && areNear(queries.end, found.begin)));
  positionsDecide_ = !all;
  return true;
}

inline bool AttentionTiles::meetsBySegment(Range keys) {
  if (!s.segments)
    return true;
  Range found = extremes(masks_.keySegments + batch_ * s.keys, keys), queries = segmentsOfTile_;
  segmentsDecide_ = queries.begin != queries.end || found.begin != found.end; // ids may lie 2^64 - 1 apart
  return found.begin <= queries.end && queries.begin <= found.end;
}

template <typename T> void AttentionTiles::maskRow(T *scores, int64_t row, Range keys, Range columns) const {
  constexpr T kNothing = -std::numeric_limits<T>::infinity();
  int64_t i = queries_.begin + row;
  if (segmentsDecide_) {
    int64_t own = masks_.querySegments[batch_ * s.queries + i];
    const int64_t *others = masks_.keySegments + batch_ * s.keys + keys.begin;
    for (int64_t j = columns.begin; j < columns.end; ++j)
      scores[j] = others[j] == own ? scores[j] : kNothing;
  }
  if (positionsDecide_) {
    int64_t own = masks_.queryPositions[i];
    const int64_t *others = masks_.keyPositions + keys.begin;
    for (int64_t j = columns.begin; j < columns.end; ++j)
      scores[j] = others[j] >= 0 && areNear(own, others[j]) ? scores[j] : kNothing;
  }
}

// Tiles of scores that a call computes, forward or backward: over all batch rows and query heads.
inline int64_t attentionTiles(const AttentionShape &shape, const AttentionMasks &masks) {
  AttentionTiles tiles(shape, masks);
  tiles.forEachQueryTile([&](AttentionTiles::Range queries) {
    tiles.select(queries);
    for (int64_t batch = 0; batch < shape.batch; ++batch)
      tiles.forEachKeyTile(batch, [](AttentionTiles::Range) {});
  });
  return tiles.count() * shape.kvHeads * shape.groups;
}

} // namespace shoal::rt

#endif // SHOAL_RT_ATTENTION_TILES_H
