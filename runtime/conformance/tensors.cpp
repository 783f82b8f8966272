// Conformance of parameters and their files on real ranks: drawn values are those of the
// whole tensor under every sharding, a file written by one plan holds whole tensors, and
// every plan reads it back, padding zero.
//   mpirun -n N tensors SCRATCH-FILE      (N = 1, 2, 3, 4, 6)
#include "core/arena.h"
#include "core/box.h"
#include "core/parameters.h"
#include "mpi/world.h"
#include "shoal-rt/blob_builder.h"
#include "shoal-rt/random.h"
#include "shoal-rt/traffic.h"

#include <cmath>
#include <cstdio>
#include <cstring>
#include <memory>

using namespace shoal::rt;

namespace {

using DimSpec = BlobBuilder::DimSpec;

struct Layout {
  std::vector<uint32_t> sizes, deviceIds;
};

std::vector<Layout> layouts(uint32_t ranks) {
  switch (ranks) {
  case 4:
    return {{{4, 1}, {}}, {{2, 2}, {3, 0, 2, 1}}};
  case 6:
    return {{{2, 3}, {}}, {{3, 2}, {4, 2, 0, 1, 3, 5}}};
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

Program build(const Layout &layout) {
  BlobBuilder blob("tensors");
  blob.addAxis("data", layout.sizes[0]);
  blob.addAxis("tensor", layout.sizes[1]);
  if (!layout.deviceIds.empty())
    blob.setDeviceIds(layout.deviceIds);
  uint64_t arena = 0;
  int number = 0;
  for (const auto &[dims, type] : params()) {
    uint64_t elements = 1;
    for (const DimSpec &dim : dims) {
      uint64_t shards = 1;
      for (uint32_t axis : dim.axes)
        shards *= layout.sizes[axis];
      elements *= (dim.global + shards - 1) / shards;
    }
    blob.addArg({"p" + std::to_string(number++), ArgKind::Param,
                 blob.addView(arena, elements, type), dims, -1, InitKind::Normal, 0.0, 1.0});
    arena += (elements * 8 + kAlignment - 1) / kAlignment * kAlignment;
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
    for (const Arg &arg : program.args())
      tensors.push_back({std::string(program.str(arg.name)), program.fileShape(arg),
                         program.dims(arg),
                         program.views()[arg.view].dtype,
                         drawn.base() + program.views()[arg.view].offset});
    std::unique_ptr<OutputFile> file;
    if (world_.rank() == 0)
      file = std::make_unique<OutputFile>(path_);
    dumpTensors(world_, program, position, tensors, file.get());
    world_.agree(std::nullopt); // the file is there for everyone

    ParameterFiles read(path_);
    for (const Arg &arg : program.args())
      checkWhole(program, arg, *read.find(std::string(program.str(arg.name)))->tensor);
    std::memset(loaded.base(), 0x5a, loaded.size());
    initializeArguments(program, position, 1, &read, loaded.base());
    for (const DumpTensor &tensor : tensors) {
      Box box = boxOf(program, tensor.dims, position);
      const char *back = loaded.base() + (tensor.local - drawn.base());
      check(std::memcmp(tensor.local, back, box.localElements() * elementBytes(tensor.type)) == 0,
            tensor.name + " read back");
      double padding = 0, real = 0;
      std::vector<bool> valid(box.localElements(), false);
      box.forEachRun([&](uint64_t, uint64_t local, uint64_t count) {
        for (uint64_t i = 0; i < count; ++i)
          valid[local + i] = true;
      });
      for (uint64_t i = 0; i < valid.size(); ++i)
        (valid[i] ? real : padding) += std::abs(loadElement(back, tensor.type, i));
      check(padding == 0, tensor.name + " has padding that is not zero");
      check(box.validElements() == 0 || real > 0, tensor.name + " is empty");
    }
    world_.agree(std::nullopt); // everyone has read it
  }

private:
  void check(bool holds, const std::string &what) {
    if (holds)
      return;
    ++failures_;
    std::printf("rank %d: %s\n", world_.rank(), what.c_str());
  }

  void checkWhole(const Program &program, const Arg &arg, const TensorEntry &tensor) {
    DType type = program.views()[arg.view].dtype;
    std::vector<uint64_t> shape;
    for (const Dim &dim : program.dims(arg))
      shape.push_back(dim.global);
    uint64_t elements = 1;
    for (uint64_t dim : shape)
      elements *= dim;
    check(tensor.shape == shape && tensor.type == fileTypeOf(type), "shape and type of a file");
    uint64_t key = streamKey(42, program.str(arg.name));
    for (uint64_t i = 0; i < elements; ++i) {
      double want = 0, got = 0;
      storeElement(&want, type, 0, initialValue(InitKind::Normal, 0.0, 1.0, shape, key, i));
      std::memcpy(&got, tensor.data + i * elementBytes(type), elementBytes(type));
      check(std::memcmp(&want, &got, elementBytes(type)) == 0,
            cat(program.str(arg.name), " element ", i));
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
    for (const Layout &layout : layouts(uint32_t(world.size())))
      checker.run(layout);
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
