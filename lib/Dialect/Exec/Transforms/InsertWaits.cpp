// Waits, as few as the order of streams allows. Each stream keeps a vector clock: how many rows of
// every other stream are known to have ended when its next row starts (Lamport 1978, Mattern 1989). Each class of mesh
// positions is ordered by itself, by the rows that it runs: others have nothing to wait for.
#include "Pacing.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/MapVector.h"

#include <map>

using namespace mlir;

namespace shoal::exec {

namespace {

/// Of some positions: a stream stands before a row, or at the end (null), until another row has ended.
struct Wait {
  Operation *before;
  unsigned stream;
  Operation *on;
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

/// Finds what each row of some positions must wait for, in the order in which rows are issued.
class WaitFinder {
public:
  WaitFinder(const PositionClass &at, unsigned numStreams, const PacedRows &paced);

  /// In order.
  SmallVector<Wait> run();

private:
  bool isKnown(unsigned stream, unsigned on) const { return now[stream][rows[on].stream] > rows[on].index; }
  void waitFor(unsigned before, unsigned stream, unsigned on);
  SmallVector<Access> accessesOf(unsigned number) const;
  History &historyOf(const Access &access) {
    return histories.try_emplace(access.range.storage, numStreams).first->second;
  }
  void pace(unsigned number);
  void visit(unsigned number);
  void finish();

  /// Per other stream the latest row that must have ended.
  using Needed = SmallVector<std::optional<unsigned>>;
  void needPaced(unsigned number, Needed &needed) const;
  void needEarlier(unsigned number, ArrayRef<Access> accesses, Needed &needed);

  const PositionClass &at;
  unsigned numStreams;
  const PacedRows &paced;
  SmallVector<PlacedRow> rows;
  SmallVector<Clock> now;                   // per stream, before its next row
  SmallVector<Clock> ended;                 // per row, what its end implies
  DenseMap<Operation *, History> histories; // per storage
  SmallVector<Wait> waits;
  std::optional<ReductionPacer> reductions;
  std::optional<MessagePacer> messages;
  std::optional<unsigned> computed; // the latest row of stream 0
};

} // namespace

WaitFinder::WaitFinder(const PositionClass &at, unsigned numStreams, const PacedRows &paced)
    : at(at), numStreams(numStreams), paced(paced), now(numStreams, Clock(numStreams, 0)) {
  Clock issued(numStreams, 0);
  for (Operation *op : at.steps) {
    auto row = cast<RowOpInterface>(op);
    unsigned stream = row.getStreamIndex();
    rows.push_back({row, stream, issued[stream]++});
  }
  ended.resize(rows.size());
  reductions.emplace(at, rows, paced);
  messages.emplace(rows, paced, at.positions.front(), numStreams);
}

void WaitFinder::waitFor(unsigned before, unsigned stream, unsigned on) {
  waits.push_back({before < rows.size() ? rows[before].op.getOperation() : nullptr, stream, rows[on].op});
  join(now[stream], ended[on]);
}

SmallVector<Access> WaitFinder::accessesOf(unsigned number) const {
  SmallVector<Value> reads, writes;
  getAccesses(rows[number].op, at.positions.front(), reads, writes);
  SmallVector<Access> accesses;
  for (Value buffer : reads)
    accesses.push_back({getByteRange(buffer), false});
  for (Value buffer : writes)
    accesses.push_back({getByteRange(buffer), true});
  return accesses;
}

/// Stream 0 waits for reductions that hold too much.
void WaitFinder::pace(unsigned number) {
  for (; !reductions->empty(); reductions->end()) {
    unsigned oldest = reductions->getOldest();
    if (isKnown(0, oldest))
      continue;
    if (!reductions->mustWait(number))
      return;
    waitFor(number, 0, oldest);
  }
}

/// What must have ended so that a row does not take its memory too early.
void WaitFinder::needPaced(unsigned number, Needed &needed) const {
  if (rows[number].stream != 0 && paced.fetches.contains(rows[number].op))
    needed[0] = computed;
  if (rows[number].stream != 0)
    needed[0] = std::max(needed[0], messages->getComputed(number, computed));
  for (unsigned send : messages->getSends(number))
    if (unsigned stream = rows[send].stream; stream != rows[number].stream)
      needed[stream] = std::max(needed[stream], std::optional(send));
}

/// What must have ended since it touches the same bytes.
void WaitFinder::needEarlier(unsigned number, ArrayRef<Access> accesses, Needed &needed) {
  unsigned own = rows[number].stream;
  for (const Access &access : accesses)
    historyOf(access).visit(access.range, [&](Segment &segment) {
      for (unsigned stream = 0; stream < numStreams; ++stream) {
        std::optional<unsigned> earlier = segment.writes[stream];
        if (access.writes)
          earlier = std::max(earlier, segment.reads[stream]);
        if (earlier && stream != own && !isKnown(own, *earlier))
          needed[stream] = std::max(needed[stream], earlier);
      }
    });
}

void WaitFinder::visit(unsigned number) {
  const PlacedRow &row = rows[number];
  SmallVector<Access> accesses = accessesOf(number);
  Needed needed(numStreams);
  needPaced(number, needed);
  pace(number);
  needEarlier(number, accesses, needed);
  for (std::optional<unsigned> on : needed)
    if (on && !isKnown(row.stream, *on))
      waitFor(number, row.stream, *on);
  for (const Access &access : accesses)
    historyOf(access).visit(access.range, [&](Segment &segment) {
      (access.writes ? segment.writes : segment.reads)[row.stream] = number;
    });
  now[row.stream][row.stream] = row.index + 1;
  ended[number] = now[row.stream];
  messages->start(number, computed);
  if (row.stream == 0)
    computed = number;
  reductions->start(number);
}

/// The step ends on stream 0.
void WaitFinder::finish() {
  Needed last(numStreams);
  for (unsigned i = 0; i < rows.size(); ++i)
    last[rows[i].stream] = i;
  for (std::optional<unsigned> on : ArrayRef(last).drop_front())
    if (on && !isKnown(0, *on))
      waitFor(rows.size(), 0, *on);
}

SmallVector<Wait> WaitFinder::run() {
  for (unsigned i = 0; i < rows.size(); ++i)
    visit(i);
  finish();
  return std::move(waits);
}

void insertWaits(ProgramOp program, const PacedRows &paced) {
  Block &block = program.getBody().front();
  unsigned numStreams = 1;
  for (auto op : block.getOps<RowOpInterface>())
    numStreams = std::max<unsigned>(numStreams, op.getStreamIndex() + 1);
  PositionClasses classes(program);
  llvm::MapVector<std::tuple<Operation *, unsigned, Operation *>, SmallVector<unsigned>> waits; // by class
  for (auto [number, at] : llvm::enumerate(classes.get()))
    for (const Wait &wait : WaitFinder(at, numStreams, paced).run())
      waits[{wait.before, wait.stream, wait.on}].push_back(number);

  llvm::DenseMap<Operation *, Operation *> signalling; // rows that have been made again
  auto current = [&](Operation *op) {
    Operation *again = signalling.lookup(op);
    return again ? again : op;
  };
  for (auto &[wait, numbers] : waits)
    if (Operation *on = std::get<2>(wait); !signalling.count(on) && !cast<RowOpInterface>(on).getSignal())
      signalling[on] = addToken(cast<RowOpInterface>(on));
  OpBuilder builder(program.getContext());
  for (auto &[wait, numbers] : waits) {
    auto [before, stream, on] = wait;
    if (before)
      builder.setInsertionPoint(current(before));
    else
      builder.setInsertionPointToEnd(&block);
    auto signal = cast<RowOpInterface>(current(on));
    auto op = builder.create<WaitOp>(signal->getLoc(), signal.getSignal(), stream);
    if (DenseI64ArrayAttr at = classes.getPositions(numbers))
      op->setAttr(ExecDialect::kAtAttr, at);
  }
}

} // namespace shoal::exec
