// dist-explain: explanations as text for people. Layers that communicate alike, and buckets, are told once.
#include "shoal/Dialect/Dist/Transforms/Explain.h"
#include "shoal/Dialect/Dist/Transforms/Passes.h"

#include "shoal-rt/axis_names.h"

#include "mlir/Pass/Pass.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

#include <map>

namespace shoal::dist {
#define GEN_PASS_DEF_EXPLAINPASS
#include "shoal/passes/ShoalDist.h.inc"
} // namespace shoal::dist

using namespace mlir;

namespace shoal::dist {
namespace {

/// Explanations that differ in their layer and in what runs beside them only, by their numbers.
struct Entry {
  SmallVector<unsigned> members;
  SetVector<StringRef> layers, overlaps;
};

struct Total {
  int64_t count = 0;
  uint64_t bytes = 0;
};

std::string counted(uint64_t count, StringRef one, StringRef many = "") {
  return std::to_string(count) + " " + (count == 1 ? one : many.empty() ? one.str() + "s" : many).str();
}

/// `{"data", "tensor"}`; an axis in parts that all take part is named as one, as in reports.
std::string printGroup(AxesAttr axes, MeshAttr mesh) {
  std::vector<std::string> names, all;
  for (StringAttr axis : axes.getAxes())
    names.push_back(axis.str());
  for (MeshAxisAttr axis : mesh.getAxes())
    all.push_back(axis.getName().str());
  std::string text = "{";
  for (const std::string &name : rt::mergeAxisParts(names, all))
    text += (text.size() > 1 ? ", \"" : "\"") + name + "\"";
  return text + "}";
}

/// What is equal in explanations that are told as one.
std::string toKey(const Explanation &it) {
  std::string key;
  llvm::raw_string_ostream os(key);
  os << it.kind << it.axes << it.type << it.count << '\n' << it.sentBytes;
  for (const std::string *text : {&it.asker, &it.change, &it.cause, &it.removal})
    os << '\n' << *text;
  os << (it.layer.empty() ? "" : "\nin a layer");
  return key;
}

void print(const Explanation &it, const Entry &entry, MeshAttr mesh, raw_ostream &os) {
  uint64_t times = entry.members.size();
  os << "\n" << it.kind << " " << printGroup(it.axes, mesh) << ", " << counted(it.ranks, "rank") << ", " << it.type
     << ": " << counted(it.sentBytes, "byte");
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
  if (entry.layers.size() > 1)
    line("in", counted(entry.layers.size(), "layer") + " " + entry.layers.front() +
                   (entry.layers.size() > 2 ? " ... " : ", ") + entry.layers.back());
  line("for", it.asker + (it.change.empty() ? "" : ": " + it.change));
  line("because", it.cause);
  line("beside", entry.overlaps.size() > 1 ? entry.overlaps.front() + " ... " + entry.overlaps.back() : it.overlap);
  line("removed by", it.removal);
}

} // namespace

void printExplanations(func::FuncOp local, bool overlap, raw_ostream &os) {
  std::vector<Explanation> all = explain(local, overlap), alike = explain(local, overlap, /*namesLayers=*/false);
  llvm::MapVector<StringRef, Entry> entries;
  std::vector<std::string> keys;
  for (const Explanation &it : alike)
    keys.push_back(toKey(it));
  uint64_t bytes = 0, count = 0;
  for (auto [i, it] : llvm::enumerate(all)) {
    Entry &entry = entries[keys[i]];
    entry.members.push_back(i);
    if (!it.layer.empty())
      entry.layers.insert(it.layer);
    entry.overlaps.insert(alike[i].overlap);
    bytes += it.sentBytes;
    count += it.count;
  }
  os << counted(count, "collective") << " in @" << local.getSymName() << ": one rank sends " << counted(bytes, "byte")
     << " in a step\n";
  if (all.empty())
    return;
  MeshAttr mesh = lookupMesh(local).getMesh();
  for (const auto &[key, entry] : entries) {
    unsigned first = entry.members.front();
    bool isOne = llvm::all_of(entry.members, [&, first](unsigned i) { return all[i].asker == all[first].asker; });
    print((isOne ? all : alike)[first], entry, mesh, os);
  }
  std::map<std::string, Total> totals;
  for (const Explanation &it : all) {
    Total &total = totals[it.kind + (it.kind == "send" ? "" : " " + printGroup(it.axes, mesh))];
    total.count += it.count;
    total.bytes += it.sentBytes;
  }
  os << "\nin total\n";
  for (const auto &[name, total] : totals)
    os << "  " << name << ": " << counted(total.count, "time") << ", " << counted(total.bytes, "byte") << "\n";
}

namespace {

struct ExplainPass : impl::ExplainPassBase<ExplainPass> {
  using ExplainPassBase::ExplainPassBase;

  void runOnOperation() override {
    markAllAnalysesPreserved();
    for (auto func : getOperation().getOps<func::FuncOp>())
      if (!func.isExternal())
        printExplanations(func, overlap, llvm::errs());
  }
};

} // namespace
} // namespace shoal::dist
