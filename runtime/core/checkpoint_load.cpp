// Holds a checkpoint against a program, and reads the position's boxes.
#include "core/checkpoint_load.h"
#include "core/checkpoint_shares.h"
#include "core/error.h"
#include "core/piece.h"
#include "shoal-rt/traffic.h"

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

// The first difference between the two models, or between their states, ends the run. The names that are without use.
std::vector<std::string> compare(const Program &program, const Checkpoint &checkpoint) {
  const std::string &path = checkpoint.path();
  std::vector<std::string> unused;
  std::set<std::string> known;
  for (const Tensor &tensor : program.tensors()) {
    if (!isSaved(tensor.kind) || tensor.begin != 0) // once, though it lie in several buckets
      continue;
    std::string name(program.str(tensor.name));
    known.insert(name);
    const IndexTensor *found = checkpoint.find(name);
    if (found)
      checkTensor(program, tensor, *found, path);
    else if (isModelState(tensor.kind))
      badInput(path, ": is of another model: it lacks '", name, "' ", shapeText(program.dims(tensor)));
  }
  for (const auto &[name, tensor] : checkpoint.index().tensors) {
    if (known.count(name))
      continue;
    if (isModelState(tensor.kind))
      badInput(path, ": is of another model: it holds '", shortened(name), "' ", shapeText(tensor.shape),
               ", which this program has not");
    unused.push_back(name);
  }
  return unused;
}

} // namespace

LoadSummary loadCheckpoint(const Program &program, uint32_t position, Checkpoint &checkpoint, char *arena) {
  LoadSummary summary{compare(program, checkpoint), {}};
  NewState newState =
      findNewState(program, [&](const std::string &name) { return checkpoint.find(name) != nullptr; });
  if (!newState.fault.empty())
    badInput(checkpoint.path(), ": ", newState.fault);
  summary.newState = newState.names;
  clearArguments(program, position, checkpoint.index().seed, arena);
  for (const Tensor &tensor : program.tensors()) {
    if (!isSaved(tensor.kind) || !program.holds(tensor, position))
      continue;
    const View &view = program.views()[tensor.view];
    char *to = arena + view.offset;
    std::string name(program.str(tensor.name));
    const IndexTensor *found = checkpoint.find(name);
    if (newState.holds(tensor)) {
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
