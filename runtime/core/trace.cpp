// Events to Chrome's trace format: complete events ("X") in microseconds, one process per rank,
// one thread per stream.
#include "core/trace.h"
#include "core/error.h"
#include "shoal-rt/report.h"
#include "shoal-rt/traffic.h"

#include <algorithm>

namespace shoal::rt {

Trace::Trace(const Program &program, uint32_t position, uint64_t steps)
    : program_(program), streams_(program.header().numStreams) {
  std::vector<uint64_t> rows(streams_.size(), 0);
  for (const Instr &instr : program.instrs())
    rows[instr.stream] += program.runsAt(instr, position);
  rows[0] += 2; // the end of the step, a delay
  for (size_t stream = 0; stream < streams_.size(); ++stream)
    streams_[stream].reserve(rows[stream] * steps);
}

// The size of the largest buffer that a transfer reads or writes.
static uint64_t bytesOf(const Program &program, const Instr &instr) {
  uint64_t most = 0;
  auto look = [&](uint32_t index) {
    const View &view = program.views()[index];
    most = std::max(most, view.elements * elementBytes(view.dtype));
  };
  for (uint32_t view : program.operands(instr))
    look(view);
  for (const Peer &peer : program.peers(instr))
    look(peer.view);
  return most;
}

static const char *categoryOf(Opcode op) {
  return op == Opcode::Wait ? "waiting" : isCommunication(op) ? "communication" : "compute";
}

std::string Trace::text(uint32_t rank, int64_t zero, uint64_t lastStep) const {
  std::string text;
  auto add = [&](const ReportJson &event) {
    text += (text.empty() ? "" : ",\n") + toText(event, -1);
  };
  auto name = [&](const char *what, uint32_t stream, const ReportJson &args) {
    add({{"name", what}, {"ph", "M"}, {"pid", rank}, {"tid", stream}, {"args", args}});
  };
  name("process_name", 0, {{"name", cat("rank ", rank)}});
  name("process_sort_index", 0, {{"sort_index", rank}});
  for (uint32_t stream = 0; stream < streams_.size(); ++stream) {
    name("thread_name", stream,
         {{"name", stream == 0 ? std::string("compute") : cat("communication, stream ", stream)}});
    name("thread_sort_index", stream, {{"sort_index", stream}});
  }
  for (uint32_t stream = 0; stream < streams_.size(); ++stream)
    for (const Event &event : streams_[stream]) {
      if (event.step > lastStep)
        break;
      ReportJson args = {{"step", event.step}};
      std::string label = "end of step";
      const char *category = "waiting";
      if (event.row == kTraceDelay) {
        label = "injected delay";
        category = "delay";
      } else if (event.row != kTraceEnd) {
        const Instr &instr = program_.instrs()[event.row];
        label = instr.name.size != 0 ? program_.str(instr.name) : rowKind(instr);
        category = categoryOf(instr.op);
        args["row"] = event.row;
        args["operation"] = rowKind(instr);
        if (instr.reason.size != 0)
          args["reason"] = program_.str(instr.reason);
        if (instr.scope.size != 0)
          args["scope"] = program_.str(instr.scope);
        if (isCommunication(instr.op))
          args["bytes"] = bytesOf(program_, instr);
      }
      add({{"name", label},
           {"cat", category},
           {"ph", "X"},
           {"ts", double(event.begin - zero) / 1000},
           {"dur", double(event.end - event.begin) / 1000},
           {"pid", rank},
           {"tid", stream},
           {"args", args}});
    }
  return text;
}

} // namespace shoal::rt
