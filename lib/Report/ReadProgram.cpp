// The arena row by row, and what is in it when it is fullest.
#include "Read.h"

#include "shoal-rt/traffic.h"
#include "shoal/Dialect/Dist/IR/AxisRoles.h"
#include "shoal/Dialect/Exec/IR/ArenaUse.h"

#include <map>
#include <numeric>

using namespace mlir;

namespace shoal::report {

uint64_t PageRow::getTotal() const { return std::accumulate(bytes.begin(), bytes.end(), uint64_t(0)); }

size_t Page::findPeak() const {
  auto peak = llvm::max_element(
      rows, [](const PageRow &a, const PageRow &b) { return a.getTotal() < b.getTotal(); });
  return peak - rows.begin();
}

static PageClass toPageClass(exec::StorageClass storage) {
  switch (storage) {
  case exec::StorageClass::param:
    return PageClass::Params;
  case exec::StorageClass::optimizer:
    return PageClass::Optimizer;
  case exec::StorageClass::grad:
    return PageClass::Grads;
  case exec::StorageClass::input: // counts as activations, in the report too
  case exec::StorageClass::activation:
    return PageClass::Activations;
  case exec::StorageClass::workspace:
    return PageClass::Workspace;
  }
  llvm_unreachable("every class is listed");
}

/// The row's own name, or that of its kernel, or its op's.
static std::string showRow(exec::RowOpInterface row) {
  if (auto name = row->getAttrOfType<StringAttr>("name"))
    return name.str();
  if (auto launch = dyn_cast<exec::LaunchOp>(*row))
    return launch.getKernel().str();
  std::string name = row->getName().stripDialect().str();
  if (auto probe = dyn_cast<exec::ProbeOp>(*row))
    name += " " + probe.getResultName().str();
  return name;
}

/// The rows that a class of positions runs.
static void addRows(exec::ProgramOp program, const exec::PositionClass &at, std::vector<PageRow> &rows) {
  SmallVector<exec::ArenaUse> curve = exec::measureArena(at);
  SmallVector<exec::RowOpInterface> ops;
  for (Operation *op : at.steps)
    if (auto row = dyn_cast<exec::RowOpInterface>(op))
      ops.push_back(row);
  for (auto [number, use] : llvm::enumerate(curve)) {
    PageRow &row = rows.emplace_back();
    if (number < ops.size()) { // a program without rows has one entry all the same
      row.name = showRow(ops[number]);
      row.communicates = rt::isCommunication(ops[number].getOpcode());
      if (row.communicates)
        row.axes = dist::getAxisNames(ops[number].getGroup());
    }
    for (auto [storage, bytes] : llvm::enumerate(use.bytes))
      row.bytes[size_t(toPageClass(exec::StorageClass(storage)))] += bytes;
  }
}

/// The class of positions whose ranks need most of the arena.
static size_t findFullest(exec::ProgramOp program, const exec::PositionClasses &classes) {
  size_t fullest = 0;
  int64_t most = -1;
  for (auto [number, at] : llvm::enumerate(classes.get()))
    if (int64_t end = exec::measureMost(at).end; end > most) {
      most = end;
      fullest = number;
    }
  return fullest;
}

static std::string showShape(exec::BufferType type) {
  return showType(RankedTensorType::get(type.getShape(), type.getElementType()));
}

/// The buffers in use at a row, which are no arguments; those with equal shapes and rows as one.
static void addHeld(const exec::PositionClass &positions, int64_t at, ArrayRef<PageRow> rows, Page &page) {
  constexpr size_t kMostHeld = 10;
  std::map<std::tuple<unsigned, std::string, std::string, std::string>, size_t> places;
  for (auto [buffer, span] : exec::findSpans(positions)) {
    if (exec::getMemory(buffer.getResult()) == exec::Memory::host)
      continue; // no part of the arena
    if (span.first > at || span.last < at)
      continue;
    exec::BufferType type = buffer.getResult().getType();
    PageHeld held{toPageClass(buffer.getStorage()), showShape(type), rows[span.first].name, rows[span.last].name,
                  uint64_t(type.getNumBytes())};
    auto [place, isNew] = places.try_emplace(
        {unsigned(held.storage), held.shape, held.firstRow, held.lastRow}, page.held.size());
    if (isNew)
      page.held.push_back(std::move(held));
    else
      ++page.held[place->second].count;
  }
  llvm::stable_sort(page.held, [](const PageHeld &a, const PageHeld &b) {
    return a.bytes * a.count > b.bytes * b.count;
  });
  for (const PageHeld &other : ArrayRef(page.held).drop_front(std::min(page.held.size(), kMostHeld)))
    page.otherHeld += other.count;
  page.held.resize(std::min(page.held.size(), kMostHeld));
}

LogicalResult readProgram(ModuleOp module, Page &page) {
  FailureOr<exec::Programs> found = exec::findPrograms(module);
  if (failed(found))
    return failure();
  // Evaluation, if any, runs after the step on the same arena.
  SmallVector<exec::ProgramOp> programs = {found->step};
  if (found->evaluation)
    programs.push_back(found->evaluation);
  // One rank stands for all: of those that need most for the step, the first.
  exec::PositionClasses stepClasses(programs.front());
  int64_t position = stepClasses[findFullest(programs.front(), stepClasses)].positions.front();
  if (dist::hasPipeline(module) && stepClasses.size() > 1)
    page.rowsOf = dist::tellRank(position, dist::lookupMesh(module).getMesh());
  SmallVector<size_t> begins;
  SmallVector<exec::PositionClass> shown;
  for (exec::ProgramOp program : programs) {
    begins.push_back(page.rows.size());
    exec::PositionClasses classes(program);
    shown.push_back(*llvm::find_if(classes.get(), [&](const exec::PositionClass &at) {
      return llvm::is_contained(at.positions, position);
    }));
    addRows(program, shown.back(), page.rows);
    page.arena = std::max<uint64_t>(page.arena, program.getArena());
  }
  page.stepRows = begins.size() > 1 ? begins[1] : page.rows.size();
  page.mode = stringifyMode(programs.front().getMode()).str();
  size_t peak = page.findPeak(), which = begins.size() > 1 && peak >= begins[1];
  size_t begin = begins[which];
  addHeld(shown[which], int64_t(peak - begin), ArrayRef(page.rows).drop_front(begin), page);
  return success();
}

} // namespace shoal::report
