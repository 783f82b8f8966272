// Lives of storages by the rows that touch them.
#include "core/footprint.h"
#include "shoal-rt/traffic.h"

#include <algorithm>
#include <array>

namespace shoal::rt {
namespace {

constexpr size_t kClasses = size_t(StorageClass::Workspace) + 1;

struct Life {
  uint32_t first = kNone, last = 0; // rows
};

uint64_t bytesOf(const View &view) { return view.elements * elementBytes(view.dtype); }

} // namespace

BytesReport countBytes(const Program &program, uint32_t position) {
  std::span<const View> views = program.views();
  std::vector<Life> lives(views.size());
  auto rows = uint32_t(program.instrs().size());
  for (uint32_t row = 0; row < rows; ++row) {
    auto touch = [&](uint32_t view) {
      Life &life = lives[views[view].storage];
      life.first = std::min(life.first, row);
      life.last = row;
    };
    const Instr &instr = program.instrs()[row];
    if (!program.runsAt(instr, position))
      continue;
    if (instr.op == Opcode::PointToPoint) { // messages that have another end
      for (const Peer &peer : program.peers(instr))
        if (program.peerOf(peer, position) != kNone)
          touch(peer.view);
    } else {
      for (uint32_t view : program.operands(instr))
        touch(view);
    }
    if (instr.op == Opcode::Probe)
      touch(program.results()[instr.a].view);
  }

  std::array<uint64_t, kClasses> held{};
  for (const Arg &arg : program.args()) {
    if (!program.holds(arg, position))
      continue;
    const View &view = views[arg.view];
    held[size_t(view.storageClass)] += bytesOf(view);
    lives[arg.view] = {}; // not only while rows use it
  }
  for (size_t storageClass = 0; storageClass < kClasses; ++storageClass) {
    std::vector<int64_t> change(rows + 1, 0);
    for (size_t i = 0; i < views.size(); ++i) {
      if (lives[i].first == kNone || size_t(views[i].storageClass) != storageClass)
        continue;
      change[lives[i].first] += int64_t(bytesOf(views[i]));
      change[lives[i].last + 1] -= int64_t(bytesOf(views[i]));
    }
    int64_t now = 0, most = 0;
    for (int64_t delta : change)
      most = std::max(most, now += delta);
    held[storageClass] += uint64_t(most);
  }
  auto of = [&](StorageClass storageClass) { return held[size_t(storageClass)]; };
  BytesReport report;
  report.params = of(StorageClass::Param);
  report.grads = of(StorageClass::Grad);
  report.optimizer = of(StorageClass::Optimizer);
  report.activations = of(StorageClass::Input) + of(StorageClass::Activation);
  report.workspace = of(StorageClass::Workspace);
  return report;
}

} // namespace shoal::rt
