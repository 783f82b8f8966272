// What the page says of one device's program (L2).
#include "Read.h"

#include "shoal/Dialect/Dist/IR/AxisRoles.h"
#include "shoal/Dialect/Dist/Transforms/Explain.h"
#include "shoal/Dialect/Exec/Transforms/StepFunction.h"
#include "shoal/Dialect/NN/IR/Roles.h"
#include "shoal/Support/FoldedNames.h"
#include "shoal-rt/axis_names.h"

using namespace mlir;

namespace shoal::report {

/// What `--explain` tells, entry by entry; outside of layers with all who ask.
static void readCollectives(const dist::Explanations &all, dist::MeshAttr mesh,
                            std::vector<PageCollective> &collectives) {
  std::vector<std::string> meshAxes = dist::getAxisNames(mesh);
  for (const dist::ExplanationEntry &entry : all.entries) {
    const dist::Explanation it = all.tell(entry);
    std::vector<std::string> layers;
    for (StringRef layer : entry.layers)
      layers.push_back(layer.str());
    PageCollective &collective = collectives.emplace_back(
        PageCollective{it.kind, rt::mergeAxisParts(dist::getAxisNames(it.axes), meshAxes), it.ranks, entry.ring ? entry.ring->tellHops() : showType(it.type),
                       /*bytes=*/0, /*count=*/0, it.part, spanNames(layers), it.change, it.cause, it.removal, {}});
    if (entry.ring)
      collective.hidden = entry.ring->tellHidden();
    if (mesh)
      collective.places = all.tellPlaces(entry, mesh);
    for (unsigned member : entry.members) {
      const dist::Explanation &own = all.named[member];
      collective.bytes += own.sentBytes;
      collective.count += own.count;
      bool isOne = !layers.empty() || entry.ring;
      PageAsker asker{isOne ? it.asker : own.asker, isOne ? dist::tellOverlaps(entry) : all.alike[member].overlap};
      if (asker.asker.empty())
        asker.asker = "the program as it is written, without a reason";
      if (collective.askers.empty() || collective.askers.back() != asker)
        collective.askers.push_back(std::move(asker));
    }
  }
}

/// Of a step and its evaluation the step.
static FailureOr<func::FuncOp> findStep(ModuleOp module) {
  FailureOr<SmallVector<func::FuncOp>> steps = exec::findSteps(module);
  if (failed(steps))
    return failure();
  return steps->size() > 1 && exec::isEvaluation(steps->front()) ? steps->back() : steps->front();
}

static rt::ReportJson toJson(const dist::ExplanationEntry &entry, const dist::Explanation &it,
                             ArrayRef<std::string> meshAxes) {
  const dist::Ring &ring = *entry.ring;
  rt::ReportJson tensors = rt::ReportJson::array();
  for (const auto &[what, type] : ring.tensors) {
    std::string text;
    llvm::raw_string_ostream(text) << type;
    tensors.push_back({{"what", what}, {"type", text}});
  }
  return {{"op", ring.op},
          {"part", it.part},
          {"axes", rt::mergeAxisParts(dist::getAxisNames(it.axes), meshAxes)},
          {"count", uint64_t(it.count) * entry.getTimes()},
          {"tensors", tensors},
          {"hops", ring.hops},
          {"bytes_per_hop", ring.bytesPerHop},
          {"flops_per_hop", ring.blockFlops},
          {"compute_ms_per_hop", 1e3 * ring.blockSeconds},
          {"transfer_ms", 1e3 * ring.transferSeconds},
          {"exposed_ms", 1e3 * ring.exposedSeconds},
          {"hidden", ring.isHidden()}};
}

FailureOr<rt::ReportJson> readRings(ModuleOp module, bool overlap) {
  FailureOr<func::FuncOp> step = findStep(module);
  if (failed(step))
    return failure();
  dist::Explanations all = dist::explainOnce(*step, overlap);
  rt::ReportJson rings;
  for (const dist::ExplanationEntry &entry : all.entries)
    if (entry.ring)
      rings.push_back(toJson(entry, all.tell(entry), dist::getAxisNames(dist::lookupMesh(*step).getMesh())));
  return rings;
}

LogicalResult readLocal(ModuleOp module, bool overlap, Page &page) {
  FailureOr<func::FuncOp> found = findStep(module);
  if (failed(found))
    return failure();
  func::FuncOp step = *found;
  dist::MeshOp mesh = dist::lookupMesh(step);
  dist::Explanations all = dist::explainOnce(step, overlap);
  readCollectives(all, mesh ? mesh.getMesh() : dist::MeshAttr(), page.collectives);
  if (all.hasRings())
    page.assumptions = dist::tellAssumptions();
  readLayers(step, all.named, page.layers);
  readTensors(step, page);
  return success();
}

} // namespace shoal::report
