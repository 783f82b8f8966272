// Holds a checkpoint against a program, and reads the position's boxes.
#include "core/checkpoint_load.h"
#include "core/checkpoint_shares.h"
#include "core/error.h"
#include "core/piece.h"
#include "shoal-rt/traffic.h"

#include <algorithm>
#include <set>

namespace shoal::rt {
namespace {

void checkTensor(const Program &program, const Tensor &tensor, const IndexTensor &found, const std::string &path) {
  std::string_view name = program.str(tensor.name);
  DType type = program.views()[tensor.view].dtype;
  std::vector<uint64_t> shape = globalShape(program.dims(tensor));
  if (found.shape != shape)
    badInput(path, ": '", name, "' has shape ", shapeText(found.shape), ", expected ", shapeText(shape));
  if (!canConvert(found.type, type) || isFloatType(found.type) != isFloatType(fileTypeOf(type)))
    badInput(path, ": '", name, "' holds ", fileTypeName(found.type), ", expected ", dtypeName(type));
}

// The first difference between the two models, or between their states, ends the run.
LoadSummary compare(const Program &program, const Checkpoint &checkpoint) {
  const std::string &path = checkpoint.path();
  LoadSummary summary;
  std::set<std::string> known;
  std::string stateThere, step; // the first; where it is there
  for (const Tensor &tensor : program.tensors()) {
    if (!isKept(tensor.kind) || tensor.begin != 0) // once, though it lie in several buckets
      continue;
    std::string name(program.str(tensor.name));
    known.insert(name);
    const IndexTensor *found = checkpoint.find(name);
    if (found)
      checkTensor(program, tensor, *found, path);
    else if (isModelState(tensor.kind))
      badInput(path, ": is of another model: it lacks '", name, "' ", shapeText(program.dims(tensor)));
    else
      summary.newState.push_back(name);
    if (found && tensor.kind == TensorKind::Step)
      step = name;
    else if (found && tensor.kind == TensorKind::State && stateThere.empty())
      stateThere = name;
  }
  for (const auto &[name, tensor] : checkpoint.index().tensors) {
    if (known.count(name))
      continue;
    if (isModelState(tensor.kind))
      badInput(path, ": is of another model: it holds '", shortened(name), "' ", shapeText(tensor.shape),
               ", which this program has not");
    summary.unused.push_back(name);
  }
  if (!stateThere.empty() && !summary.newState.empty())
    badInput(path, ": holds '", shortened(stateThere), "' but not '", shortened(summary.newState.front()),
             "', expected all of the optimizer's state or none");
  if (!summary.newState.empty() && !step.empty())
    summary.newState.push_back(step); // it counts what the state is made of
  return summary;
}

} // namespace

LoadSummary loadCheckpoint(const Program &program, uint32_t position, Checkpoint &checkpoint, char *arena) {
  LoadSummary summary = compare(program, checkpoint);
  clearArguments(program, checkpoint.index().seed, arena);
  for (const Tensor &tensor : program.tensors()) {
    if (!isKept(tensor.kind))
      continue;
    const View &view = program.views()[tensor.view];
    char *to = arena + view.offset;
    std::string name(program.str(tensor.name));
    const IndexTensor *found = checkpoint.find(name);
    if (!found || std::ranges::find(summary.newState, name) != summary.newState.end()) {
      drawTensor(program, tensor, position, checkpoint.index().seed, to);
      continue;
    }
    for (const PlacedBox &box : boxesAt(program, tensor, position))
      checkpoint.read(*found, box, [&](const unsigned char *from, uint64_t at, uint64_t count, const std::string &file) {
        convert(from, found->type, to + at * elementBytes(view.dtype), view.dtype, count, file);
      });
  }
  checkpoint.checkWhole();
  return summary;
}

} // namespace shoal::rt
