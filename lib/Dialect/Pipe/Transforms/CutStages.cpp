// Dynamic programming over (stages, units): the best cut of the first units into so many stages ends with one more stage.
#include "CutStages.h"

#include "llvm/ADT/DenseSet.h"

#include <cmath>

using namespace mlir;

namespace shoal::pipe {

namespace {

/// A stage of consecutive units, as units are put in front of it.
struct StageSum {
  double cost = 0;
  int64_t kept = 0, parameterBytes = 0;
  llvm::SmallDenseSet<Value> parameters; // each once

  void prepend(const StageUnit &unit) {
    cost += unit.cost;
    kept += unit.kept;
    for (auto [parameter, bytes] : unit.parameters)
      if (parameters.insert(parameter).second)
        parameterBytes += bytes;
  }
  double getHeld(const StageMemory &memory, int64_t stage) const {
    int64_t live = memory.live.empty() ? 1 : memory.live[stage];
    return double(parameterBytes) * memory.ofParameter + double(kept) * memory.ofBatch * double(live);
  }
};

} // namespace

std::optional<Cut> cutStages(ArrayRef<StageUnit> units, int64_t stages, const StageMemory &memory, double below) {
  int64_t count = units.size();
  // best[s][i]: of the first i units in s stages; begin[s][i]: where the last of them begins.
  std::vector<std::vector<double>> best(stages + 1, std::vector<double>(count + 1, HUGE_VAL));
  std::vector<std::vector<int64_t>> begin(stages + 1, std::vector<int64_t>(count + 1, -1));
  best[0][0] = 0;
  for (int64_t s = 1; s <= stages; ++s)
    for (int64_t i = s; i <= count - (stages - s); ++i) {
      StageSum sum;
      for (int64_t j = i - 1; j >= s - 1; --j) {
        sum.prepend(units[j]);
        if (sum.cost >= best[s][i] || sum.getHeld(memory, s - 1) >= below)
          break; // so are all that begin before it
        if (double most = std::max(best[s - 1][j], sum.cost); most < best[s][i]) {
          best[s][i] = most;
          begin[s][i] = j;
        }
      }
    }
  if (best[stages][count] == HUGE_VAL)
    return std::nullopt;
  Cut cut;
  cut.begins.resize(stages);
  for (int64_t s = stages, end = count; s > 0; --s) {
    StageSum sum;
    for (cut.begins[s - 1] = begin[s][end]; end > cut.begins[s - 1];)
      sum.prepend(units[--end]);
    cut.held = std::max(cut.held, sum.getHeld(memory, s - 1));
  }
  return cut;
}

} // namespace shoal::pipe
