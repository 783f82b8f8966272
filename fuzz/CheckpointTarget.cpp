// The index of a checkpoint: as it comes, and with the checksum that belongs to it, so that what is behind the checksum is reached.
// What passes is resumed by programs with and without batches, beside files that hold some of its tensors.
#include "Target.h"
#include "core/checkpoint_index.h"
#include "core/checkpoint_load.h"
#include "core/checkpoint_tools.h"
#include "core/crc32c.h"
#include "core/step_plan.h"
#include "shoal-rt/blob_builder.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

using namespace shoal;

namespace {

constexpr uint64_t kRows = 30, kBatchRows = 8, kArenaBytes = 320;

void write(const std::string &path, const std::string &bytes) { std::ofstream(path, std::ios::binary) << bytes; }

// A parameter w [3, 4], state of it and the optimizer's step.
rt::Program makeProgram(bool batched) {
  rt::BlobBuilder blob("mlp");
  blob.header().arenaBytes = kArenaBytes;
  if (batched) {
    blob.header().batchRows = kBatchRows;
    blob.addArg({.name = "x", .view = blob.addView(0, kBatchRows, rt::DType::F64), .dims = {{kBatchRows}}, .batchDim = 0});
    blob.addArg({.name = "valid", .kind = rt::ArgKind::ValidRows, .view = blob.addView(64, 1, rt::DType::I64)});
  }
  blob.addArg({.name = "w", .kind = rt::ArgKind::Param, .view = blob.addView(128, 12, rt::DType::F32), .dims = {{3}, {4}}});
  blob.addArg({.name = "w.m",
               .kind = rt::ArgKind::State,
               .view = blob.addView(192, 4, rt::DType::F32),
               .dims = {{1}, {4}},
               .of = "w"});
  blob.addArg({.name = "step", .kind = rt::ArgKind::Step, .view = blob.addView(256, 1, rt::DType::I64)});
  std::vector<unsigned char> bytes = blob.finish();
  return rt::Program(bytes.data(), bytes.size());
}

// The checkpoint's files, and programs with their data. Files are gone when the target ends.
struct Place {
  std::string path = std::filesystem::temp_directory_path().string() + "/shoal-checkpoint-XXXXXX";
  rt::Program plain = makeProgram(/*batched=*/false), batched = makeProgram(/*batched=*/true);
  std::map<std::string, std::string> files; // of the program with batches

  Place() {
    using rt::FileType;
    if (!mkdtemp(path.data()))
      std::abort();
    rt::SafetensorsLayout first({{"row", FileType::F32, {1, 4}}, {"half", FileType::F32, {1, 2}}, {"step", FileType::I64, {}}}),
        second({{"row", FileType::F32, {1, 4}}, {"half", FileType::F32, {1, 2}}});
    write(path + "/a", first.header() + std::string(32, '\0'));
    write(path + "/b", second.header() + std::string(24, '\0'));
    files["x"] = path + "/x.npy";
    write(files["x"], rt::npyHeader(FileType::F64, std::vector<uint64_t>{kRows}) + std::string(kRows * 8, '\0'));
    rt::Dataset(batched, 0, files); // what is wrong with these ends the target
  }
  ~Place() { std::filesystem::remove_all(path); }
};

Place &place() {
  static Place made;
  return made;
}

// The place in the data that a run with these options goes on at, and its first and last batch.
void countOn(const rt::Program &program, const rt::CheckpointIndex &index, rt::Dataset &data, const rt::Options &options,
             char *arena) {
  fuzz::expectOneLine([&] {
    rt::StepPlan plan = rt::planSteps(program, data, options, rt::resumedPosition(index, "checkpoint", data, options));
    fuzz::require(plan.total >= index.position.step, "a run ends where it begins or later");
    rt::TrainingPosition end = plan.after(plan.total);
    fuzz::require(end.step == plan.total && end.epoch <= end.step && (plan.perEpoch == 0 || end.batch < plan.perEpoch),
                  "a run must end at a batch of an epoch");
    if (plan.steps() == 0)
      return;
    for (uint64_t step : {plan.begin.step, plan.total - 1}) {
      rt::TrainingPosition at = plan.after(step);
      data.fill(at.epoch, at.batch, arena);
    }
  });
}

void resume(const rt::Program &program, rt::Checkpoint &checkpoint, const std::map<std::string, std::string> &files) {
  const rt::CheckpointIndex &index = checkpoint.index();
  rt::Dataset data(program, 0, files);
  if (index.shuffled)
    data.shuffle(index.seed);
  std::vector<char> arena(kArenaBytes);
  rt::Options none, nextStep, allSteps, nextEpoch, allEpochs;
  nextStep.steps = index.position.step + 1;
  allSteps.steps = UINT64_MAX;
  nextEpoch.epochs = index.position.epoch + 1;
  allEpochs.epochs = UINT64_MAX;
  for (const rt::Options *options : {&none, &nextStep, &allSteps, &nextEpoch, &allEpochs})
    countOn(program, index, data, *options, arena.data());
  fuzz::expectOneLine([&] { rt::loadCheckpoint(program, 0, checkpoint, arena.data()); });
}

void resumeFrom(const std::string &text) {
  Place &at = place();
  write(at.path + "/" + rt::kIndexName, text);
  rt::Checkpoint checkpoint(at.path);
  rt::inspectCheckpoint(checkpoint);
  resume(at.plain, checkpoint, {});
  resume(at.batched, checkpoint, at.files);
}

// By counting, in tensors that are small enough to.
bool holdsEachOnce(const rt::IndexTensor &tensor) {
  constexpr uint64_t kMostCounted = 1 << 16;
  auto whole = rt::PlacedBox::dense(std::vector<uint64_t>(tensor.shape.size(), 0), tensor.shape);
  if (whole.elements() > kMostCounted)
    return true;
  std::vector<int> held(whole.elements(), 0);
  for (const rt::IndexBox &box : tensor.boxes)
    rt::forEachCommonRun(whole, rt::PlacedBox::dense(box.start, box.shape), [&](uint64_t at, uint64_t, uint64_t count) {
      for (uint64_t i = 0; i < count; ++i)
        ++held[at + i];
    });
  return std::ranges::all_of(held, [](int count) { return count == 1; });
}

void read(const std::string &text) {
  fuzz::expectOneLine([&] {
    rt::CheckpointIndex index = rt::parseCheckpointIndex(text, "index.json");
    std::string written = rt::toText(index);
    fuzz::require(rt::toText(rt::parseCheckpointIndex(written, "index.json")) == written,
                  "what is written must be read as it was");
    for (const auto &[name, tensor] : index.tensors) {
      auto of = index.tensors.find(tensor.of);
      fuzz::require(tensor.kind == rt::TensorKind::State
                        ? of != index.tensors.end() && of->second.kind == rt::TensorKind::Param
                        : tensor.of.empty(),
                    "state, and nothing else, must be of a parameter");
      for (const rt::IndexBox &box : tensor.boxes) {
        fuzz::require(index.files.count(box.file) == 1, "a box must be in a file");
        for (size_t d = 0; d < tensor.shape.size(); ++d)
          fuzz::require(box.start[d] + box.shape[d] <= tensor.shape[d], "a box must lie in its tensor");
      }
      fuzz::require(holdsEachOnce(tensor), "each element must be in exactly one box");
    }
    resumeFrom(text);
  });
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  place();
  std::string text(reinterpret_cast<const char *>(data), size);
  read(text);
  std::string front = text.substr(0, text.rfind("\"index_crc32c\""));
  read(front + "\"index_crc32c\": \"" + rt::crcText(rt::crc32c(front)) + "\"\n}\n");
  return 0;
}
