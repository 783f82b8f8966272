// How parameters, state, inputs and outputs lie on the mesh; equal ones of many layers as one.
#include "Read.h"

#include "shoal/Dialect/Dist/IR/AxisRoles.h"
#include "shoal/Dialect/Dist/IR/Positions.h"
#include "shoal/Dialect/NN/IR/Roles.h"
#include "shoal/Support/Elements.h"
#include "shoal/Support/FoldedNames.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

#include <map>

using namespace mlir;

namespace shoal::report {

/// The positions that hold an argument: of a pipeline those that read it, all where none does.
static llvm::BitVector findHolders(BlockArgument argument, dist::MeshAttr mesh) {
  llvm::BitVector holders(mesh ? mesh.getNumDevices() : 1);
  if (dist::getPipeAxis(mesh))
    for (OpOperand &use : argument.getUses())
      if (!use.getOwner()->hasTrait<OpTrait::IsTerminator>())
        holders |= dist::getReadPositions(use, mesh);
  return holders.any() ? holders : holders.flip();
}

/// The positions that have what the step returns.
static llvm::BitVector findHolders(Value result, dist::MeshAttr mesh) {
  if (auto argument = dyn_cast<BlockArgument>(result))
    return findHolders(argument, mesh);
  return mesh ? dist::getPositions(result.getDefiningOp(), mesh) : llvm::BitVector(1, true);
}

/// A tensor as one rank has it, and what it is a piece of.
static PageTensor describe(RankedTensorType local, Attribute attr, const llvm::BitVector &holders,
                           dist::MeshAttr mesh) {
  PageTensor tensor;
  llvm::raw_string_ostream(tensor.element) << local.getElementType();
  tensor.bytes = tensorBytes(local);
  auto global = dyn_cast_or_null<dist::GlobalAttr>(attr);
  RankedTensorType whole = global ? global.getType() : local;
  tensor.copies = holders.count();
  if (mesh)
    tensor.places = dist::tellPlaces(holders, mesh);
  for (int64_t i = 0; i < local.getRank(); ++i) {
    PageDim dim{whole.getDimSize(i), local.getDimSize(i), 1, {}};
    if (global && mesh)
      for (StringAttr axis : global.getSharding().getDimAxes(i)) {
        dim.axes.push_back(axis.str());
        dim.parts *= mesh.getAxisSize(axis).value_or(1);
      }
    tensor.copies /= dim.parts;
    tensor.dims.push_back(std::move(dim));
  }
  return tensor;
}

static StringRef showRole(nn::ArgRole role) {
  switch (role) {
  case nn::ArgRole::Param:
    return "parameter";
  case nn::ArgRole::Buffer:
    return "buffer";
  case nn::ArgRole::State:
  case nn::ArgRole::Step:
    return "state";
  case nn::ArgRole::Input:
    return "input";
  case nn::ArgRole::ValidRows:
  case nn::ArgRole::Seed:
    return "hidden input";
  case nn::ArgRole::None:
    return "argument";
  }
  llvm_unreachable("every role is listed");
}

static bool haveEqualLayout(const PageTensor &a, const PageTensor &b) {
  return a.element == b.element && a.dims == b.dims && a.places == b.places;
}

/// Everything but names: what tensors of one line have in common.
static std::string layoutKey(const PageTensor &tensor) {
  std::string key = tensor.role + "\1" + tensor.element + "\1" + tensor.places;
  for (const PageDim &dim : tensor.dims) {
    key += "\1" + std::to_string(dim.global) + "/" + std::to_string(dim.local);
    for (const std::string &axis : dim.axes)
      key += "\2" + axis;
  }
  key += "\1";
  for (int64_t size : tensor.file)
    key += std::to_string(size) + "x";
  for (const std::string &state : tensor.state)
    key += "\1" + state;
  return key;
}

/// Of many names those that are equal but for numbers as one, in the order of the first.
static std::vector<std::string> foldAlike(ArrayRef<std::string> names) {
  llvm::MapVector<std::string, std::vector<std::string>, std::map<std::string, unsigned>> groups;
  for (const std::string &name : names)
    groups[maskNumbers(name)].push_back(name);
  std::vector<std::string> folded;
  for (const auto &[mask, alike] : groups)
    folded.push_back(foldNames(alike));
  return folded;
}

static std::vector<PageTensor> fold(std::vector<PageTensor> all) {
  llvm::MapVector<std::string, std::vector<size_t>, std::map<std::string, unsigned>> groups;
  for (auto [index, tensor] : llvm::enumerate(all))
    groups[maskNumbers(tensor.name) + layoutKey(tensor)].push_back(index);
  std::vector<PageTensor> folded;
  for (const auto &[key, members] : groups) {
    std::vector<std::string> names;
    std::vector<std::string> holds;
    llvm::StringSet<> seen;
    for (size_t index : members) {
      names.push_back(all[index].name);
      for (const std::string &held : all[index].holds)
        if (seen.insert(held).second) // one tensor may lie in several buckets
          holds.push_back(held);
    }
    folded.push_back(std::move(all[members.front()]));
    folded.back().name = foldNames(names);
    folded.back().holds = foldAlike(holds);
    folded.back().count = int64_t(members.size());
  }
  return folded;
}

/// Each tensor once, whole, though several buckets hold parts of it.
static void countParameters(func::FuncOp step, Page &page) {
  llvm::StringSet<> seen;
  auto add = [&](StringRef name, RankedTensorType whole) {
    if (!seen.insert(name).second)
      return;
    page.parameters += whole.getNumElements();
    ++page.parameterTensors;
  };
  for (unsigned i = 0; i < step.getNumArguments(); ++i) {
    if (nn::getArgRole(step, i) != nn::ArgRole::Param)
      continue;
    auto bucket = step.getArgAttrOfType<dist::BucketAttr>(i, dist::DistDialect::kBucketAttr);
    auto global = step.getArgAttrOfType<dist::GlobalAttr>(i, dist::DistDialect::kGlobalAttr);
    if (bucket)
      for (dist::MemberAttr member : bucket.getMembers())
        add(member.getName(), member.getWholeType());
    else
      add(nn::getArgName(step, i),
          global ? global.getType() : cast<RankedTensorType>(step.getArgument(i).getType()));
  }
}

void readTensors(func::FuncOp step, Page &page) {
  countParameters(step, page);
  dist::MeshOp meshOp = dist::lookupMesh(step);
  dist::MeshAttr mesh = meshOp ? meshOp.getMesh() : dist::MeshAttr();
  std::vector<PageTensor> all;
  llvm::StringMap<size_t> parameters;
  for (unsigned i = 0; i < step.getNumArguments(); ++i) {
    auto local = dyn_cast<RankedTensorType>(step.getArgument(i).getType());
    if (!local)
      continue;
    PageTensor tensor = describe(local, step.getArgAttr(i, dist::DistDialect::kGlobalAttr),
                                 findHolders(step.getArgument(i), mesh), mesh);
    tensor.role = showRole(nn::getArgRole(step, i));
    tensor.name = nn::getArgName(step, i).str();
    if (std::optional<ArrayRef<int64_t>> file = nn::getFileShape(step, i))
      tensor.file = file->vec();
    if (auto bucket = step.getArgAttrOfType<dist::BucketAttr>(i, dist::DistDialect::kBucketAttr))
      for (dist::MemberAttr member : bucket.getMembers())
        tensor.holds.push_back(member.getName().str());
    // State that lies as its parameter is told with it.
    auto state = step.getArgAttrOfType<nn::StateAttr>(i, nn::NNDialect::kStateAttr);
    if (auto of = state ? parameters.find(state.getOf()) : parameters.end();
        of != parameters.end() && haveEqualLayout(all[of->second], tensor)) {
      StringRef name = tensor.name;
      name.consume_front(state.getOf());
      all[of->second].state.push_back(name.ltrim('.').str());
      continue;
    }
    if (tensor.role == "parameter")
      parameters[tensor.name] = all.size();
    all.push_back(std::move(tensor));
  }
  Operation *end = step.getBody().back().getTerminator();
  for (unsigned i = 0; i < step.getNumResults(); ++i) {
    auto name = step.getResultAttrOfType<StringAttr>(i, nn::NNDialect::kOutputAttr);
    auto local = dyn_cast<RankedTensorType>(step.getResultTypes()[i]);
    if (!name || !local)
      continue;
    PageTensor tensor = describe(local, step.getResultAttr(i, dist::DistDialect::kGlobalAttr),
                                 findHolders(end->getOperand(i), mesh), mesh);
    tensor.role = "output";
    tensor.name = name.str();
    all.push_back(std::move(tensor));
  }
  page.tensors = fold(std::move(all));
}

} // namespace shoal::report
