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
    const dist::Explanation &it = all.tell(entry);
    std::vector<std::string> layers;
    for (StringRef layer : entry.layers)
      layers.push_back(layer.str());
    PageCollective &collective = collectives.emplace_back(
        PageCollective{it.kind, rt::mergeAxisParts(dist::getAxisNames(it.axes), meshAxes), it.ranks, showType(it.type),
                       /*bytes=*/0, /*count=*/0, it.part, spanNames(layers), it.change, it.cause, it.removal, {}});
    if (mesh)
      collective.places = all.tellPlaces(entry, mesh);
    for (unsigned member : entry.members) {
      const dist::Explanation &own = all.named[member];
      collective.bytes += own.sentBytes;
      collective.count += own.count;
      PageAsker asker{layers.empty() ? own.asker : it.asker,
                      layers.empty() ? all.alike[member].overlap : dist::tellOverlaps(entry)};
      if (asker.asker.empty())
        asker.asker = "the program as it is written, without a reason";
      if (collective.askers.empty() || collective.askers.back() != asker)
        collective.askers.push_back(std::move(asker));
    }
  }
}

LogicalResult readLocal(ModuleOp module, bool overlap, Page &page) {
  FailureOr<SmallVector<func::FuncOp>> steps = exec::findSteps(module);
  if (failed(steps))
    return failure();
  // Of a step and its evaluation the step is told.
  func::FuncOp step = steps->size() > 1 && exec::isEvaluation(steps->front()) ? steps->back() : steps->front();
  dist::MeshOp mesh = dist::lookupMesh(step);
  dist::Explanations all = dist::explainOnce(step, overlap);
  readCollectives(all, mesh ? mesh.getMesh() : dist::MeshAttr(), page.collectives);
  readLayers(step, all.named, page.layers);
  readTensors(step, page);
  return success();
}

} // namespace shoal::report
