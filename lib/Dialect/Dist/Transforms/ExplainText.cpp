// dist-explain: explanations as text for people. Layers that communicate alike, and buckets, are told once.
#include "ExplainPipeline.h"
#include "ExplainRings.h"
#include "FoldControlFlow.h"
#include "OneBlock.h"
#include "VerifyLocal.h"

#include "shoal/Dialect/Dist/IR/AxisRoles.h"
#include "shoal/Dialect/Dist/IR/Positions.h"
#include "shoal/Dialect/Dist/Transforms/Explain.h"
#include "shoal/Dialect/Dist/Transforms/Passes.h"
#include "shoal/Dialect/NN/IR/NN.h"
#include "shoal/Support/FoldedNames.h"

#include "shoal-rt/axis_names.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Pass/Pass.h"
#include "llvm/ADT/MapVector.h"

#include <map>

namespace shoal::dist {
#define GEN_PASS_DEF_EXPLAINPASS
#include "shoal/passes/ShoalDist.h.inc"
} // namespace shoal::dist

using namespace mlir;

namespace shoal::dist {
namespace {

struct Total {
  int64_t count = 0;
  uint64_t bytes = 0;
};

std::string counted(uint64_t count, StringRef one, StringRef many = "") {
  return std::to_string(count) + " " + (count == 1 ? one : many.empty() ? one.str() + "s" : many).str();
}

/// `{"data", "tensor"}`; an axis in parts that all take part is named as one, as in reports.
std::string printGroup(AxesAttr axes, MeshAttr mesh) {
  std::string text = "{";
  for (const std::string &name : rt::mergeAxisParts(getAxisNames(axes), getAxisNames(mesh)))
    text += (text.size() > 1 ? ", \"" : "\"") + name + "\"";
  return text + "}";
}

/// What is equal in explanations that are told as one; of a ring all its messages.
std::string toKey(const Explanation &it) {
  std::string key;
  llvm::raw_string_ostream os(key);
  os << it.kind << it.axes << it.type << it.count << '\n' << it.sentBytes;
  for (const std::string *text : {&it.part, &it.asker, &it.change, &it.cause, &it.removal})
    os << '\n' << *text;
  os << (it.layer.empty() ? "" : "\nin a layer");
  return key;
}

void print(const Explanation &it, const ExplanationEntry &entry, StringRef places, MeshAttr mesh, raw_ostream &os) {
  uint64_t times = entry.getTimes();
  os << "\n" << it.kind << " " << printGroup(it.axes, mesh) << ", " << counted(it.ranks, "rank") << ", ";
  if (entry.ring)
    os << entry.ring->tellHops();
  else
    os << it.type;
  os << ": " << counted(it.sentBytes, "byte");
  if (entry.ring)
    os << " in " << entry.ring->messages << (entry.ring->messages == 1 ? " message" : " messages");
  if (it.count > 1)
    os << " in " << it.count << " micro-batches";
  if (times > 1)
    os << ", " << times << " times: " << counted(times * it.sentBytes, "byte");
  os << "\n";
  auto line = [&](StringRef name, const Twine &text) {
    std::string words = text.str();
    if (!words.empty())
      os << "  " << name << std::string(12 - name.size(), ' ') << words << "\n";
  };
  std::string layers;
  if (entry.layers.size() > 1)
    layers = (counted(entry.layers.size(), "layer") + " " + entry.layers.front() +
              (entry.layers.size() > 2 ? " ... " : ", ") + entry.layers.back())
                 .str();
  line("in", it.part + (it.part.empty() || layers.empty() ? "" : " of ") + layers);
  line("at", places);
  line("for", it.asker + (it.change.empty() ? "" : ": " + it.change));
  line("because", it.cause);
  line("beside", tellOverlaps(entry));
  line("hidden", entry.ring ? entry.ring->tellHidden() : "");
  line("removed by", it.removal);
}

} // namespace

std::string Explanations::tellPlaces(const ExplanationEntry &entry, MeshAttr mesh) const {
  StringAttr axis = getPipeAxis(mesh);
  if (!axis)
    return "";
  SmallVector<uint64_t> counts(*mesh.getAxisSize(axis), 0); // by the place on the axis
  for (unsigned member : entry.members) {
    llvm::BitVector places = getPlaces(getPositions(named[member].op, mesh), mesh, axis);
    for (unsigned place : places.set_bits())
      ++counts[place];
  }
  for (uint64_t &count : counts)
    count /= entry.members.size() / entry.getTimes();
  if (llvm::all_equal(counts) && counts.front() == entry.getTimes())
    return "";
  llvm::MapVector<uint64_t, std::string> places; // by the count
  for (auto [place, count] : llvm::enumerate(counts))
    if (count) {
      std::string &text = places[count];
      text += (text.empty() ? axis.str() + " " : ", ") + std::to_string(place);
    }
  if (places.size() == 1 && places.front().first == entry.getTimes())
    return places.front().second;
  std::string text;
  for (const auto &[count, where] : places)
    text += (text.empty() ? "" : "; ") + where + ": " + (count == 1 ? "once" : std::to_string(count) + " times");
  return text;
}

Explanation Explanations::tell(const ExplanationEntry &entry) const {
  unsigned first = entry.members.front();
  if (entry.ring) {
    Explanation it = alike[first];
    it.asker = entry.ring->op + (entry.layers.size() == 1 ? " in " + entry.layers.front().str() : "");
    it.change = entry.ring->tellTensors() + " of each rank pass by " +
                (entry.ring->hops == it.ranks - 1 ? "all others" : counted(entry.ring->hops, "other"));
    it.sentBytes = 0;
    for (unsigned member : entry.members)
      it.sentBytes += alike[member].sentBytes;
    it.sentBytes /= entry.getTimes();
    return it;
  }
  bool isOne = llvm::all_of(entry.members, [&](unsigned i) { return named[i].asker == named[first].asker; });
  return (isOne ? named : alike)[first];
}

bool Explanations::hasRings() const {
  return llvm::any_of(entries, [](const ExplanationEntry &entry) { return entry.ring.has_value(); });
}

Explanations explainOnce(func::FuncOp local, bool overlap) {
  Explanations all{explain(local, overlap), explain(local, overlap, /*namesLayers=*/false), {}};
  MeshAttr mesh = all.named.empty() ? MeshAttr() : lookupMesh(local).getMesh();
  std::map<int64_t, SmallVector<const Explanation *>> rings;
  for (const Explanation &it : all.alike)
    if (it.ring >= 0)
      rings[it.ring].push_back(&it);
  std::map<int64_t, std::string> keys;
  for (const auto &[ring, hops] : rings)
    for (const Explanation *hop : hops)
      keys[ring] += toKey(*hop);
  std::map<std::string, size_t> places; // asked, never walked
  for (auto [i, it] : llvm::enumerate(all.alike)) {
    auto [place, isNew] = places.try_emplace(it.ring >= 0 ? keys[it.ring] : toKey(it), all.entries.size());
    if (isNew) {
      all.entries.emplace_back();
      if (it.ring >= 0)
        all.entries.back().ring = describeRing(rings[it.ring], mesh, overlap);
    }
    ExplanationEntry &entry = all.entries[place->second];
    entry.members.push_back(i);
    if (!it.layer.empty())
      entry.layers.insert(it.layer);
    entry.overlaps.insert(it.overlap);
  }
  // Stages of several ranks come in the order of their schedule, which is none of layers.
  if (getPipeAxis(mesh))
    for (ExplanationEntry &entry : all.entries) {
      if (!llvm::all_equal(llvm::map_range(entry.layers, [](StringRef name) { return maskNumbers(name); })))
        continue;
      SmallVector<StringRef> layers = entry.layers.takeVector();
      llvm::stable_sort(layers, [](StringRef a, StringRef b) { return a.compare_numeric(b) < 0; });
      entry.layers.insert(layers.begin(), layers.end());
    }
  // Buckets of equal layers hold tensors of equal names.
  for (const ExplanationEntry &entry : all.entries) {
    Explanation &first = all.alike[entry.members.front()];
    std::vector<std::string> askers;
    for (unsigned i : entry.members)
      askers.push_back(all.named[i].asker);
    if (!first.isBucket || llvm::all_equal(askers))
      continue;
    bool areAlike = entry.layers.size() > 1 && llvm::all_of(askers, [&](StringRef asker) {
      return maskNumbers(asker) == maskNumbers(askers.front());
    });
    first.asker = areAlike ? starNames(askers)
                           : first.asker + ", the first: " + askers.front() + "; the last: " + askers.back();
  }
  return all;
}

std::string tellOverlaps(const ExplanationEntry &entry) {
  if (entry.ring && !entry.overlaps.contains(kNoOverlap))
    return entry.ring->tellBlock();
  return entry.overlaps.size() > 1 ? (entry.overlaps.front() + " ... " + entry.overlaps.back()).str()
                                   : entry.overlaps.front().str();
}

SmallVector<uint64_t> countSent(ArrayRef<Explanation> all, MeshAttr mesh,
                                function_ref<bool(const Explanation &)> isMeant) {
  SmallVector<uint64_t> sent(mesh.getNumDevices(), 0);
  for (const Explanation &it : all) {
    if (!isMeant(it))
      continue;
    llvm::BitVector positions = getPositions(it.op, mesh);
    for (unsigned position : positions.set_bits())
      sent[position] += it.sentBytes;
  }
  return sent;
}

/// A position whose rank sends most; nothing where all send the same.
static std::optional<int64_t> findBusiest(ArrayRef<Explanation> all, MeshAttr mesh) {
  SmallVector<uint64_t> sent = countSent(all, mesh, [](const Explanation &) { return true; });
  if (llvm::all_equal(sent))
    return std::nullopt;
  return llvm::max_element(sent) - sent.begin();
}

void printExplanations(func::FuncOp local, const Explanations &all, raw_ostream &os) {
  uint64_t count = 0;
  for (const Explanation &it : all.named)
    count += it.count;
  os << counted(count, "collective") << " in @" << local.getSymName() << ": ";
  if (all.named.empty()) {
    os << "one rank sends 0 bytes in a step\n";
    return;
  }
  MeshAttr mesh = lookupMesh(local).getMesh();
  std::optional<int64_t> busiest = findBusiest(all.named, mesh);
  uint64_t bytes = 0;
  std::map<std::string, Total> totals;
  for (const Explanation &it : all.named) {
    if (!getPositions(it.op, mesh).test(busiest.value_or(0)))
      continue;
    bytes += it.sentBytes;
    Total &total = totals[it.kind + (it.kind == "send" ? "" : " " + printGroup(it.axes, mesh))];
    total.count += it.count;
    total.bytes += it.sentBytes;
  }
  if (busiest)
    os << "the rank that sends most, at " << tellRank(*busiest, mesh) << ", sends ";
  else
    os << "one rank sends ";
  os << counted(bytes, "byte") << " in a step\n";
  std::vector<std::string> places;
  for (const ExplanationEntry &entry : all.entries)
    places.push_back(all.tellPlaces(entry, mesh));
  bool areApart = llvm::any_of(places, [](StringRef text) { return !text.empty(); });
  if (areApart)
    os << "  (an entry is of all ranks of the pipeline, and \"at\" says which of them send; the total is of one)\n";
  if (all.hasRings())
    os << "  (" << tellAssumptions() << ")\n";
  for (auto [entry, where] : llvm::zip_equal(all.entries, places))
    print(all.tell(entry), entry, where, mesh, os);
  os << "\nin total" << (busiest ? ", of that rank" : areApart ? ", of one rank" : "") << "\n";
  for (const auto &[name, total] : totals)
    os << "  " << name << ": " << counted(total.count, "time") << ", " << counted(total.bytes, "byte") << "\n";
}

namespace {

/// The first op of a cut program that stands for a stage.
Operation *findCut(func::FuncOp func) {
  Operation *found = nullptr;
  func.walk([&](Operation *op) {
    if (op->getName().getDialectNamespace() != "pipe")
      return WalkResult::advance();
    found = op;
    return WalkResult::interrupt();
  });
  return found;
}

struct ExplainPass : impl::ExplainPassBase<ExplainPass> {
  using ExplainPassBase::ExplainPassBase;

  void runOnOperation() override {
    markAllAnalysesPreserved();
    ModuleOp module = getOperation();
    // Loops and branches are told as they run: of a copy, since this pass changes nothing.
    OwningOpRef<ModuleOp> unrolled;
    if (llvm::any_of(module.getOps<func::FuncOp>(), hasControlFlow))
      module = *(unrolled = module.clone());
    MeshOp mesh = lookupMesh(module);
    for (auto func : module.getOps<func::FuncOp>()) {
      if (func.isExternal())
        continue;
      if (failed(requireOneBlock(func, "explained")))
        return signalPassFailure();
      // Its messages are made where its stages stand in the order of the schedule.
      if (Operation *op = findCut(func)) {
        op->emitOpError() << "calls a stage of a pipeline, whose messages nothing shows yet; run pipe-unroll and "
                             "dist-narrow-positions before";
        return signalPassFailure();
      }
      WalkResult isLocal = func.walk([](Operation *op) {
        return succeeded(verifyNothingLeft(op)) ? WalkResult::advance() : WalkResult::interrupt();
      });
      if (isLocal.wasInterrupted())
        return signalPassFailure();
      if (mesh && hasControlFlow(func) && failed(foldControlFlow(func, mesh.getMesh(), kMaxUnrolledOps)))
        return signalPassFailure();
      printExplanations(func, explainOnce(func, overlap), llvm::errs());
    }
  }
};

} // namespace
} // namespace shoal::dist
