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

/// A class of positions: its buffers by birth.
class ClassBuffers {
public:
  /// `order`: all buffers by birth.
  ClassBuffers(llvm::ArrayRef<ArenaBuffer> buffers, llvm::ArrayRef<unsigned> order, unsigned number);

  int64_t size() const { return entries.size(); }
  unsigned numberOf(unsigned i) const { return entries[i].number; }
  /// Whether the two are in use at once.
  bool meet(unsigned i, unsigned j) const {
    auto [earlier, later] = std::minmax(i, j);
    const Entry &entry = entries[earlier];
    return later < entry.certain || (later < entry.end && !endsBefore(earlier, later));
  }
  /// Whether all that are born as late as `j` or later meet `i` no more.
  bool isOver(unsigned i, unsigned j) const { return j >= entries[i].end; }
  /// How many pairs are in use at once, at most.
  int64_t boundMeetings() const;

private:
  /// Of those that are born behind it, all before `certain` meet the buffer, and none from `end` on.
  struct Entry {
    unsigned number; // among all buffers
    unsigned index;  // of the class among the buffer's
    unsigned certain, end;
  };
  llvm::ArrayRef<unsigned> clockOf(llvm::ArrayRef<unsigned> clocks, unsigned i) const {
    return clocks.slice(i * streams, streams);
  }
  bool endsBefore(unsigned i, unsigned j) const {
    return exec::endsBefore(buffers[entries[i].number], entries[i].index, buffers[entries[j].number], entries[j].index,
                            streams);
  }

  llvm::ArrayRef<ArenaBuffer> buffers;
  unsigned streams;
  std::vector<Entry> entries;
};

/// Finds offsets in several orders, as far as the work allows.
class Arena {
public:
  /// `floors`: per class where its buffers begin.
  Arena(llvm::ArrayRef<ArenaBuffer> buffers, llvm::ArrayRef<int64_t> floors, int64_t alignment, int64_t mostMeetings);

  /// The buffers with the greatest first.
  template <typename Key>
  llvm::SmallVector<unsigned> sortBy(Key key) const;
  /// Whether there is work left when one order has been tried. Of crowds and degrees nothing is known otherwise.
  bool hasTimeForMore() const { return getWork() <= kMaxWork; }
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
  /// Where a buffer lies.
  struct Placed {
    int64_t begin, end;
    bool operator<(const Placed &other) const { return begin < other.begin; }
  };
  void findMeetings(llvm::ArrayRef<unsigned> order, llvm::ArrayRef<int64_t> floors, int64_t mostMeetings);
  int64_t assign(llvm::ArrayRef<unsigned> order, llvm::MutableArrayRef<int64_t> result) const;
  /// Neighbours of a buffer are picked from all that are placed at its classes, or those that it meets are sorted.
  int64_t getPickWork(int64_t meetings) const {
    int64_t work = meetings;
    for (const ClassBuffers &at : classes)
      work += at.size() * at.size() / 2;
    return work;
  }
  int64_t getSortWork(int64_t meetings) const {
    return (int64_t(bytes.size()) + meetings) * llvm::Log2_64_Ceil(meetings / (bytes.size() + 1) + 2);
  }
  int64_t getWork() const { return std::min(getPickWork(numMeetings), getSortWork(numMeetings)); }

  llvm::ArrayRef<ArenaBuffer> buffers;
  std::vector<ClassBuffers> classes;
  llvm::SmallVector<llvm::SmallVector<unsigned, 1>> places; // by buffer, in each of its classes
  llvm::SmallVector<int64_t> bytes, floor, crowd, degree;
  llvm::SmallVector<llvm::SmallVector<unsigned, 0>> meets; // none when neighbours are picked
  int64_t numMeetings = 0;
  /// No placement can end below it: the floor of a class and its buffers of which any two are in use at once.
  int64_t bound = 0;
  int64_t end = std::numeric_limits<int64_t>::max();
  llvm::SmallVector<int64_t> offsets;
};

} // namespace

ClassBuffers::ClassBuffers(llvm::ArrayRef<ArenaBuffer> buffers, llvm::ArrayRef<unsigned> order, unsigned number)
    : buffers(buffers), streams(buffers.front().last.size() / buffers.front().classes.count()) {
  for (unsigned i : order)
    if (const llvm::SmallBitVector &own = buffers[i].classes; own.test(number)) {
      unsigned index = own.count() == 1 ? 0 : llvm::count_if(own.set_bits(), [&](unsigned c) { return c < number; });
      entries.push_back({i, index, 0, 0});
    }
  // What is known to have ended when any up to a buffer is born, and when it and all behind it are.
  std::vector<unsigned> some, all;
  for (const Entry &entry : entries)
    llvm::append_range(some, clockOf(buffers[entry.number].known, entry.index));
  all = some;
  for (size_t i = streams; i < some.size(); ++i)
    some[i] = std::max(some[i], some[i - streams]);
  for (size_t i = all.size(); i-- > streams;)
    all[i - streams] = std::min(all[i - streams], all[i]);
  for (auto [i, entry] : llvm::enumerate(entries)) {
    auto last = clockOf(buffers[entry.number].last, entry.index);
    auto findFirst = [&](llvm::ArrayRef<unsigned> clocks, unsigned from) {
      unsigned to = entries.size();
      while (from < to) {
        unsigned middle = from + (to - from) / 2;
        bool knows = llvm::all_of_zip(last, clockOf(clocks, middle), std::less_equal<>());
        (knows ? to : from) = knows ? middle : middle + 1;
      }
      return to;
    };
    entry.certain = findFirst(some, i + 1);
    entry.end = findFirst(all, entry.certain);
  }
}

int64_t ClassBuffers::boundMeetings() const {
  int64_t most = 0;
  for (auto [i, entry] : llvm::enumerate(entries))
    most += entry.end - (i + 1);
  return most;
}

Arena::Arena(llvm::ArrayRef<ArenaBuffer> buffers, llvm::ArrayRef<int64_t> floors, int64_t alignment,
             int64_t mostMeetings)
    : buffers(buffers), places(buffers.size()), bytes(buffers.size()), floor(buffers.size()), crowd(buffers.size()),
      degree(buffers.size()), meets(buffers.size()) {
  if (buffers.empty())
    return;
  llvm::SmallVector<unsigned> order(buffers.size());
  std::iota(order.begin(), order.end(), 0);
  llvm::stable_sort(order, [&](unsigned a, unsigned b) { return buffers[a].birth < buffers[b].birth; });
  for (unsigned number = 0; number < floors.size(); ++number) {
    const ClassBuffers &at = classes.emplace_back(buffers, order, number);
    for (unsigned place = 0; place < at.size(); ++place)
      places[at.numberOf(place)].push_back(place);
  }
  for (auto [i, buffer] : llvm::enumerate(buffers)) {
    bytes[i] = llvm::alignTo(buffer.bytes, alignment);
    for (unsigned number : buffer.classes.set_bits())
      floor[i] = std::max(floor[i], floors[number]);
  }
  findMeetings(order, floors, mostMeetings);
}

/// Ends early where more would serve no further order.
void Arena::findMeetings(llvm::ArrayRef<unsigned> order, llvm::ArrayRef<int64_t> floors, int64_t mostMeetings) {
  int64_t most = 0; // meetings
  for (const ClassBuffers &at : classes)
    most += at.boundMeetings();
  bool sorts = most <= mostMeetings && getSortWork(most) <= getPickWork(most);
  if (!sorts)
    meets.clear();
  struct Alive {
    unsigned place; // in its class
    bool counts;    // until some buffer is born that knows its end: any two that count are in use at once
  };
  struct Now {
    unsigned next = 0; // place
    llvm::SmallVector<Alive> alive;
    int64_t inUse = 0;
  };
  std::vector<Now> states(classes.size());
  llvm::SmallVector<unsigned> met(buffers.size(), ~0u); // with whom last
  auto meetOnce = [&](unsigned i, unsigned other) {
    if (met[other] == i)
      return;
    met[other] = i;
    ++degree[i];
    ++degree[other];
    ++numMeetings;
    if (sorts) {
      meets[i].push_back(other);
      meets[other].push_back(i);
    }
  };
  for (unsigned i : order) {
    if (!sorts && numMeetings > kMaxWork)
      return;
    for (unsigned number : buffers[i].classes.set_bits()) {
      const ClassBuffers &at = classes[number];
      auto &[next, alive, inUse] = states[number];
      size_t kept = 0;
      for (Alive other : alive) {
        unsigned earlier = at.numberOf(other.place);
        if (at.meet(other.place, next)) {
          meetOnce(i, earlier);
        } else {
          if (other.counts)
            inUse -= bytes[earlier];
          other.counts = false;
          if (at.isOver(other.place, next))
            continue;
        }
        alive[kept++] = other;
      }
      alive.truncate(kept);
      alive.push_back({next++, true});
      inUse += bytes[i];
      int64_t level = floors[number] + inUse;
      bound = std::max(bound, level);
      for (const Alive &other : alive)
        if (other.counts)
          crowd[at.numberOf(other.place)] = std::max(crowd[at.numberOf(other.place)], level);
    }
  }
}

int64_t Arena::assign(llvm::ArrayRef<unsigned> order, llvm::MutableArrayRef<int64_t> result) const {
  int64_t arena = 0;
  llvm::SmallVector<llvm::SmallVector<unsigned, 0>> placed(classes.size()); // per class, by offset
  llvm::SmallVector<Placed> near;                                          // by offset
  llvm::SmallVector<bool> isPlaced(bytes.size(), false);
  auto add = [&](unsigned j) { near.push_back({result[j], result[j] + bytes[j]}); };
  for (unsigned i : order) {
    near.clear();
    const llvm::SmallBitVector &own = buffers[i].classes;
    if (meets.empty()) {
      for (auto [number, place] : llvm::zip_equal(own.set_bits(), places[i]))
        for (unsigned other : placed[number])
          if (classes[number].meet(place, other))
            add(classes[number].numberOf(other));
    } else {
      for (unsigned j : meets[i])
        if (isPlaced[j])
          add(j);
    }
    if (!meets.empty() || places[i].size() > 1)
      llvm::sort(near, std::less<>()); // without a comparator it is qsort
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
    if (meets.empty())
      for (auto [number, place] : llvm::zip_equal(own.set_bits(), places[i])) {
        const ClassBuffers &at = classes[number];
        auto lower = [&](int64_t begin, unsigned other) { return begin < result[at.numberOf(other)]; };
        placed[number].insert(llvm::upper_bound(placed[number], result[i], lower), place);
      }
    arena = std::max(arena, result[i] + bytes[i]);
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
      work += getWork();
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
  llvm::SmallVector<llvm::SmallVector<unsigned>> orders = {arena.sortBy(bytes)};
  auto addOrder = [&](auto key) { orders.push_back(arena.sortBy(key)); };
  if (arena.hasTimeForMore()) {
    addOrder([&](unsigned i) { return double(bytes(i)) * double(arena.getDegree(i)); });
    addOrder([&](unsigned i) { return std::pair(arena.getCrowd(i), bytes(i)); });
    addOrder([&](unsigned i) { return std::pair(arena.getDegree(i), bytes(i)); });
    addOrder([&](unsigned i) { return std::pair(-int64_t(buffers[i].birth), bytes(i)); });
  }
  arena.place(orders);
  for (auto [buffer, offset] : llvm::zip_equal(buffers, arena.getOffsets()))
    buffer.offset = base + offset;
  return std::max(end, base + arena.getEnd());
}

} // namespace shoal::exec
