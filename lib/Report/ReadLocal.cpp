// What the page says of one device's program (L2).
#include "Names.h"
#include "Read.h"

#include "shoal/Dialect/Dist/Transforms/Explain.h"
#include "shoal/Dialect/NN/IR/Roles.h"
#include "shoal-rt/axis_names.h"

#include "llvm/ADT/SetVector.h"

#include <map>
#include <tuple>

using namespace mlir;

namespace shoal::report {

/// Explanations that are equal but for their layers as one, with the layers in their order; outside of layers also
/// those that differ in who asks. `named` and `alike` are the same, with texts that name their layer and without.
static void readCollectives(ArrayRef<dist::Explanation> named, ArrayRef<dist::Explanation> alike, dist::MeshAttr mesh,
                            std::vector<PageCollective> &collectives) {
  std::vector<std::string> meshAxes;
  if (mesh)
    for (dist::MeshAxisAttr axis : mesh.getAxes())
      meshAxes.push_back(axis.getName().str());
  using Key = std::tuple<std::string, const void *, const void *, int64_t, uint64_t, bool, std::string, std::string,
                         std::string, std::string, std::string>;
  std::map<Key, size_t> places; // asked, never walked
  std::vector<SetVector<StringRef>> layers;
  for (auto [own, it] : llvm::zip_equal(named, alike)) {
    bool isOutside = it.layer.empty();
    PageAsker asker{isOutside ? own.asker : it.asker, it.overlap}, told = isOutside ? PageAsker() : asker;
    Key key(it.kind, it.axes.getAsOpaquePointer(), it.type.getAsOpaquePointer(), it.count, it.sentBytes, isOutside,
            told.asker, it.change, it.cause, told.overlap, it.removal);
    auto [place, isNew] = places.try_emplace(std::move(key), collectives.size());
    if (isNew) {
      collectives.push_back({it.kind, rt::mergeAxisParts(showAxes(it.axes), meshAxes), it.ranks, showType(it.type),
                             /*bytes=*/0, /*count=*/0, "", it.change, it.cause, it.removal, {}});
      layers.emplace_back();
    }
    PageCollective &collective = collectives[place->second];
    collective.bytes += it.sentBytes;
    collective.count += it.count;
    if (!isOutside)
      layers[place->second].insert(it.layer);
    if (asker.asker.empty())
      asker.asker = "the program as it is written, without a reason";
    if (collective.askers.empty() || (isOutside && collective.askers.back() != asker))
      collective.askers.push_back(std::move(asker));
  }
  for (auto [collective, names] : llvm::zip_equal(collectives, layers)) {
    std::vector<std::string> all;
    for (StringRef name : names)
      all.push_back(name.str());
    collective.layers = spanNames(all);
  }
}

void readLocal(ModuleOp module, bool overlap, Page &page) {
  // Of a step and its evaluation the step is told.
  func::FuncOp step;
  for (auto func : module.getOps<func::FuncOp>())
    if (!func.isExternal() && (!step || (step->hasAttr(nn::kEvaluationAttr) && !func->hasAttr(nn::kEvaluationAttr))))
      step = func;
  if (!step)
    return;
  dist::MeshOp mesh = dist::lookupMesh(step);
  std::vector<dist::Explanation> named = dist::explain(step, overlap);
  readCollectives(named, dist::explain(step, overlap, /*namesLayers=*/false), mesh ? mesh.getMesh() : dist::MeshAttr(),
                  page.collectives);
  readLayers(step, named, page.layers);
  readTensors(step, page.tensors);
}

} // namespace shoal::report
