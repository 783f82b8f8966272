// Rows of a step on the board and in the trace.
#include "core/step_observer.h"
#include "core/error.h"
#include "shoal-rt/traffic.h"

#include <algorithm>

namespace shoal::rt {

StepObserver::StepObserver(const Program &program, uint32_t position, Beacon &beacon)
    : program_(program), beacon_(beacon), slots_(program.instrs().size(), kNone),
      between_{boardText("the work between steps"), kNone, kNone, {}},
      end_{boardText("the end of the step"), kNone, kNone, {}},
      laneBegan_(program.header().numStreams, 0) {
  nameOperations(position);
}

StepObserver::~StepObserver() { beacon_.forget(); }

// "kernel 'k_relu_3'", "all_reduce {data} bucket 0", and the ranks that meet in it.
void StepObserver::nameOperations(uint32_t position) {
  std::vector<uint32_t> signals(program_.header().numEvents, kNone); // event to row
  std::vector<uint32_t> rows = program_.rowsAt(position);
  operations_.reserve(rows.size());
  shown_.reserve(rows.size());
  for (uint32_t row : rows) {
    const Instr &instr = program_.instrs()[row];
    slots_[row] = uint32_t(operations_.size());
    Operation &operation = operations_.emplace_back();
    operation.row = row;
    std::string_view kind = instr.op == Opcode::Launch ? "kernel" : rowKind(instr);
    std::string_view name = program_.str(instr.name);
    operation.text = boardText(name.starts_with(kind) ? std::string(name)
                               : name.empty()         ? std::string(kind)
                                                      : cat(kind, " '", name, "'"));
    shown_.push_back(instr.op == Opcode::Wait ? signals[uint32_t(program_.params(instr)[0])] : row);
    if (instr.event != kNone)
      signals[instr.event] = row;
    if (!isCommunication(instr.op))
      continue;
    operation.gate = instr.stream + 1;
    auto add = [&](uint32_t other) { operation.members.push_back(program_.deviceIds()[other]); };
    if (instr.op == Opcode::Permute || instr.op == Opcode::PointToPoint) {
      for (const Peer &peer : program_.peers(instr))
        if (uint32_t other = program_.peerOf(peer, position); other != kNone)
          add(other);
      continue;
    }
    std::span<const uint32_t> axes = program_.axesOf(program_.groups()[instr.a]);
    for (uint32_t other = 0; other < program_.numPositions(); ++other) {
      bool together = true;
      for (uint32_t axis = 0; axis < program_.axes().size(); ++axis)
        if (std::find(axes.begin(), axes.end(), axis) == axes.end())
          together &= program_.coordinate(other, axis) == program_.coordinate(position, axis);
      if (together)
        add(other);
    }
  }
}

bool StepObserver::isWaiting(uint32_t row) const {
  Opcode op = program_.instrs()[row].op;
  return op == Opcode::Wait || isCommunication(op);
}

void StepObserver::begin(uint32_t row) {
  bool isWait = program_.instrs()[row].op == Opcode::Wait;
  beacon_.at(operationOf(shown_[slots_[row]]), isWait ? Phase::Waiting : Phase::Computing);
  if (trace_ || isWaiting(row))
    rowBegan_ = nowNanoseconds();
}

void StepObserver::waits(uint32_t row) { beacon_.at(operationOf(row), Phase::Waiting); }

void StepObserver::end(uint32_t row) {
  bool waited = isWaiting(row);
  if (!trace_ && !waited)
    return;
  int64_t now = nowNanoseconds();
  if (waited)
    waitedNanoseconds_ += now - rowBegan_;
  if (trace_)
    trace_->add(0, row, rowBegan_, now);
}

void StepObserver::beginEnd() {
  beacon_.at(end_, Phase::Waiting);
  rowBegan_ = nowNanoseconds();
}

void StepObserver::endStep() {
  beacon_.at(between_, Phase::Computing);
  int64_t now = nowNanoseconds();
  waitedNanoseconds_ += now - rowBegan_;
  if (trace_)
    trace_->add(0, kTraceEnd, rowBegan_, now);
}

void StepObserver::laneBegin(uint32_t row) {
  if (trace_)
    laneBegan_[program_.instrs()[row].stream] = nowNanoseconds();
}

void StepObserver::laneEnd(uint32_t row) {
  uint32_t stream = program_.instrs()[row].stream;
  if (trace_)
    trace_->add(stream, row, laneBegan_[stream], nowNanoseconds());
}

void StepObserver::entering(uint32_t row) { beacon_.transfer(operationOf(row), Phase::Entering); }

void StepObserver::entered(uint32_t row) {
  beacon_.entered(operationOf(row));
  underWay_.push_back(row);
  showTransfer();
}

void StepObserver::left(uint32_t row) {
  std::erase(underWay_, row);
  showTransfer();
}

// Of several transfers under way the one that comes first in the program.
void StepObserver::showTransfer() {
  if (underWay_.empty())
    beacon_.noTransfer();
  else
    beacon_.transfer(operationOf(*std::min_element(underWay_.begin(), underWay_.end())),
                     Phase::Waiting);
}

} // namespace shoal::rt
