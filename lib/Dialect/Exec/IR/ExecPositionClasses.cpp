// Positions are apart where some `exec.at` or message distinguishes them.
#include "shoal/Dialect/Exec/IR/PositionClasses.h"

#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/SetVector.h"

#include <map>

using namespace mlir;

namespace shoal::exec {

/// Whether a position is in a set: one of those of an `exec.at`, or with another end in a list of peers.
static llvm::BitVector membersOf(DenseI64ArrayAttr list, bool isPeers, int64_t positions) {
  llvm::BitVector members(positions);
  for (auto [number, value] : llvm::enumerate(list.asArrayRef()))
    if (!isPeers)
      members.set(value);
    else if (value >= 0)
      members.set(number);
  return members;
}

PositionClasses::PositionClasses(ProgramOp program) : program(program) {
  dist::MeshOp mesh = dist::lookupMesh(program);
  positions = mesh ? mesh.getMesh().getNumDevices() : 1;
  llvm::SetVector<Attribute> ats, peers;
  for (Operation &op : program.getBody().front()) {
    if (Attribute at = op.getAttr(ExecDialect::kAtAttr))
      ats.insert(at);
    if (auto messages = dyn_cast<PointToPointOp>(op))
      for (ArrayAttr ends : {messages.getTargets(), messages.getSources()})
        peers.insert(ends.begin(), ends.end());
  }

  SmallVector<unsigned> classOf(positions, 0);
  unsigned count = 1;
  auto split = [&](const llvm::BitVector &members) {
    if (members.all() || members.none())
      return;
    std::map<std::pair<unsigned, bool>, unsigned> fresh;
    for (int64_t position = 0; position < positions; ++position)
      classOf[position] =
          fresh.try_emplace({classOf[position], members.test(position)}, fresh.size()).first->second;
    count = fresh.size();
  };
  for (Attribute at : ats)
    split(membersOf(cast<DenseI64ArrayAttr>(at), /*isPeers=*/false, positions));
  for (Attribute list : peers)
    split(membersOf(cast<DenseI64ArrayAttr>(list), /*isPeers=*/true, positions));

  classes.resize(count);
  for (int64_t position = 0; position < positions; ++position)
    classes[classOf[position]].positions.push_back(position);
  for (unsigned number = 0; number < count; ++number)
    everyClass.push_back(number);
  for (Attribute at : ats) {
    llvm::BitVector members = membersOf(cast<DenseI64ArrayAttr>(at), /*isPeers=*/false, positions);
    SmallVector<unsigned> &numbers = classesOf[at];
    for (auto [number, positionClass] : llvm::enumerate(classes))
      if (members.test(positionClass.positions.front()))
        numbers.push_back(number);
  }
  for (Operation &op : program.getBody().front())
    if (auto argument = dyn_cast<ArgOp>(op))
      for (unsigned number : of(&op))
        classes[number].arguments.push_back(argument);
    else if (isa<WaitOp, RowOpInterface>(op))
      for (unsigned number : of(&op))
        classes[number].steps.push_back(&op);
}

ArrayRef<unsigned> PositionClasses::of(Operation *op) const {
  Attribute at = op->getAttr(ExecDialect::kAtAttr);
  if (!at)
    return everyClass;
  auto known = classesOf.find(at);
  return known == classesOf.end() ? ArrayRef<unsigned>() : ArrayRef<unsigned>(known->second);
}

DenseI64ArrayAttr PositionClasses::getPositions(ArrayRef<unsigned> numbers) const {
  SmallVector<int64_t> list;
  for (unsigned number : numbers)
    llvm::append_range(list, classes[number].positions);
  llvm::sort(list);
  if (int64_t(list.size()) == positions)
    return {};
  return DenseI64ArrayAttr::get(program->getContext(), list);
}

} // namespace shoal::exec
