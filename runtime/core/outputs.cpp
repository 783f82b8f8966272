// Results at their probes, and their way into records, files and text.
#include "core/outputs.h"
#include "core/error.h"
#include "core/gather.h"
#include "core/parameters.h"
#include "core/print.h"
#include "core/standard_output.h"
#include "shoal-rt/traffic.h"

#include <algorithm>
#include <cstdio>

namespace shoal::rt {
namespace {

// What a person may want to read, and well inside the size of one message of text.
constexpr uint64_t kMaxPrinted = 1 << 20;

} // namespace

Outputs::Outputs(World &world, const Session &session, const Options &options, uint64_t totalSteps)
    : world_(world), session_(session), program_(session.program()), options_(options),
      totalSteps_(totalSteps), scalars_(world, program_, session.position()) {
  for (const Result &result : program_.results()) {
    if (result.kind != ResultKind::Output)
      continue;
    std::string_view name = program_.str(result.name);
    if (uint64_t count = program_.views()[result.view].elements; options_.print && count > kMaxPrinted)
      badInput("--print prints outputs of up to ", kMaxPrinted, " elements per rank, got: ", count,
               " in '", name, "'; --output writes them to a file");
  }
  for (const auto &[name, path] : options_.outputs)
    for (const Result &result : program_.results())
      if (result.kind == ResultKind::Output && program_.str(result.name) == name)
        open(result, path);
  if (world_.rank() == 0 && !options_.dumpGrads.empty())
    gradsFile_ = std::make_unique<OutputFile>(options_.dumpGrads);
}

void Outputs::open(const Result &result, const std::string &path) {
  std::string_view name = program_.str(result.name);
  if (result.batchDim < 0 && totalSteps_ != 1)
    badInput("--output ", name, " has no rows, and the data make ", totalSteps_,
             " batches, expected: 1");
  std::vector<uint64_t> shape;
  for (const Dim &dim : program_.dims(result))
    shape.push_back(dim.global);
  if (result.batchDim >= 0)
    shape[size_t(result.batchDim)] = session_.data().rows();
  DType type = program_.views()[result.view].dtype;
  if (type == DType::BF16)
    badInput("--output ", name, " is bf16, which .npy files lack; cast it to f32");
  std::string header = npyHeader(fileTypeOf(type), shape);
  File &output = files_.emplace_back(File{&result, path, nullptr, header.size()});
  if (world_.rank() != 0)
    return;
  output.file = std::make_unique<OutputFile>(path);
  output.file->write(header.data(), header.size(), 0);
}

void Outputs::onProbe(uint32_t index, const StepRecord &record) {
  const Result &result = program_.results()[index];
  const View &view = program_.views()[result.view];
  const char *at = session_.address(result.view);
  auto hold = [&] { held_[index].assign(at, at + view.elements * elementBytes(view.dtype)); };
  switch (result.kind) {
  case ResultKind::Loss:
  case ResultKind::Metric:
    scalars_.onProbe(index, at);
    break;
  case ResultKind::Output:
    if (!files_.empty() || options_.print)
      hold();
    break;
  case ResultKind::Grad:
    if (record.isFirst && !options_.dumpGrads.empty())
      hold();
    break;
  }
}

void Outputs::addScalars(StepRecord &record) const {
  for (uint32_t index = 0; index < program_.results().size(); ++index) {
    const Result &result = program_.results()[index];
    const std::vector<double> &values = scalars_.of(index);
    if (values.empty())
      continue;
    if (result.kind == ResultKind::Loss)
      record.loss = values.front();
    else
      record.metrics.emplace_back(program_.str(result.name), values.front());
  }
  std::ranges::sort(record.metrics); // by name, since plans have them ready in orders of their own
}

void Outputs::write(StepRecord &record) {
  scalars_.collect(1);
  if (world_.rank() == 0)
    addScalars(record);
  if (!files_.empty())
    writeFiles(record.step - 1, record.rows);
  if (options_.print)
    print(record.step - 1, record.rows);
  if (record.isFirst && !options_.dumpGrads.empty())
    writeGrads();
}

void Outputs::writeFiles(uint64_t batch, uint64_t valid) {
  for (File &output : files_) {
    const Result &result = *output.result;
    uint32_t index = uint32_t(output.result - program_.results().data());
    uint64_t size = elementBytes(program_.views()[result.view].dtype);
    auto take = [&](Box box, const char *data) {
      if (result.batchDim >= 0) { // the batch's box becomes a box of the file
        BoxDim &rows = box.dims[size_t(result.batchDim)];
        rows.valid = valid > rows.start ? std::min(rows.local, valid - rows.start) : 0;
        rows.start += batch * session_.data().batchRows();
        rows.global = session_.data().rows();
      }
      box.forEachRun([&](uint64_t global, uint64_t local, uint64_t count) {
        output.file->write(data + local * size, count * size, output.dataStart + global * size);
      });
    };
    gatherBoxes(world_, program_, program_.dims(result), program_.holders(result), size, session_.position(),
                held_[index].data(), take);
  }
}

// Every output as each of its holders has it, in rank order.
void Outputs::print(uint64_t batch, uint64_t valid) {
  std::string text, head;
  if (totalSteps_ > 1)
    head = "batch " + std::to_string(batch) + " ";
  for (uint32_t index = 0; index < program_.results().size(); ++index) {
    const Result &result = program_.results()[index];
    if (result.kind != ResultKind::Output || !program_.holds(result, session_.position()))
      continue;
    Box box = boxOf(program_, program_.dims(result), session_.position());
    if (result.batchDim >= 0) {
      BoxDim &rows = box.dims[size_t(result.batchDim)];
      rows.valid = valid > rows.start ? std::min(rows.valid, valid - rows.start) : 0;
    }
    text += head + "rank " + std::to_string(world_.rank()) + " " +
            std::string(program_.str(result.name)) + ": " +
            boxText(box, program_.views()[result.view].dtype, held_[index].data()) + "\n";
  }
  for (const std::string &lines : world_.gather(text))
    std::fputs(lines.c_str(), stdout);
  finishOutput();
}

void Outputs::writeGrads() {
  std::vector<DumpTensor> tensors;
  for (const Tensor &tensor : program_.tensors())
    if (tensor.kind == TensorKind::Grad)
      tensors.push_back({&tensor, held_[tensor.owner].data()});
  dumpTensors(world_, program_, session_.position(), tensors, gradsFile_.get());
  held_.clear();
}

void Outputs::commit() {
  for (File &output : files_)
    if (output.file)
      output.file->prepare();
  for (File &output : files_)
    if (output.file)
      output.file->commit();
}

} // namespace shoal::rt
