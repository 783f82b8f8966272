// First values and files of parameters.
#include "core/parameters.h"
#include "core/gather.h"
#include "shoal-rt/random.h"
#include "shoal-rt/traffic.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <set>

namespace shoal::rt {
namespace {

void read(const TensorEntry &tensor, const Piece &piece, DType type, const std::string &what,
          char *to) {
  piece.forEachRun([&](uint64_t global, uint64_t local, uint64_t count) {
    convert(tensor.data + global * fileElementBytes(tensor.type), tensor.type,
            to + local * elementBytes(type), type, count, what);
  });
}

// What is wrong with files, for one line: the first few faults, and how many there are.
class Faults {
public:
  // Of a tensor in several buckets each tells the same.
  void add(const std::string &what) {
    if (told_.insert(what).second && ++count_ <= kMost)
      text_ += (text_.empty() ? "" : "; ") + what;
  }
  bool empty() const { return count_ == 0; }
  std::string text() const { return count_ <= kMost ? text_ : cat(text_, "; and ", count_ - kMost, " more"); }

private:
  static constexpr uint64_t kMost = 3;
  uint64_t count_ = 0;
  std::string text_;
  std::set<std::string> told_;
};

bool isOptimizers(const Tensor &tensor) {
  return tensor.kind == TensorKind::State || tensor.kind == TensorKind::Step;
}

} // namespace

bool NewState::holds(const Tensor &tensor) const { return !names.empty() && isOptimizers(tensor); }

NewState findNewState(const Program &program, const std::function<bool(const std::string &)> &isThere) {
  std::vector<std::string> all, steps;
  std::string there, missing; // the first
  for (const Tensor &tensor : program.tensors()) {
    if (!isOptimizers(tensor) || tensor.begin != 0) // once, though it lie in several buckets
      continue;
    const std::string &name =
        (tensor.kind == TensorKind::State ? all : steps).emplace_back(program.str(tensor.name));
    if (!isThere(name))
      missing = missing.empty() ? name : missing;
    else if (tensor.kind == TensorKind::State && there.empty())
      there = name;
  }
  if (missing.empty())
    return {};
  if (there.empty()) {
    all.insert(all.end(), steps.begin(), steps.end());
    return {std::move(all), ""};
  }
  return {{}, cat("holds '", shortened(there), "' but not '", shortened(missing),
                  "', expected all of the optimizer's state or none")};
}

void clearArguments(const Program &program, uint32_t position, uint64_t seed, char *arena) {
  for (const Arg &arg : program.args()) {
    const View &view = program.views()[arg.view];
    if (arg.kind == ArgKind::Input || arg.kind == ArgKind::ValidRows)
      continue; // the data set fills them before each step
    if (!program.holds(arg, position))
      continue; // there its bytes are others'
    std::memset(arena + view.offset, 0, view.elements * elementBytes(view.dtype));
    if (arg.kind == ArgKind::Seed) { // of this run, not of the files' one
      uint64_t key = streamKey(seed, program.str(arg.name));
      std::memcpy(arena + view.offset, &key, sizeof key);
    }
  }
}

void drawTensor(const Program &program, const Tensor &tensor, uint32_t position, uint64_t seed, char *to) {
  if (tensor.kind == TensorKind::Step)
    return; // counts from 0
  DType type = program.views()[tensor.view].dtype;
  std::vector<uint64_t> shape = program.fileShape(tensor);
  // State and buffers have no init kind: they are filled with `a`.
  InitKind init = tensor.kind == TensorKind::Param ? tensor.init : InitKind::Constant;
  uint64_t key = streamKey(seed, program.str(tensor.name));
  pieceOf(program, tensor, position).forEachRun([&](uint64_t global, uint64_t local, uint64_t count) {
    for (uint64_t i = 0; i < count; ++i)
      storeElement(to, type, local + i,
                   initialValue(init, tensor.a, tensor.b, shape, key, global + i));
  });
}

LoadSummary initializeArguments(const Program &program, uint32_t position, uint64_t seed,
                                const ParameterFiles *files, char *arena) {
  Faults faults;
  std::set<const FoundTensor *> used;
  bool isMissing = false;
  NewState newState;
  if (files)
    newState = findNewState(program, [&](const std::string &name) { return files->find(name) != nullptr; });
  LoadSummary summary{{}, newState.names};
  clearArguments(program, position, seed, arena);
  for (const Tensor &wanted : program.tensors()) {
    if (wanted.kind == TensorKind::Grad)
      continue; // the step makes them
    const View &view = program.views()[wanted.view];
    char *to = arena + view.offset;
    std::string name(program.str(wanted.name));
    std::vector<uint64_t> shape = program.fileShape(wanted);
    const FoundTensor *found = files ? files->find(name) : nullptr;
    if (found && newState.holds(wanted)) {
      used.insert(found);
      found = nullptr;
    }
    const TensorEntry *tensor = found ? found->tensor : nullptr;
    bool isHere = program.holds(wanted, position); // what files lack is told everywhere
    if (tensor) {
      used.insert(found);
      if (tensor->shape != shape)
        faults.add(cat("'", name, "' has shape ", shapeText(tensor->shape), ", expected ",
                     shapeText(shape)));
      else if (!canConvert(tensor->type, view.dtype) ||
               isFloatType(tensor->type) != isFloatType(fileTypeOf(view.dtype)))
        faults.add(cat("'", name, "' holds ", fileTypeName(tensor->type), ", expected ",
                     dtypeName(view.dtype)));
      else if (isHere)
        read(*tensor, pieceOf(program, wanted, position), view.dtype, found->path, to);
    } else if (isModelState(wanted.kind) && files) {
      faults.add(cat("'", name, "' is missing, expected shape ", shapeText(shape)));
      isMissing = true;
    } else if (wanted.kind == TensorKind::Param && wanted.init == InitKind::None) {
      badInput("parameter '", name, "' ", shapeText(shape), " has no init and needs --load");
    } else if (isHere) {
      drawTensor(program, wanted, position, seed, to);
    }
  }
  if (!newState.fault.empty())
    faults.add(newState.fault);
  if (!files)
    return summary;
  std::vector<std::string> &unused = summary.unused;
  std::map<std::string, std::string> patterns; // of a name that is used
  for (const auto &[name, found] : files->tensors())
    if (used.count(&found))
      patterns.emplace(namePattern(name), name);
    else
      unused.push_back(name);
  // Whatever else a checkpoint may hold, the same of another layer is of a larger model, which computes something else.
  for (const std::string &name : unused)
    if (auto sibling = patterns.find(namePattern(name)); sibling != patterns.end()) {
      faults.add(cat("holds '", name, "' beside '", sibling->second,
                     "', of which this program has only the latter: it is a smaller model"));
      break;
    }
  if (!faults.empty())
    badInput(files->path(), ": ", faults.text(),
             // Names of another model tell which.
             !isMissing ? "" : cat("; tensors without use there: ", unused.empty() ? "none" : namePatterns(unused)));
  files->checkWhole();
  return summary;
}

void dumpTensors(const World &world, const Program &program, uint32_t position,
                 const std::vector<DumpTensor> &tensors, OutputFile *file) {
  std::vector<TensorSpec> specs;
  std::map<std::string_view, size_t> places; // into `specs`: one for all buckets that hold a tensor
  auto nameOf = [&](const DumpTensor &tensor) { return program.str(tensor.tensor->name); };
  auto typeOf = [&](const DumpTensor &tensor) { return program.views()[tensor.tensor->view].dtype; };
  for (const DumpTensor &tensor : tensors)
    if (places.try_emplace(nameOf(tensor), specs.size()).second)
      specs.push_back({std::string(nameOf(tensor)), fileTypeOf(typeOf(tensor)), program.fileShape(*tensor.tensor)});
  SafetensorsLayout layout(specs);
  if (file)
    file->write(layout.header().data(), layout.header().size(), 0);
  for (const DumpTensor &tensor : tensors) {
    uint64_t size = elementBytes(typeOf(tensor)), begin = layout.offsets()[places.at(nameOf(tensor))];
    gatherPieces(world, program, *tensor.tensor, position, tensor.local, [&](const Piece &piece, const char *data) {
      piece.forEachRun([&](uint64_t global, uint64_t local, uint64_t count) {
        file->write(data + local * size, count * size, begin + global * size);
      });
    });
  }
  if (file)
    file->commit();
}

} // namespace shoal::rt
