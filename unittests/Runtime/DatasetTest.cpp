// Batches from files: every plan sees the same rows, the short last batch repeats its last
// row and counts exactly, and other dimensions may be sharded too.
#include "TestSupport.h"
#include "core/arena.h"
#include "core/dataset.h"
#include "shoal-rt/blob_builder.h"
#include "shoal-rt/traffic.h"

#include <algorithm>
#include <numeric>

namespace shoal::rt {
namespace {

using test::expectBadInput;
using test::ScratchFile;

template <typename T> std::string npy(FileType type, std::vector<uint64_t> shape, T first) {
  uint64_t count = 1;
  for (uint64_t dim : shape)
    count *= dim;
  std::vector<T> values(count);
  std::iota(values.begin(), values.end(), first);
  return npyHeader(type, shape) +
         std::string(reinterpret_cast<const char *>(values.data()), count * sizeof(T));
}

struct Built {
  std::unique_ptr<Program> program;
  uint32_t x, y, valid; // views
};

// Inputs x [batch, columns] sharded over (data, tensor) and y [batch] over data.
Built build(uint32_t data, uint32_t tensor, uint64_t batch, uint64_t columns,
            bool countsRows = true, BlobBuilder::ArgSpec labels = {.name = "y"}) {
  BlobBuilder blob("data");
  uint32_t dataAxis = blob.addAxis("data", data), tensorAxis = blob.addAxis("tensor", tensor);
  uint64_t rows = (batch + data - 1) / data, width = (columns + tensor - 1) / tensor;
  Built built;
  built.x = blob.addView(0, rows * width, DType::F64);
  built.y = blob.addView((rows * width * 8 + 63) / 64 * 64, rows, DType::I64);
  built.valid = blob.addView((rows * width * 8 + 63) / 64 * 64 + rows * 8, 1, DType::I64);
  blob.header().arenaBytes = 4096 + rows * (width + 1) * 8;
  blob.header().batchRows = batch;
  blob.addArg({"x", ArgKind::Input, built.x, {{batch, {dataAxis}}, {columns, {tensorAxis}}}, 0});
  labels.view = built.y;
  labels.dims = {{batch, {dataAxis}}};
  labels.batchDim = 0;
  blob.addArg(labels);
  if (countsRows)
    blob.addArg({"valid", ArgKind::ValidRows, built.valid});
  std::vector<unsigned char> bytes = blob.finish();
  built.program = std::make_unique<Program>(bytes.data(), bytes.size());
  return built;
}

// Rows of an epoch as all ranks of a plan see them: the real rows in batch order.
std::vector<int64_t> epochLabels(uint32_t data, uint32_t tensor, uint64_t batch, uint64_t fileRows,
                                 bool shuffle, uint64_t epoch) {
  constexpr uint64_t columns = 5;
  Built built = build(data, tensor, batch, columns);
  const Program &program = *built.program;
  ScratchFile x(npy<float>(FileType::F32, {fileRows, columns}, 0));
  ScratchFile y(npy<int32_t>(FileType::I32, {fileRows}, 100));
  std::vector<int64_t> labels;
  uint64_t batches = (fileRows + batch - 1) / batch;
  for (uint64_t b = 0; b < batches; ++b)
    for (uint32_t position = 0; position < data * tensor; ++position) {
      Arena arena(program.header().arenaBytes);
      Dataset dataset(program, position, {{"x", x.path()}, {"y", y.path()}});
      if (shuffle)
        dataset.shuffle(11);
      EXPECT_EQ(dataset.batchesPerEpoch(), batches);
      uint64_t valid = dataset.fill(epoch, b, arena.base());
      EXPECT_EQ(valid, std::min(batch, fileRows - b * batch));
      const char *base = arena.base();
      EXPECT_EQ(*reinterpret_cast<const int64_t *>(base + program.views()[built.valid].offset),
                int64_t(valid));
      const double *xs = reinterpret_cast<const double *>(base);
      const int64_t *ys =
          reinterpret_cast<const int64_t *>(base + program.views()[built.y].offset);
      uint64_t localRows = (batch + data - 1) / data, width = (columns + tensor - 1) / tensor;
      uint32_t d = position / tensor, t = position % tensor;
      int64_t last = -1;
      for (uint64_t i = 0; i < localRows; ++i) {
        uint64_t row = d * localRows + i;
        int64_t label = ys[i] - 100;
        EXPECT_GE(label, 0);
        EXPECT_LT(label, int64_t(fileRows));
        if (row >= valid && last >= 0) {
          EXPECT_EQ(label, last); // a repetition of the last real row
        }
        if (row < valid)
          last = label;
        for (uint64_t j = 0; j < width; ++j) {
          uint64_t column = t * width + j;
          EXPECT_EQ(xs[i * width + j],
                    column < columns ? double(label * int64_t(columns) + int64_t(column)) : 0.0);
        }
        if (t == 0 && row < valid)
          labels.push_back(label);
      }
    }
  return labels;
}

TEST(Dataset, EveryPlanSeesTheSameRows) {
  for (bool shuffle : {false, true})
    for (uint64_t epoch : {0, 1}) {
      std::vector<int64_t> one = epochLabels(1, 1, 4, 11, shuffle, epoch);
      std::vector<int64_t> sorted = one;
      std::sort(sorted.begin(), sorted.end());
      for (size_t i = 0; i < sorted.size(); ++i)
        EXPECT_EQ(sorted[i], int64_t(i));
      EXPECT_EQ(std::is_sorted(one.begin(), one.end()), !shuffle);
      for (auto [data, tensor] : {std::pair(2u, 1u), std::pair(3u, 2u), std::pair(8u, 1u),
                                  std::pair(1u, 4u)})
        EXPECT_EQ(epochLabels(data, tensor, 4, 11, shuffle, epoch), one);
    }
}

// Row i of micro-batch m is row m * 3 + i of the batch of 7, over one rank and over two; rows that are not there repeat
// the last.
TEST(Dataset, MicrobatchesArePartsOfTheBatch) {
  constexpr uint64_t microbatches = 3, part = 3, batch = 7, columns = 2, fileRows = 11;
  ScratchFile x(npy<float>(FileType::F32, {fileRows, columns}, 0));
  for (uint32_t data : {1u, 2u})
    for (uint32_t position = 0; position < data; ++position) {
      BlobBuilder blob("data");
      uint32_t axis = blob.addAxis("data", data);
      uint64_t local = (part + data - 1) / data;
      uint32_t view = blob.addView(0, microbatches * local * columns, DType::F64);
      uint32_t valid = blob.addView(1024, 1, DType::I64);
      blob.header().arenaBytes = 4096;
      blob.header().batchRows = batch;
      blob.addArg({.name = "x", .view = view, .dims = {{microbatches}, {part, {axis}}, {columns}}, .batchDim = 1});
      blob.addArg({"valid", ArgKind::ValidRows, valid});
      std::vector<unsigned char> bytes = blob.finish();
      Program program(bytes.data(), bytes.size());
      Dataset dataset(program, position, {{"x", x.path()}});
      EXPECT_EQ(dataset.batchesPerEpoch(), 2u);
      for (uint64_t b = 0; b < 2; ++b) {
        Arena arena(program.header().arenaBytes);
        uint64_t rows = dataset.fill(0, b, arena.base());
        EXPECT_EQ(rows, b == 0 ? 7u : 4u);
        const double *values = reinterpret_cast<const double *>(arena.base());
        for (uint64_t m = 0; m < microbatches; ++m)
          for (uint64_t i = 0; i < local; ++i) {
            uint64_t row = b * batch + std::min(m * part + position * local + i, rows - 1);
            for (uint64_t c = 0; c < columns; ++c)
              EXPECT_EQ(values[(m * local + i) * columns + c], double(row * columns + c)) << m << " " << i;
          }
      }
    }
}

TEST(Dataset, FilesMustFit) {
  Built built = build(1, 1, 4, 5);
  const Program &program = *built.program;
  ScratchFile x(npy<float>(FileType::F32, {11, 5}, 0)), y(npy<int64_t>(FileType::I64, {11}, 0));
  ScratchFile shortY(npy<int64_t>(FileType::I64, {10}, 0)), wide(npy<float>(FileType::F32, {11, 6}, 0));
  ScratchFile floats(npy<float>(FileType::F32, {11}, 0)), deep(npy<float>(FileType::F32, {11, 5, 1}, 0));
  auto open = [&](std::map<std::string, std::string> files) {
    return [&program, files] { Dataset dataset(program, 0, files); };
  };
  open({{"x", x.path()}, {"y", y.path()}})();
  expectBadInput(open({{"x", x.path()}}), "input 'y' [4] needs --data y=FILE.npy");
  expectBadInput(open({{"x", x.path()}, {"y", shortY.path()}}), "has 10 rows, but");
  expectBadInput(open({{"x", wide.path()}, {"y", y.path()}}),
                 "has shape [11, 6], but input 'x' expects [rows, 5]");
  expectBadInput(open({{"x", deep.path()}, {"y", y.path()}}), "[11, 5, 1]");
  expectBadInput(open({{"x", x.path()}, {"y", floats.path()}}), "holds f32, but input 'y' expects i64");
  Built whole = build(1, 1, 4, 5, /*countsRows=*/false);
  expectBadInput([&] { Dataset d(*whole.program, 0, {{"x", x.path()}, {"y", y.path()}}); },
                 "has 11 rows, and the program takes only whole batches of 4");
}

// Of two stages the first holds x and the last y: each opens its own file alone, and both know the rows.
TEST(Dataset, HeldInParts) {
  constexpr uint64_t batch = 4, columns = 2, fileRows = 11;
  BlobBuilder blob("stages");
  blob.addAxis("pipe", 2);
  Positions first = blob.addPositions({1, 0}), last = blob.addPositions({0, 1});
  // All at the same bytes.
  uint32_t x = blob.addView(0, batch * columns, DType::F64), y = blob.addView(0, batch, DType::I64);
  uint32_t valid = blob.addView(256, 1, DType::I64), c = blob.addView(256, 1, DType::F64);
  blob.header().arenaBytes = 4096;
  blob.header().batchRows = batch;
  blob.addArg({.name = "x", .view = x, .dims = {{batch}, {columns}}, .batchDim = 0, .heldAt = first});
  blob.addArg({.name = "y", .view = y, .dims = {{batch}}, .batchDim = 0, .indices = 500, .heldAt = last});
  blob.addArg({.name = "valid", .kind = ArgKind::ValidRows, .view = valid, .heldAt = last});
  blob.addArg({.name = "c", .view = c, .dims = {{1}}, .heldAt = first});
  std::vector<unsigned char> bytes = blob.finish();
  Program program(bytes.data(), bytes.size());
  ScratchFile xs(npy<float>(FileType::F32, {fileRows, columns}, 0)), ys(npy<int64_t>(FileType::I64, {fileRows}, 100));
  ScratchFile few(npy<int64_t>(FileType::I64, {10}, 100)), cs(npy<double>(FileType::F64, {1}, 7));
  using Files = std::map<std::string, std::string>;
  auto most = [](std::vector<uint64_t> a, const std::vector<uint64_t> &b) {
    for (size_t i = 0; i < a.size(); ++i)
      a[i] = std::max(a[i], b.at(i));
    return a;
  };
  // What a stage does not hold it does not look for.
  Files mine = {{"x", xs.path()}, {"y", "/nowhere"}, {"c", cs.path()}};
  Files theirs = {{"x", "/nowhere"}, {"y", ys.path()}, {"c", "/nowhere"}};
  for (bool shuffled : {false, true}) {
    Dataset here(program, 0, mine), there(program, 1, theirs);
    EXPECT_TRUE(Dataset::isHeldInParts(program));
    std::vector<uint64_t> known = most(here.rowsHere(), there.rowsHere());
    for (Dataset *data : {&here, &there}) {
      data->agreeOnRows(known);
      EXPECT_EQ(data->rows(), fileRows);
      if (shuffled)
        data->shuffle(11);
    }
    for (uint64_t b = 0; b < 3; ++b) {
      Arena a(4096), z(4096);
      uint64_t rows = here.fill(1, b, a.base());
      EXPECT_EQ(rows, b == 2 ? 3u : 4u);
      EXPECT_EQ(there.fill(1, b, z.base()), rows);
      auto *xValues = reinterpret_cast<const double *>(a.base());
      auto *yValues = reinterpret_cast<const int64_t *>(z.base());
      for (uint64_t i = 0; i < batch; ++i)
        EXPECT_EQ(xValues[i * columns], double((yValues[i] - 100) * int64_t(columns)));
      EXPECT_EQ(reinterpret_cast<const double *>(a.base() + 256)[0], 7);
      EXPECT_EQ(reinterpret_cast<const int64_t *>(z.base() + 256)[0], int64_t(rows));
    }
  }
  // Every position tells the same fault.
  theirs["y"] = few.path();
  Dataset here(program, 0, mine), there(program, 1, theirs);
  std::vector<uint64_t> known = most(here.rowsHere(), there.rowsHere());
  expectBadInput([&] { there.agreeOnRows(known); }, few.path() + ": has 10 rows, but /nowhere has 11");
  mine["y"] = few.path(), mine["x"] = theirs["x"] = xs.path();
  Dataset again(program, 0, mine);
  expectBadInput([&] { again.agreeOnRows(known); }, few.path() + ": has 10 rows, but " + xs.path() + " has 11");
  std::vector<uint64_t> unlike = known;
  unlike[1] = ~uint64_t(9);
  expectBadInput([&] { again.agreeOnRows(unlike); }, xs.path() + ": has 11 rows on one rank, but 9 on another");
  expectBadInput([&] { Dataset(program, 0, Files{{"x", xs.path()}, {"c", cs.path()}}); }, "input 'y' [4] needs --data");
}

// Numbers that index nothing are refused before the step that would use them, by rank and row.
TEST(Dataset, IndicesOutsideAreRefused) {
  Built built = build(2, 1, 4, 5, true, {.name = "y", .indices = 11, .ignored = -100});
  const Program &program = *built.program;
  ScratchFile x(npy<float>(FileType::F32, {11, 5}, 0)), y(npy<int64_t>(FileType::I64, {11}, 1));
  Arena arena(program.header().arenaBytes);
  auto fill = [&](uint32_t position, uint64_t batch) {
    Dataset(program, position, {{"x", x.path()}, {"y", y.path()}}).fill(0, batch, arena.base());
  };
  // Labels are 1 to 11. Of the last batch, rows 8 to 10, the other rank has the last.
  for (uint64_t batch : {0, 1})
    fill(0, batch), fill(1, batch);
  fill(0, 2);
  expectBadInput([&] { fill(1, 2); }, ": row 10 holds 11, but input 'y' expects 0 to 10, or -100");
}

} // namespace
} // namespace shoal::rt
