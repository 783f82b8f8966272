// Conformance of parameters and their files on real ranks: drawn values are those of the
// whole tensor under every sharding, a file written by one plan holds whole tensors, and
// every plan reads it back, padding zero; a checkpoint of one plan is read by every other.
//   mpirun -n N tensors SCRATCH-FILE      (N = 1, 2, 3, 4, 6)
#include "core/arena.h"
#include "core/checkpoint_load.h"
#include "core/checkpoint_tools.h"
#include "core/checkpoint_writer.h"
#include "core/parameters.h"
#include "core/piece.h"
#include "mpi/world.h"
#include "shoal-rt/blob_builder.h"
#include "shoal-rt/random.h"
#include "shoal-rt/traffic.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>

using namespace shoal::rt;

namespace {

using DimSpec = BlobBuilder::DimSpec;

struct Layout {
  std::vector<uint32_t> sizes, deviceIds;
  uint32_t stages = 1; // 2: the first stage holds every third argument, the last one the next, and both the one behind
};

std::vector<Layout> layouts(uint32_t ranks) {
  switch (ranks) {
  case 2:
    return {{{2, 1}, {}}, {{1, 2}, {}}, {{1, 1}, {}, 2}, {{1, 1}, {1, 0}, 2}};
  case 4:
    return {{{4, 1}, {}}, {{2, 2}, {3, 0, 2, 1}}, {{2, 1}, {2, 0, 1, 3}, 2}};
  case 6:
    return {{{2, 3}, {}}, {{3, 2}, {4, 2, 0, 1, 3, 5}}, {{1, 3}, {}, 2}};
  default:
    return {{{ranks, 1}, {}}, {{1, ranks}, {}}};
  }
}

// Parameters sharded in every way two axes allow, with sizes that do not divide.
std::vector<std::pair<std::vector<DimSpec>, DType>> params() {
  return {{{{7, {}}, {5, {}}}, DType::F32},     {{{7, {0}}, {5, {}}}, DType::F64},
          {{{7, {}}, {5, {1}}}, DType::F32},    {{{7, {0}}, {5, {1}}}, DType::F32},
          {{{7, {1}}, {5, {0}}}, DType::BF16},  {{{13, {0, 1}}}, DType::F32},
          {{{13, {1, 0}}}, DType::F64},         {{{1, {0}}, {2, {1}}, {3, {}}}, DType::F32},
          {{}, DType::F32}};
}

// Tensors one after another in a bucket: whole, sharded over the axes that do not cut the bucket, of one element.
std::vector<std::vector<DimSpec>> members(std::optional<uint32_t> axis) {
  std::vector<uint32_t> other;
  if (axis)
    other = {*axis};
  return {{{7, {}}, {5, {}}}, {{3, other}, {5, {}}}, {}, {{5, {}}, {3, other}}, {{2, {}}}};
}

Program build(const Layout &layout) {
  BlobBuilder blob("tensors");
  blob.addAxis("data", layout.sizes[0]);
  blob.addAxis("tensor", layout.sizes[1]);
  if (!layout.deviceIds.empty())
    blob.setDeviceIds(layout.deviceIds);
  std::vector<Positions> holders = {kNone};
  if (layout.stages == 2) {
    blob.addAxis("pipe", 2);
    std::vector<uint32_t> stages[2];
    for (uint32_t position = 0; position < layout.sizes[0] * layout.sizes[1] * 2; ++position)
      for (uint32_t stage : {0, 1})
        stages[stage].push_back(position % 2 == stage);
    holders = {blob.addPositions(stages[0]), blob.addPositions(stages[1]), kNone};
  }
  uint64_t arena = 0;
  size_t number = 0;
  for (const auto &[dims, type] : params()) {
    uint64_t elements = 1;
    for (const DimSpec &dim : dims) {
      uint64_t shards = 1;
      for (uint32_t axis : dim.axes)
        shards *= layout.sizes[axis];
      elements *= (dim.global + shards - 1) / shards;
    }
    blob.addArg({.name = "p" + std::to_string(number),
                 .kind = ArgKind::Param,
                 .view = blob.addView(arena, elements, type),
                 .dims = dims,
                 .init = InitKind::Normal,
                 .b = 1,
                 .heldAt = holders[number % holders.size()]});
    ++number;
    arena += (elements * 8 + kAlignment - 1) / kAlignment * kAlignment;
  }
  // Cut by the first axis, by the second, by both, by none.
  size_t bucketNumber = 0;
  for (const std::vector<uint32_t> &flat : {std::vector<uint32_t>{0}, {1}, {0, 1}, {}}) {
    BlobBuilder::ArgSpec bucket{.name = "bucket." + std::to_string(bucketNumber),
                                .kind = ArgKind::Param,
                                .heldAt = holders[bucketNumber % holders.size()]};
    ++bucketNumber;
    uint64_t elements = 0, shards = 1;
    for (uint32_t axis : flat)
      shards *= layout.sizes[axis];
    for (const auto &dims : members(flat.size() == 1 ? std::optional(1 - flat[0]) : std::nullopt)) {
      bucket.members.push_back(
          {bucket.name + "." + std::to_string(bucket.members.size()), dims, InitKind::Normal, 0.0, 1.0});
      uint64_t size = 1;
      for (const DimSpec &dim : dims) {
        uint64_t parts = dim.axes.empty() ? 1 : layout.sizes[dim.axes[0]];
        size *= (dim.global + parts - 1) / parts;
      }
      elements += size;
    }
    elements = (elements + shards - 1) / shards * shards;
    bucket.dims = {{elements, flat}};
    bucket.view = blob.addView(arena, elements / shards, DType::F32);
    blob.addArg(bucket);
    arena += (elements / shards * 4 + kAlignment - 1) / kAlignment * kAlignment;
  }
  blob.header().arenaBytes = arena;
  std::vector<unsigned char> bytes = blob.finish();
  return Program(bytes.data(), bytes.size());
}

class Checker {
public:
  Checker(World &world, const std::string &path) : world_(world), path_(path) {}
  int failures() const { return failures_; }

  void run(const Layout &layout) {
    Program program = build(layout);
    uint32_t position = program.positionOfRank(uint32_t(world_.rank()));
    Arena drawn(program.header().arenaBytes), loaded(program.header().arenaBytes);
    initializeArguments(program, position, 42, nullptr, drawn.base());
    std::vector<DumpTensor> tensors;
    for (const Tensor &tensor : program.tensors())
      tensors.push_back({&tensor, drawn.base() + program.views()[tensor.view].offset});
    std::unique_ptr<OutputFile> file;
    if (world_.rank() == 0)
      file = std::make_unique<OutputFile>(path_);
    dumpTensors(world_, program, position, tensors, file.get());
    world_.agree(std::nullopt); // the file is there for everyone

    ParameterFiles read(path_);
    for (const Tensor &tensor : program.tensors())
      checkWhole(program, tensor, *read.find(std::string(program.str(tensor.name)))->tensor);
    std::memset(loaded.base(), 0x5a, loaded.size());
    initializeArguments(program, position, 1, &read, loaded.base());
    std::vector<std::vector<bool>> valid;
    for (const View &view : program.views())
      valid.emplace_back(view.elements, false);
    for (const Tensor &tensor : program.tensors()) {
      if (!program.holds(tensor, position))
        continue;
      Piece piece = pieceOf(program, tensor, position);
      const View &view = program.views()[tensor.view];
      double real = 0;
      uint64_t elements = 0;
      piece.forEachRun([&](uint64_t, uint64_t local, uint64_t count) {
        elements += count;
        for (uint64_t i = local; i < local + count; ++i) {
          valid[tensor.view][i] = true;
          real += std::abs(loadElement(loaded.base() + view.offset, view.dtype, i));
        }
      });
      check(elements == 0 || real > 0, cat(program.str(tensor.name), " is empty"));
    }
    for (const Arg &arg : program.args()) {
      const View &view = program.views()[arg.view];
      if (!program.holds(arg, position)) {
        bool isLeft = std::all_of(loaded.base() + view.offset,
                                  loaded.base() + view.offset + view.elements * elementBytes(view.dtype),
                                  [](char byte) { return byte == 0x5a; });
        check(isLeft, cat(program.str(arg.name), " is held by others, and its bytes were written"));
        continue;
      }
      const char *back = loaded.base() + view.offset;
      check(std::memcmp(drawn.base() + view.offset, back, view.elements * elementBytes(view.dtype)) == 0,
            cat(program.str(arg.name), " read back"));
      double padding = 0;
      for (uint64_t i = 0; i < view.elements; ++i)
        padding += valid[arg.view][i] ? 0 : std::abs(loadElement(back, view.dtype, i));
      check(padding == 0, cat(program.str(arg.name), " has padding that is not zero"));
    }
    world_.agree(std::nullopt); // everyone has read it
  }

  // A checkpoint that one plan writes is, in the memory of another one, what that one draws itself.
  void runCheckpoint(const Layout &writer, const Layout &reader) {
    std::string folder = path_ + "-checkpoints";
    Program program = build(writer);
    uint32_t position = program.positionOfRank(uint32_t(world_.rank()));
    Arena drawn(program.header().arenaBytes);
    initializeArguments(program, position, 42, nullptr, drawn.base());
    CheckpointIndex head;
    head.ranks = program.numPositions();
    for (uint64_t step : {7, 8, 9}) {
      head.position.step = step;
      CheckpointWriter(world_, program, position, folder, step - 1, 2).save(head, drawn.base(), [](double) {});
    }
    if (world_.rank() == 0) {
      std::map<uint64_t, std::string> left = completeCheckpoints(folder);
      check(left.size() == 2 && left.count(8) && left.count(9), "the last two checkpoints stay");
    }

    Program other = build(reader);
    uint32_t there = other.positionOfRank(uint32_t(world_.rank()));
    Arena expected(other.header().arenaBytes), loaded(other.header().arenaBytes);
    initializeArguments(other, there, 42, nullptr, expected.base());
    std::memset(loaded.base(), 0x5a, loaded.size());
    Checkpoint checkpoint(findCheckpoint(folder));
    check(checkpoint.index().position.step == 9, "the newest checkpoint is read");
    verifyCheckpoint(checkpoint);
    loadCheckpoint(other, there, checkpoint, loaded.base());
    for (const Arg &arg : other.args()) {
      if (!other.holds(arg, there))
        continue;
      const View &view = other.views()[arg.view];
      check(std::memcmp(expected.base() + view.offset, loaded.base() + view.offset,
                        view.elements * elementBytes(view.dtype)) == 0,
            cat(other.str(arg.name), " out of a checkpoint"));
    }
    world_.agree(std::nullopt); // everyone has read it
    if (world_.rank() == 0)
      std::filesystem::remove_all(folder);
    world_.agree(std::nullopt);
  }

private:
  void check(bool holds, const std::string &what) {
    if (holds)
      return;
    ++failures_;
    std::printf("rank %d: %s\n", world_.rank(), what.c_str());
  }

  void checkWhole(const Program &program, const Tensor &wanted, const TensorEntry &tensor) {
    DType type = program.views()[wanted.view].dtype;
    std::vector<uint64_t> shape = globalShape(program.dims(wanted));
    uint64_t elements = 1;
    for (uint64_t dim : shape)
      elements *= dim;
    check(tensor.shape == shape && tensor.type == fileTypeOf(type), "shape and type of a file");
    uint64_t key = streamKey(42, program.str(wanted.name));
    for (uint64_t i = 0; i < elements; ++i) {
      double want = 0, got = 0;
      storeElement(&want, type, 0, initialValue(InitKind::Normal, 0.0, 1.0, shape, key, i));
      std::memcpy(&got, tensor.data + i * elementBytes(type), elementBytes(type));
      check(std::memcmp(&want, &got, elementBytes(type)) == 0,
            cat(program.str(wanted.name), " element ", i));
    }
  }

  World &world_;
  std::string path_;
  int failures_ = 0;
};

} // namespace

int main(int argc, char **argv) {
  World world(&argc, &argv);
  if (argc != 2)
    world.abort(Error(kExitBadInput, "usage: tensors SCRATCH-FILE"));
  Checker checker(world, argv[1]);
  try {
    for (const Layout &layout : layouts(uint32_t(world.size()))) {
      checker.run(layout);
      for (const Layout &other : layouts(uint32_t(world.size())))
        checker.runCheckpoint(layout, other);
    }
  } catch (const Error &error) {
    world.abort(error);
  }
  std::optional<Error> failed;
  if (checker.failures() != 0)
    failed = Error(kExitWorkFailed, cat(checker.failures(), " checks failed"));
  int code = world.agree(failed);
  if (code == 0 && world.rank() == 0)
    std::printf("tensors on %d ranks agree\n", world.size());
  return code;
}
