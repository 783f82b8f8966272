// Waits, as few as the order of streams allows. Each stream keeps a vector clock: how many rows of
// every other stream are known to have ended when its next row starts (Lamport 1978, Mattern 1989).
#include "Layout.h"

#include "shoal/Dialect/Exec/IR/ArenaUse.h"

#include "mlir/IR/Builders.h"
#include "llvm/Support/MathExtras.h"

#include <deque>
#include <map>

using namespace mlir;

namespace shoal::exec {

namespace {

struct Row {
  RowOpInterface op;
  unsigned stream, index; // its number on its stream
};

struct Access {
  ByteRange range;
  bool writes;
};

/// Bytes of a storage with one history: per stream the last row that read and that wrote there. The
/// rows of a stream end in order, so earlier ones need no waits of their own.
struct Segment {
  int64_t end;
  SmallVector<std::optional<unsigned>, 2> reads, writes;
};

/// The history of one storage, segments by their first byte. They are disjoint and cover everything,
/// so that a row costs what it touches and not all that came before it.
class History {
public:
  explicit History(unsigned numStreams) {
    SmallVector<std::optional<unsigned>, 2> none(numStreams);
    segments[0] = {std::numeric_limits<int64_t>::max(), none, none};
  }

  void visit(ByteRange range, function_ref<void(Segment &)> callback) {
    split(range.begin);
    split(range.end);
    for (auto it = segments.find(range.begin); it != segments.end() && it->first < range.end; ++it)
      callback(it->second);
  }

private:
  /// Makes a segment begin at `at`.
  void split(int64_t at) {
    auto it = std::prev(segments.upper_bound(at));
    if (it->first == at)
      return;
    Segment behind = it->second;
    it->second.end = at;
    segments.emplace(at, std::move(behind));
  }

  std::map<int64_t, Segment> segments;
};

using Clock = SmallVector<unsigned, 2>; // rows known to have ended, per stream

void join(Clock &clock, const Clock &other) {
  for (auto [mine, theirs] : llvm::zip_equal(clock, other))
    mine = std::max(mine, theirs);
}

} // namespace

/// The row again, with a token.
static RowOpInterface addToken(RowOpInterface op) {
  OpBuilder builder(op);
  OperationState state(op->getLoc(), op->getName());
  state.addOperands(op->getOperands());
  state.addTypes(TokenType::get(op->getContext()));
  state.propertiesAttr = op->getPropertiesAsAttribute();
  state.addAttributes(op->getDiscardableAttrDictionary().getValue());
  Operation *signalling = builder.create(state);
  op->erase();
  return cast<RowOpInterface>(signalling);
}

namespace {

/// Reductions under way when one starts, where there is memory for more: what they hold is hard to place close together.
constexpr size_t kMaxRunning = 2;

/// Reductions that hold what nobody reads behind them, and what the other buffers leave for that.
class Pacer {
public:
  Pacer(ProgramOp program, ArrayRef<Row> rows, const PacedRows &paced);

  /// Whether stream 0 must know, before a row, that the oldest reduction has ended.
  bool mustWait(unsigned row) const {
    if (running.empty())
      return false;
    if (inUse[row] + held <= fullest)
      return releases[row] > 0 && running.size() >= kMaxRunning;
    return running.size() > 1 || releases[row] > 0 || microbatches[row] != microbatches[running.front()];
  }
  unsigned getOldest() const { return running.front(); }
  void start(unsigned row) {
    if (releases[row] == 0)
      return;
    running.push_back(row);
    held += releases[row];
  }
  void end() {
    held -= releases[running.front()];
    running.pop_front();
  }
  bool empty() const { return running.empty(); }

private:
  SmallVector<int64_t> inUse, releases, microbatches; // by row: bytes, bytes that its end frees, the current one
  int64_t fullest = 0, held = 0;
  std::deque<unsigned> running;
};

} // namespace

Pacer::Pacer(ProgramOp program, ArrayRef<Row> rows, const PacedRows &paced)
    : inUse(rows.size() + 1), releases(rows.size()), microbatches(rows.size(), -1) {
  for (auto [number, row] : llvm::enumerate(rows)) {
    auto it = paced.microbatches.find(row.op);
    if (it != paced.microbatches.end())
      microbatches[number] = it->second;
    else if (number > 0)
      microbatches[number] = microbatches[number - 1];
  }
  for (auto &[buffer, span] : findSpans(program)) {
    if (span.first < 0)
      continue;
    int64_t bytes = llvm::alignTo(cast<BufferType>(buffer->getResult(0).getType()).getNumBytes(), kBufferAlignment);
    inUse[span.first] += bytes;
    inUse[span.last + 1] -= bytes;
    if (rows[span.last].stream != 0 && paced.reductions.contains(rows[span.last].op))
      releases[span.last] += bytes;
  }
  for (size_t i = 1; i < inUse.size(); ++i)
    inUse[i] += inUse[i - 1];
  fullest = *llvm::max_element(inUse);
}

namespace {

/// Finds what each row must wait for, in the order in which rows are issued.
class WaitFinder {
public:
  WaitFinder(ProgramOp program, const PacedRows &paced);

  void run();

private:
  struct Wait {
    unsigned before; // the row, or rows.size() at the end
    unsigned stream, on;
  };

  bool isKnown(unsigned stream, unsigned on) const { return now[stream][rows[on].stream] > rows[on].index; }
  void waitFor(unsigned before, unsigned stream, unsigned on) {
    waits.push_back({before, stream, on});
    join(now[stream], ended[on]);
  }
  SmallVector<Access> accessesOf(const Row &row) const;
  History &historyOf(const Access &access) {
    return histories.try_emplace(access.range.storage, numStreams).first->second;
  }
  void pace(unsigned number);
  void visit(unsigned number);
  void finish();
  void insert();

  ProgramOp program;
  const PacedRows &paced;
  unsigned numStreams = 1;
  SmallVector<Row> rows;
  SmallVector<Clock> now;                   // per stream, before its next row
  SmallVector<Clock> ended;                 // per row, what its end implies
  DenseMap<Operation *, History> histories; // per storage
  SmallVector<Wait> waits;
  std::optional<Pacer> pacer;
  std::optional<unsigned> computed; // the latest row of stream 0
};

} // namespace

WaitFinder::WaitFinder(ProgramOp program, const PacedRows &paced) : program(program), paced(paced) {
  for (auto op : program.getBody().front().getOps<RowOpInterface>()) {
    rows.push_back({op, unsigned(op.getStreamIndex()), 0});
    numStreams = std::max<unsigned>(numStreams, op.getStreamIndex() + 1);
  }
  Clock issued(numStreams, 0);
  for (Row &row : rows)
    row.index = issued[row.stream]++;
  now.assign(numStreams, Clock(numStreams, 0));
  ended.resize(rows.size());
  pacer.emplace(program, rows, paced);
}

SmallVector<Access> WaitFinder::accessesOf(const Row &row) const {
  SmallVector<Value> reads, writes;
  RowOpInterface op = row.op;
  op.getReads(reads);
  op.getWrites(writes);
  SmallVector<Access> accesses;
  for (Value buffer : reads)
    accesses.push_back({getByteRange(buffer), false});
  for (Value buffer : writes)
    accesses.push_back({getByteRange(buffer), true});
  return accesses;
}

/// Stream 0 waits for reductions that hold too much.
void WaitFinder::pace(unsigned number) {
  for (; !pacer->empty() && (isKnown(0, pacer->getOldest()) || pacer->mustWait(number)); pacer->end())
    if (!isKnown(0, pacer->getOldest()))
      waitFor(number, 0, pacer->getOldest());
}

void WaitFinder::visit(unsigned number) {
  const Row &row = rows[number];
  SmallVector<Access> mine = accessesOf(row);
  // The latest row of each other stream that must have ended.
  SmallVector<std::optional<unsigned>> needed(numStreams);
  if (row.stream != 0 && paced.fetches.contains(row.op))
    needed[0] = computed;
  pace(number);
  for (const Access &access : mine)
    historyOf(access).visit(access.range, [&](Segment &segment) {
      for (unsigned stream = 0; stream < numStreams; ++stream) {
        std::optional<unsigned> earlier = segment.writes[stream];
        if (access.writes)
          earlier = std::max(earlier, segment.reads[stream]);
        if (earlier && stream != row.stream && !isKnown(row.stream, *earlier))
          needed[stream] = std::max(needed[stream], earlier);
      }
    });
  for (std::optional<unsigned> on : needed)
    if (on && !isKnown(row.stream, *on))
      waitFor(number, row.stream, *on);
  for (const Access &access : mine)
    historyOf(access).visit(access.range, [&](Segment &segment) {
      (access.writes ? segment.writes : segment.reads)[row.stream] = number;
    });
  now[row.stream][row.stream] = row.index + 1;
  ended[number] = now[row.stream];
  if (row.stream == 0)
    computed = number;
  pacer->start(number);
}

/// The step ends on stream 0.
void WaitFinder::finish() {
  SmallVector<std::optional<unsigned>> last(numStreams);
  for (unsigned i = 0; i < rows.size(); ++i)
    last[rows[i].stream] = i;
  for (unsigned stream = 1; stream < numStreams; ++stream)
    if (last[stream] && !isKnown(0, *last[stream]))
      waitFor(rows.size(), 0, *last[stream]);
}

void WaitFinder::insert() {
  for (const Wait &wait : waits)
    if (!rows[wait.on].op.getSignal())
      rows[wait.on].op = addToken(rows[wait.on].op);
  OpBuilder builder(program.getContext());
  for (const Wait &wait : waits) {
    if (wait.before < rows.size())
      builder.setInsertionPoint(rows[wait.before].op);
    else
      builder.setInsertionPointToEnd(&program.getBody().front());
    builder.create<WaitOp>(rows[wait.on].op->getLoc(), rows[wait.on].op.getSignal(), wait.stream);
  }
}

void WaitFinder::run() {
  for (unsigned i = 0; i < rows.size(); ++i)
    visit(i);
  finish();
  insert();
}

void insertWaits(ProgramOp program, const PacedRows &paced) { WaitFinder(program, paced).run(); }

} // namespace shoal::exec
