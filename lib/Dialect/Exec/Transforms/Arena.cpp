// Offline placement of intervals, which is NP-hard. Buffers are placed one by one, each in the smallest gap that holds
// it (Pisarchyk and Lee, 2020). Several orders are tried, and mended by moving what came to lie too high to the front
// (squeaky wheel optimization, Joslin and Clements 1999), until the arena is about what is in use at once.
#include "Arena.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>
#include <tuple>

namespace shoal::exec {

/// At the k-th class of `a` and the l-th of `b`.
static bool endsBefore(const ArenaBuffer &a, unsigned k, const ArenaBuffer &b, unsigned l, unsigned streams) {
  for (unsigned stream = 0; stream < streams; ++stream)
    if (a.last[k * streams + stream] > b.known[l * streams + stream])
      return false;
  return true;
}

bool endsBefore(const ArenaBuffer &a, const ArenaBuffer &b) {
  if (!a.classes.anyCommon(b.classes))
    return true;
  unsigned streams = a.last.size() / a.classes.count();
  unsigned k = 0, l = 0;
  for (int x = a.classes.find_first(), y = b.classes.find_first(); x >= 0 && y >= 0;) {
    if (x == y && !endsBefore(a, k, b, l, streams))
      return false;
    bool isNextOfA = x <= y, isNextOfB = y <= x;
    if (isNextOfA) {
      x = a.classes.find_next(x);
      ++k;
    }
    if (isNextOfB) {
      y = b.classes.find_next(y);
      ++l;
    }
  }
  return true;
}

namespace {

/// No further order is tried for less than this part of the bound.
constexpr int64_t kEnough = 256;
/// How often an order is mended, and how many steps are taken in all: not measured in time, so that a program is the
/// same everywhere.
constexpr unsigned kRounds = 10;
constexpr int64_t kMaxWork = 20'000'000;

/// Which buffers are in use at once, found once for all orders; where these are too many to be kept, so that one order
/// takes more than all the work there may be, asked for in that one.
class Arena {
public:
  /// `floors`: per class where its buffers begin.
  Arena(llvm::ArrayRef<ArenaBuffer> buffers, llvm::ArrayRef<int64_t> floors, int64_t alignment, int64_t mostMeetings);

  /// The buffers with the greatest first.
  template <typename Key>
  llvm::SmallVector<unsigned> sortBy(Key key) const;
  /// Finds the best offsets that some order leads to, or one that is good enough.
  void place(llvm::MutableArrayRef<llvm::SmallVector<unsigned>> orders);
  int64_t getEnd() const { return end; }
  llvm::ArrayRef<int64_t> getOffsets() const { return offsets; }
  int64_t getBytes(unsigned i) const { return bytes[i]; }
  /// Bytes in use, at most, while the buffer is.
  int64_t getCrowd(unsigned i) const { return crowd[i]; }
  /// How many others are in use while the buffer is, as a measure of how long that is.
  int64_t getDegree(unsigned i) const { return degree[i]; }

private:
  bool meet(unsigned i, unsigned j) const {
    return !(rank[i] < rank[j] ? endsBefore(buffers[i], buffers[j]) : endsBefore(buffers[j], buffers[i]));
  }
  int64_t assign(llvm::ArrayRef<unsigned> order, llvm::MutableArrayRef<int64_t> result) const;
  int64_t getPickWork() const {
    int64_t work = numMeetings;
    for (int64_t count : sizes)
      work += count * count / 2;
    return work;
  }
  int64_t getSortWork() const {
    return (int64_t(bytes.size()) + numMeetings) * llvm::Log2_64_Ceil(numMeetings / (bytes.size() + 1) + 2);
  }

  llvm::ArrayRef<ArenaBuffer> buffers;
  llvm::SmallVector<unsigned> rank; // by birth
  llvm::SmallVector<int64_t> sizes; // per class the number of its buffers
  llvm::SmallVector<int64_t> bytes, floor, crowd, degree;
  llvm::SmallVector<llvm::SmallVector<unsigned, 0>> meets; // none when they are not kept
  int64_t numMeetings = 0;
  /// No placement can end below it: the floor of a class and its buffers of which any two are in use at once.
  int64_t bound = 0;
  int64_t end = std::numeric_limits<int64_t>::max();
  llvm::SmallVector<int64_t> offsets;
};

} // namespace

Arena::Arena(llvm::ArrayRef<ArenaBuffer> buffers, llvm::ArrayRef<int64_t> floors, int64_t alignment,
             int64_t mostMeetings)
    : buffers(buffers), rank(buffers.size()), sizes(floors.size(), 0), bytes(buffers.size()), floor(buffers.size()),
      crowd(buffers.size()), degree(buffers.size()), meets(buffers.size()) {
  if (buffers.empty())
    return;
  unsigned streams = buffers.front().last.size() / buffers.front().classes.count();
  llvm::SmallVector<unsigned> order(buffers.size());
  std::iota(order.begin(), order.end(), 0);
  llvm::stable_sort(order, [&](unsigned a, unsigned b) { return buffers[a].birth < buffers[b].birth; });
  struct Alive {
    unsigned number, index; // of the class among the buffer's
    bool counts;            // until some buffer is born that knows its end: any two that count are in use at once
  };
  struct Class {
    /// What a buffer and all that are born later know to have ended, the first one last.
    std::vector<llvm::SmallVector<unsigned, 2>> ended;
    llvm::SmallVector<Alive> alive;
    int64_t inUse = 0;
  };
  std::vector<Class> classes(floors.size());
  for (unsigned i : llvm::reverse(order)) {
    unsigned index = 0;
    for (unsigned number : buffers[i].classes.set_bits()) {
      auto &ended = classes[number].ended;
      llvm::ArrayRef<unsigned> known = llvm::ArrayRef(buffers[i].known).slice(streams * index++, streams);
      ended.emplace_back(known.begin(), known.end());
      if (ended.size() > 1)
        for (auto [mine, later] : llvm::zip_equal(ended.back(), ended[ended.size() - 2]))
          mine = std::min(mine, later);
    }
  }
  llvm::SmallVector<unsigned> met(buffers.size(), ~0u); // with whom last
  auto meetOnce = [&](unsigned i, unsigned other) {
    if (met[other] == i)
      return;
    met[other] = i;
    ++degree[i];
    ++degree[other];
    if (++numMeetings > mostMeetings) {
      meets.clear();
    } else {
      meets[i].push_back(other);
      meets[other].push_back(i);
    }
  };
  for (auto [at, i] : llvm::enumerate(order)) {
    const ArenaBuffer &buffer = buffers[i];
    rank[i] = at;
    bytes[i] = llvm::alignTo(buffer.bytes, alignment);
    unsigned index = 0;
    for (unsigned number : buffer.classes.set_bits()) {
      auto &[ended, alive, inUse] = classes[number];
      size_t kept = 0;
      for (Alive other : alive) {
        const ArenaBuffer &earlier = buffers[other.number];
        if (!endsBefore(earlier, other.index, buffer, index, streams)) {
          meetOnce(i, other.number);
        } else {
          if (other.counts)
            inUse -= bytes[other.number];
          other.counts = false;
          auto last = llvm::ArrayRef(earlier.last).slice(streams * other.index, streams);
          if (llvm::all_of(llvm::zip_equal(last, ended.back()),
                           [](auto pair) { return std::get<0>(pair) <= std::get<1>(pair); }))
            continue;
        }
        alive[kept++] = other;
      }
      alive.truncate(kept);
      ++sizes[number];
      alive.push_back({i, index++, true});
      ended.pop_back();
      inUse += bytes[i];
      int64_t level = floors[number] + inUse;
      bound = std::max(bound, level);
      floor[i] = std::max(floor[i], floors[number]);
      for (const Alive &other : alive)
        if (other.counts)
          crowd[other.number] = std::max(crowd[other.number], level);
    }
  }
}

int64_t Arena::assign(llvm::ArrayRef<unsigned> order, llvm::MutableArrayRef<int64_t> result) const {
  struct Placed {
    int64_t begin, end;
    unsigned number;
    bool operator<(const Placed &other) const { return std::tie(begin, number) < std::tie(other.begin, other.number); }
    bool operator==(const Placed &other) const { return number == other.number; }
  };
  // Neighbours are picked from all that are placed at the buffer's classes, or sorted anew: whichever is less work.
  bool isKept = !meets.empty(), picks = !isKept || getPickWork() < getSortWork();
  int64_t arena = 0;
  llvm::SmallVector<llvm::SmallVector<Placed>> placed(sizes.size()); // per class, by offset
  llvm::SmallVector<Placed> near;                                    // by offset
  llvm::SmallVector<unsigned> mark(bytes.size(), ~0u);
  llvm::SmallVector<bool> isPlaced(bytes.size(), false);
  for (unsigned i : order) {
    near.clear();
    if (picks) {
      if (isKept)
        for (unsigned j : meets[i])
          mark[j] = i;
      const llvm::SmallBitVector &classes = buffers[i].classes;
      for (unsigned number : classes.set_bits())
        llvm::copy_if(placed[number], std::back_inserter(near), [&](const Placed &other) {
          return isKept ? mark[other.number] == i : meet(i, other.number);
        });
      if (classes.count() > 1) {
        llvm::sort(near, std::less<>());
        near.erase(std::unique(near.begin(), near.end()), near.end());
      }
    } else {
      for (unsigned j : meets[i])
        if (isPlaced[j])
          near.push_back({result[j], result[j] + bytes[j], j});
      llvm::sort(near, std::less<>()); // without a comparator it is qsort
    }
    int64_t free = floor[i], best = -1, bestGap = 0;
    for (const Placed &other : near) {
      int64_t gap = other.begin - free;
      if (gap >= bytes[i] && (best < 0 || gap < bestGap)) {
        best = free;
        bestGap = gap;
      }
      free = std::max(free, other.end);
    }
    result[i] = best >= 0 ? best : free;
    isPlaced[i] = true;
    Placed self{result[i], result[i] + bytes[i], i};
    if (picks)
      for (unsigned number : buffers[i].classes.set_bits())
        placed[number].insert(llvm::upper_bound(placed[number], self), self);
    arena = std::max(arena, self.end);
  }
  return arena;
}

template <typename Key>
llvm::SmallVector<unsigned> Arena::sortBy(Key key) const {
  llvm::SmallVector<unsigned> order(bytes.size());
  std::iota(order.begin(), order.end(), 0);
  llvm::stable_sort(order, [&](unsigned a, unsigned b) { return key(a) > key(b); });
  return order;
}

void Arena::place(llvm::MutableArrayRef<llvm::SmallVector<unsigned>> orders) {
  llvm::SmallVector<int64_t> result(bytes.size());
  int64_t work = 0;
  for (unsigned round = 0; round < kRounds; ++round)
    for (llvm::SmallVector<unsigned> &order : orders) {
      int64_t reached = assign(order, result);
      if (reached < end) {
        end = reached;
        offsets = result;
      }
      work += std::min(getPickWork(), getSortWork());
      if (end <= bound + bound / kEnough || work > kMaxWork)
        return;
      // Those that found no room below the bound come before what was in their way.
      std::stable_partition(order.begin(), order.end(), [&](unsigned i) { return result[i] + bytes[i] > bound; });
    }
}

int64_t assignArena(llvm::MutableArrayRef<ArenaBuffer> buffers, llvm::ArrayRef<int64_t> bases, int64_t alignment,
                    int64_t mostMeetings) {
  auto floors = llvm::map_to_vector(bases, [&](int64_t base) { return int64_t(llvm::alignTo(base, alignment)); });
  int64_t base = *llvm::min_element(floors), end = *llvm::max_element(floors);
  for (int64_t &floor : floors)
    floor -= base;
  Arena arena(buffers, floors, alignment, mostMeetings);
  auto bytes = [&](unsigned i) { return arena.getBytes(i); };
  llvm::SmallVector<unsigned> orders[] = {
      arena.sortBy(bytes),
      arena.sortBy([&](unsigned i) { return double(bytes(i)) * double(arena.getDegree(i)); }),
      arena.sortBy([&](unsigned i) { return std::pair(arena.getCrowd(i), bytes(i)); }),
      arena.sortBy([&](unsigned i) { return std::pair(arena.getDegree(i), bytes(i)); }),
      arena.sortBy([&](unsigned i) { return std::pair(-int64_t(buffers[i].birth), bytes(i)); }),
  };
  arena.place(orders);
  for (auto [buffer, offset] : llvm::zip_equal(buffers, arena.getOffsets()))
    buffer.offset = base + offset;
  return std::max(end, base + arena.getEnd());
}

} // namespace shoal::exec
