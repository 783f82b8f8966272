// The mesh of a model: its own, with the sizes of --mesh, or --mesh alone.
#include "Mesh.h"

#include "shoal/Dialect/Dist/IR/AxisRoles.h"

#include "shoal-rt/report.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/Verifier.h"

using namespace mlir;

namespace shoal {

static dist::MeshAttr toAttr(MLIRContext *context, const MeshAxes &axes) {
  SmallVector<dist::MeshAxisAttr> attrs;
  for (const auto &[name, size] : axes)
    attrs.push_back(dist::MeshAxisAttr::get(context, StringAttr::get(context, name), size));
  return dist::MeshAttr::get(context, attrs, {});
}

/// Gives the file's own mesh other sizes.
static LogicalResult resizeMesh(ModuleOp module, dist::MeshOp existing, dist::MeshAttr mesh, Location origin,
                                llvm::StringRef name) {
  dist::MeshAttr own = existing.getMesh();
  if (own.getAxes() == mesh.getAxes())
    return success(); // with the file's device ids
  if (!own.getDeviceIds().empty())
    return existing.emitError("the file's mesh places its devices by device_ids, which --mesh of other axes or "
                              "sizes cannot keep: change the file, got: ")
           << mesh;
  // What is written in the file names its axes; --mesh may change their sizes, not take one away.
  for (dist::MeshAxisAttr axis : own.getAxes()) {
    if (mesh.getAxisSize(axis.getName()))
      continue;
    if (dist::isLocalProgram(module))
      return existing.emitError("'")
             << name << "' is a local program (L2), written for its own mesh " << own
             << ": leave --mesh out, got: " << mesh;
    return existing.emitError("--mesh lacks axis '") << axis.getName().getValue() << "' of the file's own mesh";
  }
  existing.setMeshAttr(mesh);
  existing->setLoc(origin);
  return success();
}

LogicalResult setMesh(ModuleOp module, const CompilerOptions &options) {
  dist::MeshOp existing = dist::lookupMesh(module);
  if (existing && failed(verify(existing)))
    return failure();
  if (existing && options.mesh.empty())
    return success();
  MLIRContext *context = module.getContext();
  auto origin = options.mesh.empty() ? Location(module.getLoc())
                                     : Location(NameLoc::get(StringAttr::get(context, "--mesh")));
  auto mesh = toAttr(context, options.mesh.empty() ? MeshAxes{{dist::kDataAxis.str(), 1}} : options.mesh);
  if (existing)
    return resizeMesh(module, existing, mesh, origin, options.name);
  if (options.mesh.empty())
    for (const PlanOption *option : options.given)
      if (option->ofMesh() && !option->isOff(options.plan))
        return emitError(UnknownLoc::get(context))
               << option->getFlag() << " acts over a mesh: give --mesh, without which there is one device";
  OpBuilder builder = OpBuilder::atBlockBegin(module.getBody());
  builder.create<dist::MeshOp>(origin, "mesh", mesh);
  return success();
}

std::string spellMesh(dist::MeshAttr mesh) {
  std::vector<std::pair<std::string, uint64_t>> axes; // whole where the compiler split one
  for (dist::MeshAxisAttr axis : mesh.getAxes())
    rt::addAxisValue(axes, axis.getName().str(), axis.getSize(), axis.getSize(), /*isSize=*/true);
  std::string text;
  for (const auto &[name, size] : axes)
    text += (text.empty() ? "" : ",") + name + "=" + std::to_string(size);
  return text;
}

/// Ranks have rows or tokens of their own, or under sequence parallelism tokens of norms and biases.
static bool leavesGradientsPartial(dist::MeshAttr mesh, const PlanOptions &plan) {
  return plan.sequenceParallel || llvm::any_of(mesh.getAxes(), [](dist::MeshAxisAttr axis) {
           dist::AxisRole role = dist::getAxisRole(axis.getName());
           return role == dist::AxisRole::Batch || role == dist::AxisRole::Sequence;
         });
}

LogicalResult checkAxes(ModuleOp module, const CompilerOptions &options) {
  dist::MeshAttr mesh = dist::lookupMesh(module).getMesh();
  for (const PlanOption *option : options.given) {
    if (option->ofPacking && !leavesGradientsPartial(mesh, options.plan))
      return emitError(UnknownLoc::get(module.getContext()))
             << option->getFlag() << " acts on gradients that are summed over ranks, those of mesh axes 'replica', 'data', "
             << "'context' and 'ulysses', or of --sequence-parallel; the mesh has none of them: " << spellMesh(mesh);
    if (!option->axis.empty() && !option->isOff(options.plan) &&
        !mesh.getAxisSize(StringAttr::get(module.getContext(), option->axis)))
      return emitError(UnknownLoc::get(module.getContext()))
             << option->getFlag() << " acts over mesh axis '" << option->axis << "', which the mesh lacks: "
             << spellMesh(mesh);
  }
  return success();
}

} // namespace shoal
