// Looks at checkpoints, and puts their tensors together.
#include "core/checkpoint_tools.h"
#include "core/error.h"
#include "core/print.h"
#include "core/program.h"

#include <algorithm>
#include <vector>

namespace shoal::rt {
namespace {

std::string counted(uint64_t count, const char *what) { return cat(count, " ", what, count == 1 ? "" : "s"); }

std::string boxCount(uint64_t count) { return cat(count, count == 1 ? " box" : " boxes"); }

std::string sizeText(uint64_t bytes) {
  return bytes < 1'000'000 ? counted(bytes, "byte") : numberText(double(bytes) / 1e6, 6) + " MB";
}

void checkFiles(const Checkpoint &checkpoint) {
  for (const auto &[name, file] : checkpoint.index().files)
    checkpoint.checkFile(name);
}

PlacedBox wholeOf(const IndexTensor &tensor) {
  return PlacedBox::dense(std::vector<uint64_t>(tensor.shape.size(), 0), tensor.shape);
}

} // namespace

std::string inspectCheckpoint(const Checkpoint &checkpoint) {
  const CheckpointIndex &index = checkpoint.index();
  std::string text = cat(checkpoint.path(), ": step ", index.position.step, " of '", index.program, "', written by ",
                         counted(index.ranks, "rank"), " (", index.plan, ")\n");
  if (index.batchRows != 0)
    text += cat("  data       next is batch ", index.position.batch + 1, " of epoch ", index.position.epoch + 1, "; ",
                index.rows, " rows in batches of ", index.batchRows, index.shuffled ? ", shuffled" : "", "\n");
  text += cat("  seed       ", index.seed, "\n");
  for (bool ofModel : {true, false}) {
    uint64_t tensors = 0, elements = 0, bytes = 0;
    for (const auto &[name, tensor] : index.tensors)
      if (isModelState(tensor.kind) == ofModel) {
        ++tensors;
        uint64_t all = wholeOf(tensor).elements();
        elements += all;
        bytes += all * fileElementBytes(tensor.type);
      }
    text += cat(ofModel ? "  model      " : "  optimizer  ", counted(tensors, "tensor"), ", ",
                counted(elements, "element"), ", ", sizeText(bytes), "\n");
  }
  uint64_t bytes = 0;
  for (const auto &[name, file] : index.files)
    bytes += file.bytes;
  text += cat("  files      ", counted(index.files.size(), "file"), ", ", sizeText(bytes), "\n\n");
  for (const auto &[name, tensor] : index.tensors)
    text += cat("  ", tensorKindName(tensor.kind), "  ", name, "  ", fileTypeName(tensor.type), " ",
                shapeText(tensor.shape), "  ", boxCount(tensor.boxes.size()),
                tensor.of.empty() ? "" : "  of ", tensor.of, "\n");
  return text;
}

std::string verifyCheckpoint(Checkpoint &checkpoint) {
  checkFiles(checkpoint);
  const CheckpointIndex &index = checkpoint.index();
  uint64_t boxes = 0, elements = 0, bytes = 0;
  for (const auto &[name, tensor] : index.tensors) {
    boxes += tensor.boxes.size();
    checkpoint.read(tensor, wholeOf(tensor), [&](const unsigned char *, uint64_t, uint64_t count, const std::string &) {
      elements += count;
    });
  }
  for (const auto &[name, file] : index.files)
    bytes += file.bytes;
  return cat(checkpoint.path(), ": step ", index.position.step, ", ", counted(index.files.size(), "file"), " of ",
             sizeText(bytes), " as they were written, ", counted(elements, "element"), " of ",
             counted(index.tensors.size(), "tensor"), " each in one of ", boxCount(boxes), "\n");
}

std::string mergeCheckpoint(Checkpoint &checkpoint, const std::string &path, bool withState) {
  for (const auto &[name, file] : checkpoint.index().files)
    if (identityOf(cat(checkpoint.path(), "/", name)) == identityOf(path))
      badInput(path, ": is a file of the checkpoint itself");
  OutputFile file(path);
  checkFiles(checkpoint);
  std::vector<TensorSpec> specs;
  std::vector<const IndexTensor *> tensors;
  for (const auto &[name, tensor] : checkpoint.index().tensors)
    if (withState || isModelState(tensor.kind)) {
      specs.push_back({name, tensor.type, tensor.fileShape});
      tensors.push_back(&tensor);
    }
  SafetensorsLayout layout(specs);
  file.append(layout.header());
  std::vector<unsigned char> whole; // one tensor at a time
  uint64_t bytes = layout.header().size();
  for (size_t i = 0; i < tensors.size(); ++i) {
    uint64_t size = fileElementBytes(tensors[i]->type);
    whole.resize(wholeOf(*tensors[i]).elements() * size);
    checkpoint.read(*tensors[i], wholeOf(*tensors[i]),
                    [&](const unsigned char *from, uint64_t to, uint64_t count, const std::string &) {
                      std::copy_n(from, count * size, whole.data() + to * size);
                    });
    file.write(whole.data(), whole.size(), layout.offsets()[i]);
    bytes += whole.size();
  }
  checkpoint.checkWhole();
  file.commit();
  return cat(path, ": ", counted(tensors.size(), "tensor"), " of step ", checkpoint.index().position.step, ", ",
             sizeText(bytes), "\n");
}

} // namespace shoal::rt
