// A blob is data from a file. A good one is read; each rule has a blob that breaks it; and
// no cut or changed blob does anything but load or end in one line.
#include "TestSupport.h"
#include "core/piece.h"
#include "shoal-rt/blob_builder.h"

#include <cstring>
#include <functional>
#include <numeric>
#include <random>

namespace shoal::rt {
namespace {

using test::expectBadInput;
using InstrSpec = BlobBuilder::InstrSpec;

// One row of every kind, over a 2 x 3 mesh.
struct Everything {
  BlobBuilder blob{"everything"};
  uint32_t a, b, ab, w, x, valid, step, out, scratch, loss;

  Everything() {
    blob.addAxis("a", 2);
    blob.addAxis("b", 3);
    blob.setDeviceIds({5, 4, 3, 2, 1, 0});
    a = blob.addGroup({0}), b = blob.addGroup({1}), ab = blob.addGroup({0, 1});
    w = blob.addView(0, 12, DType::F32);
    x = blob.addView(64, 6, DType::F32);
    valid = blob.addView(128, 1, DType::I64);
    step = blob.addView(192, 1, DType::I64);
    out = blob.addView(256, 12, DType::F32);
    scratch = blob.addView(320, 6, DType::F32);
    loss = blob.addView(384, 1, DType::F32);
    blob.addView(324, 2, DType::F32, StorageClass::Activation, scratch);
    blob.header().arenaBytes = 448;
    blob.header().batchRows = 5;
    blob.header().numKernels = 2;
    blob.addArg({"w", ArgKind::Param, w, {{4, {0}}, {6, {}}}, -1, InitKind::KaimingUniform});
    blob.addArg({"x", ArgKind::Input, x, {{5, {1}}, {3, {}}}, 0});
    blob.addArg({"valid", ArgKind::ValidRows, valid});
    blob.addArg({"step", ArgKind::Step, step});
    uint32_t lossResult = blob.addResult({"loss", ResultKind::Loss, loss});
    uint32_t output = blob.addResult({"y", ResultKind::Output, scratch, {{5, {1}}, {3, {}}}, 0});
    blob.addInstr({.op = Opcode::Launch, .event = 0, .a = 1, .operands = {x, w, scratch}, .name = "k"});
    blob.addInstr({.op = Opcode::Library, .operands = {x, w, out},
                   .params = {2, 6, 2, 1, 0, 0, 3, 6, 6, 0, 0, 0, 0, 0, 0}});
    blob.addInstr({.op = Opcode::Copy, .operands = {w, out}});
    blob.addInstr({.op = Opcode::AxisIndex, .a = b, .operands = {step}, .params = {2}});
    blob.addInstr({.op = Opcode::Wait, .stream = 1, .params = {0}});
    blob.addInstr({.op = Opcode::AllReduce, .stream = 1, .event = 1, .a = ab, .operands = {w, w},
                   .name = "all_reduce", .reason = "gradient"});
    blob.addInstr({.op = Opcode::AllGather, .stream = 1, .a = a, .operands = {x, out}});
    blob.addInstr({.op = Opcode::ReduceScatter, .stream = 1, .a = a, .operands = {out, x}});
    blob.addInstr({.op = Opcode::AllToAll, .stream = 1, .a = b, .operands = {w, out}});
    blob.addInstr({.op = Opcode::Broadcast, .stream = 1, .a = b, .operands = {w, out}, .params = {2}});
    blob.addInstr({.op = Opcode::Scatter, .stream = 1, .a = a, .operands = {out, x}, .params = {1}});
    blob.addInstr({.op = Opcode::Gather, .stream = 1, .a = a, .operands = {x, out}, .params = {0}});
    BlobBuilder::PeerSpec send{true, x, {1, kNone, 3, 2, kNone, kNone}};
    BlobBuilder::PeerSpec receive{false, scratch, {kNone, 0, 3, 2, kNone, kNone}};
    blob.addInstr({.op = Opcode::Permute, .stream = 1, .a = kNone, .operands = {x, scratch},
                   .peers = {send, receive}});
    blob.addInstr({.op = Opcode::PointToPoint, .stream = 2, .a = a, .peers = {receive, send}});
    blob.addInstr({.op = Opcode::Barrier, .stream = 2, .a = ab});
    blob.addInstr({.op = Opcode::Wait, .params = {1}});
    blob.addInstr({.op = Opcode::Probe, .a = lossResult});
    blob.addInstr({.op = Opcode::Probe, .a = output});
  }
};

void load(const std::vector<unsigned char> &bytes) { Program(bytes.data(), bytes.size()); }

TEST(Program, ReadsWhatTheBuilderWrites) {
  std::vector<unsigned char> bytes = Everything().blob.finish();
  Program program(bytes.data(), bytes.size());
  EXPECT_EQ(program.name(), "everything");
  EXPECT_EQ(program.numPositions(), 6u);
  EXPECT_EQ(program.positionOfRank(5), 0u);
  EXPECT_EQ(program.header().numStreams, 3u);
  EXPECT_EQ(program.header().numEvents, 2u);
  EXPECT_EQ(program.coordinate(4, 0), 1u);
  EXPECT_EQ(program.coordinate(4, 1), 1u);
  const uint32_t swapped[] = {1, 0};
  EXPECT_EQ(program.linear(2, swapped), 4u); // a = 0, b = 2
  EXPECT_EQ(shapeText(program.dims(program.args()[0])), "[4, 6]");
  EXPECT_EQ(program.results()[0].probe, 16u);
  EXPECT_EQ(program.str(program.instrs()[5].reason), "gradient");
}

// Changes one field of a good blob; the offset of records comes from its header.
template <typename Record>
void expectBroken(Section Header::*section, uint64_t index, std::function<void(Record &)> change,
                  const std::string &part) {
  std::vector<unsigned char> bytes = Everything().blob.finish();
  Header header;
  std::memcpy(&header, bytes.data(), sizeof header);
  ASSERT_LT(index, (header.*section).count);
  unsigned char *at = bytes.data() + (header.*section).offset + index * sizeof(Record);
  Record record;
  std::memcpy(&record, at, sizeof record);
  change(record);
  std::memcpy(at, &record, sizeof record);
  expectBadInput([&] { load(bytes); }, part);
}

void expectBrokenHeader(std::function<void(Header &)> change, const std::string &part) {
  std::vector<unsigned char> bytes = Everything().blob.finish();
  Header header;
  std::memcpy(&header, bytes.data(), sizeof header);
  change(header);
  std::memcpy(bytes.data(), &header, sizeof header);
  expectBadInput([&] { load(bytes); }, part);
}

TEST(Program, HeaderRules) {
  expectBrokenHeader([](Header &h) { h.magic[0] = 'X'; }, "magic");
  expectBrokenHeader([](Header &h) { h.version = 1; }, "version must be 13, got: 1");
  expectBrokenHeader([](Header &h) { h.size += 1; }, "size must be between");
  expectBrokenHeader([](Header &h) { h.size = 8; }, "size must be between");
  expectBrokenHeader([](Header &h) { h.mode = Mode(7); }, "mode");
  expectBrokenHeader([](Header &h) { h.arenaBytes = ~0ull; }, "the arena must be at most");
  expectBrokenHeader([](Header &h) { h.arenaBytes = 100; }, "must lie inside the arena of 100");
  expectBrokenHeader([](Header &h) { h.numStreams = 0; }, "streams");
  expectBrokenHeader([](Header &h) { h.numStreams = 2; }, "runs on stream 2 of 2");
  expectBrokenHeader([](Header &h) { h.numEvents = 1000; }, "events");
  expectBrokenHeader([](Header &h) { h.numEvents = 1; }, "signals event 1 of 1");
  expectBrokenHeader([](Header &h) { h.numKernels = 1; }, "launches kernel 1 of 1");
  expectBrokenHeader([](Header &h) { h.batchRows = 6; }, "batch of 6 rows");
  expectBrokenHeader([](Header &h) { h.instrs.count = ~0ull; }, "section 'instrs'");
  expectBrokenHeader([](Header &h) { h.views.offset += 4; }, "section 'views' must start");
  expectBrokenHeader([](Header &h) { h.params.offset = ~0ull - 7; }, "section 'params'");
  expectBrokenHeader([](Header &h) { h.name = {1 << 20, 1}; }, "name of program");
  expectBrokenHeader([](Header &h) { h.plan = {0, 1 << 20}; }, "name of plan");
  expectBrokenHeader([](Header &h) { h.stages = {0, 1 << 20}; }, "name of stages");
  expectBrokenHeader([](Header &h) { h.deviceIds.count = 5; }, "device ids must number");
}

TEST(Program, RecordRules) {
  expectBroken<Axis>(&Header::axes, 0, [](Axis &a) { a.size = 0; }, "axis size must be at least 1");
  expectBroken<Axis>(&Header::axes, 0, [](Axis &a) { a.size = ~0u; }, "at most");
  expectBroken<uint32_t>(&Header::deviceIds, 0, [](uint32_t &id) { id = 6; }, "permutation");
  expectBroken<uint32_t>(&Header::deviceIds, 0, [](uint32_t &id) { id = 4; }, "4 twice");
  expectBroken<Group>(&Header::groups, 2, [](Group &g) { g.numIndices = 1 << 30; }, "axes of group");
  expectBroken<uint32_t>(&Header::indices, 2, [](uint32_t &i) { i = 2; }, "mesh axis 2 of 2");
  expectBroken<uint32_t>(&Header::indices, 2, [](uint32_t &i) { i = 1; }, "mesh axis 1 twice");
  expectBroken<View>(&Header::views, 0, [](View &v) { v.dtype = DType(9); }, "dtype 9");
  expectBroken<View>(&Header::views, 0, [](View &v) { v.elements = ~0ull / 2; }, "inside the arena");
  expectBroken<View>(&Header::views, 0, [](View &v) { v.offset = 2; }, "multiple of 4");
  expectBroken<View>(&Header::views, 4, [](View &v) { v.storage = 9; }, "in no other, got: view 9");
  expectBroken<View>(&Header::views, 4, [](View &v) { v.storage = 5; }, "inside bytes 320 to 344");
  expectBroken<View>(&Header::views, 7, [](View &v) { v.storage = 4; },
                     "must lie inside bytes 256");
  expectBroken<View>(&Header::views, 7, [](View &v) { v.storageClass = StorageClass::Grad; },
                     "must have the class of view 5, 4, got: 3");
  expectBroken<View>(&Header::views, 4, [](View &v) { v.storageClass = StorageClass(6); },
                     "unknown class 6");
  expectBroken<View>(&Header::views, 0, [](View &v) { v.storageClass = StorageClass::Grad; },
                     "of class 0, got: a part of view 0 of class 3");
  expectBroken<Dim>(&Header::dims, 0, [](Dim &d) { d.local = 3; }, "must be ceil(4 / 2)");
  expectBroken<Dim>(&Header::dims, 0, [](Dim &d) { d.global = ~0ull; }, "at most");
  expectBroken<Arg>(&Header::args, 0, [](Arg &a) { a.view = 1; }, "local elements, its view 1");
  expectBroken<Arg>(&Header::args, 0, [](Arg &a) { a.kind = ArgKind(9); }, "unknown kind 9");
  expectBroken<Arg>(&Header::args, 0, [](Arg &a) { a.batchDim = 0; }, "is no input");
  expectBroken<Arg>(&Header::args, 1, [](Arg &a) { a.batchDim = 2; }, "batch dimension");
  expectBroken<Arg>(&Header::args, 0, [](Arg &a) { a.indices = 4; }, "in an input of i32 or i64");
  expectBroken<Arg>(&Header::args, 1, [](Arg &a) { a.indices = 4; }, "in an input of i32 or i64");
  expectBroken<Arg>(&Header::args, 1, [](Arg &a) { a.indices = -4; }, "got: -4");
  expectBroken<Arg>(
      &Header::args, 1, [](Arg &a) { a.batchDim = 1; }, "must hold a batch of 5 rows in whole micro-batches");
  expectBroken<Arg>(&Header::args, 2, [](Arg &a) { a.view = 6; }, "must be a scalar i64");
  expectBroken<Arg>(&Header::args, 2, [](Arg &a) { a.view = 3; }, "must not share storage");
  expectBroken<Arg>(&Header::args, 2, [](Arg &a) { a.kind = ArgKind::Step; }, "only one argument");
  expectBroken<Arg>(&Header::args, 0, [](Arg &a) { a.kind = ArgKind::Seed; }, "must be a scalar i64");
  expectBroken<Result>(&Header::results, 0, [](Result &r) { r.probe = 0; }, "probe of its own");
  expectBroken<Result>(&Header::results, 0, [](Result &r) { r.probe = kNone; }, "is read at row");
  expectBroken<Result>(&Header::results, 1, [](Result &r) { r.kind = ResultKind::Loss; },
                       "must be a scalar");
  expectBroken<uint32_t>(&Header::operands, 0, [](uint32_t &v) { v = 99; }, "names view 99");
}

TEST(Program, TensorRules) {
  auto broken = [](uint64_t tensor, std::function<void(Tensor &)> change, const std::string &part) {
    expectBroken<Tensor>(&Header::tensors, tensor, change, part);
  };
  broken(0, [](Tensor &t) { t.name = {1 << 20, 1}; }, "the name of tensor 0");
  broken(0, [](Tensor &t) { t.kind = TensorKind(5); }, "unknown kind 5");
  broken(0, [](Tensor &t) { t.kind = TensorKind::State; }, "must belong to one of its kind, 2, got: argument 0");
  broken(0, [](Tensor &t) { t.kind = TensorKind::Grad; }, "must belong to one of its kind, 4, got: result 0");
  broken(0, [](Tensor &t) { t.owner = 99; }, "belongs to argument 99 of");
  broken(0, [](Tensor &t) { t.view = 1; }, "must have the view of what it belongs to, 0, got: 1");
  broken(0, [](Tensor &t) { t.firstDim = ~0u; }, "the dimensions of tensor 0");
  broken(0, [](Tensor &t) { t.numDims = 1; }, "must have the shape of what it belongs to, [4, 6], got: [4]");
  broken(0, [](Tensor &t) { t.inBucket = 2; }, "in a bucket or not, 1 or 0, got: 2");
  broken(0, [](Tensor &t) { t.inBucket = 1; }, "must lie in a bucket of one dimension, got: [4, 6]");
  broken(0, [](Tensor &t) { t.first = 1; }, "must begin where the one before it in its bucket ends, at 0, got: 1");
  broken(
      0, [](Tensor &t) { t.end = 23; }, "is in no bucket and must have all of its 12 elements, got: [0, 23)");
  broken(0, [](Tensor &t) { t.init = InitKind(6); }, "unknown init 6");
  // The parameters of the product begin with 2 x 6 x 2 sizes, w has 24 elements.
  broken(0, [](Tensor &t) { t.numFileSizes = 1000; }, "1000 at 0");
  broken(0, [](Tensor &t) { t.firstFileSize = ~0u, t.numFileSizes = 1; },
         "the shape in files of tensor 0 'w' must lie inside");
  broken(0, [](Tensor &t) { t.numFileSizes = 2; }, "must be that of a parameter with 24 elements, got: 12");
  broken(0, [](Tensor &t) { t.numFileSizes = 5; }, "sizes from 1 on");
  expectBrokenHeader([](Header &h) { h.tensors.count = 0; }, "is kept from step to step and must be or hold tensors");
  broken(0, [](Tensor &t) { t.of = {1 << 20, 1}; }, "the name of the parameter of tensor 0");
  broken(0, [](Tensor &t) { t.of = t.name; }, "tensor 'w' must be state of a parameter, or else of none, got: of 'w'");
}

// State says of which parameter it is: not of itself, nor of one that is not there.
TEST(Program, StateIsOfAParameter) {
  for (auto [of, fits] : {std::pair("w", true), {"m", false}, {"n", false}, {"b", false}, {"v", false}, {"", false}}) {
    BlobBuilder blob("state");
    blob.header().arenaBytes = 512;
    auto add = [&](const std::string &name, ArgKind kind, const std::string &param) {
      uint64_t at = 64 * uint64_t(name[0] % 8);
      blob.addArg({.name = name, .kind = kind, .view = blob.addView(at, 4, DType::F32), .dims = {{4}}, .of = param});
    };
    add("m", ArgKind::State, of); // in front of its parameter
    add("w", ArgKind::Param, "");
    add("n", ArgKind::State, "w");
    add("b", ArgKind::Buffer, "");
    std::vector<unsigned char> bytes = blob.finish();
    if (fits)
      EXPECT_NO_THROW(load(bytes));
    else
      expectBadInput([&] { load(bytes); },
                     cat("tensor 'm' must be state of a parameter, or else of none, got: of '", of));
  }
}

// A bucket of two tensors over the second axis, 3 positions, and one of gradients over the first, 2 positions.
struct Buckets {
  BlobBuilder blob{"buckets"};

  Buckets() {
    blob.addAxis("a", 2);
    blob.addAxis("b", 3);
    uint32_t bucket = blob.addView(0, 5, DType::F32), grads = blob.addView(64, 6, DType::F32, StorageClass::Grad);
    blob.addArg({.name = "bucket.0", .kind = ArgKind::Param, .view = bucket, .dims = {{15, {1}}},
                 .members = {{.name = "u", .dims = {{3, {0}}, {4}}, .init = InitKind::Normal, .b = 1, .file = {12}},
                             {.name = "v", .dims = {{5}}, .init = InitKind::Constant, .a = 1}}});
    uint32_t result = blob.addResult({.name = "bucket.0", .kind = ResultKind::Grad, .view = grads, .dims = {{12, {0}}},
                                      .members = {{.name = "u", .dims = {{3}, {4}}}}});
    blob.addInstr({.op = Opcode::Probe, .a = result});
    blob.header().arenaBytes = 128;
  }
};

TEST(Program, BucketsHoldTensors) {
  std::vector<unsigned char> bytes = Buckets().blob.finish();
  Program program(bytes.data(), bytes.size());
  ASSERT_EQ(program.tensors().size(), 3u);
  const Tensor &u = program.tensors()[0], &v = program.tensors()[1], &grad = program.tensors()[2];
  EXPECT_EQ(program.fileShape(u), std::vector<uint64_t>{12});
  EXPECT_EQ(v.first, 8u); // behind the box of u, 2 x 4
  EXPECT_EQ(grad.first, 0u);
  // Position a = 1, b = 1 holds elements 5 to 9: the last 3 of u's box, which are padding of its second row, and 2 of
  // v.
  Piece piece = pieceOf(program, u, 4);
  EXPECT_EQ(std::tuple(piece.begin, piece.end, piece.at), std::tuple(5u, 8u, 0u));
  piece.forEachRun([](uint64_t, uint64_t, uint64_t) { ADD_FAILURE() << "padding"; });
  // With a = 0 they are elements of u's rows 0 and 1.
  piece = pieceOf(program, u, 1);
  int runs = 0;
  piece.forEachRun([&](uint64_t global, uint64_t storage, uint64_t count) {
    EXPECT_EQ(std::tuple(global, storage, count), std::tuple(5u, 0u, 3u));
    ++runs;
  });
  EXPECT_EQ(runs, 1);
  piece = pieceOf(program, v, 4);
  EXPECT_EQ(std::tuple(piece.begin, piece.end, piece.at), std::tuple(0u, 2u, 3u));
  EXPECT_EQ(pieceOf(program, v, 0).elements(), 0u);
  // v is the same for both positions along a, u is not.
  auto first = [&](const Tensor &tensor) {
    return firstHolders(program, shardingAxes(program, tensor), program.holders(tensor));
  };
  EXPECT_EQ(first(u), (std::vector<uint32_t>{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(first(v), (std::vector<uint32_t>{0, 1, 2}));
}

TEST(Program, BucketsHoldAllOfTheirRanges) {
  BlobBuilder blob("small");
  blob.addAxis("data", 3);
  blob.addArg({.name = "bucket.0",
               .kind = ArgKind::Param,
               .view = blob.addView(0, 4, DType::F32),
               .dims = {{12, {0}}},
               .members = {{.name = "u", .dims = {{8}}}, {.name = "v", .dims = {{5}}}}});
  blob.header().arenaBytes = 64;
  std::vector<unsigned char> bytes = blob.finish();
  expectBadInput([&] { load(bytes); }, "must end inside its bucket of 12 elements, got: 13");
}

TEST(Program, BucketRules) {
  auto broken = [](auto record, auto section, uint64_t index, auto change, const std::string &part) {
    using Record = decltype(record);
    std::vector<unsigned char> bytes = Buckets().blob.finish();
    Header header;
    std::memcpy(&header, bytes.data(), sizeof header);
    Record *at = reinterpret_cast<Record *>(bytes.data() + (header.*section).offset) + index;
    change(*at);
    expectBadInput([&] { load(bytes); }, part);
  };
  broken(
      Tensor(), &Header::tensors, 1, [](Tensor &t) { t.inBucket = 0; }, "with another tensor, and that is no bucket");
  broken(Tensor(), &Header::tensors, 1, [](Tensor &t) { t.first = 9; }, "at 8, got: 9");
  broken(
      Dim(), &Header::dims, 3, [](Dim &d) { d.global = d.local = 8; },
      "must hold each of its 8 elements once, got: the first 5");
  broken(Tensor(), &Header::tensors, 2, [](Tensor &t) { t.owner = 1; }, "belongs to result 1 of 1");
  broken(Dim(), &Header::dims, 0, [](Dim &d) { d.global = 14; }, "must divide over its 3 shards, got: 14");
  // The axis that cuts the bucket: the first of the indices after the axes of u's rows.
  broken(
      Dim(), &Header::dims, 1, [](Dim &d) { d.firstAxis = 0, d.local = 1; },
      "mesh axis 1 shards tensor 0 'u' and its bucket");
}

// A tensor of 3 x 4 in two buckets over the axis, 2 positions: 7 elements behind one of another tensor, and 5.
struct CutTensor {
  BlobBuilder blob{"cut"};

  CutTensor() {
    blob.addAxis("data", 2);
    BlobBuilder::MemberSpec w{.name = "w", .dims = {{3}, {4}}, .init = InitKind::Constant, .a = 1};
    for (auto [number, range] : {std::pair(0, std::pair(0, 7)), std::pair(1, std::pair(7, 12))}) {
      std::vector<BlobBuilder::MemberSpec> members;
      if (number == 0)
        members.push_back({.name = "u", .dims = {{1}}});
      members.push_back(w);
      members.back().range = range;
      uint64_t elements = number == 0 ? 8 : 6;
      blob.addArg({.name = "bucket." + std::to_string(number),
                   .kind = ArgKind::Param,
                   .view = blob.addView(64 * uint64_t(number), elements / 2, DType::F32),
                   .dims = {{elements, {0}}},
                   .members = members});
    }
    blob.header().arenaBytes = 128;
  }
};

TEST(Program, TensorsLieInSeveralBuckets) {
  std::vector<unsigned char> bytes = CutTensor().blob.finish();
  Program program(bytes.data(), bytes.size());
  ASSERT_EQ(program.tensors().size(), 3u);
  std::vector<uint64_t> seen; // elements of w, over both positions
  for (const Tensor &part : program.tensors().subspan(1))
    for (uint32_t position : {0u, 1u}) {
      Piece piece = pieceOf(program, part, position);
      uint64_t local = program.views()[part.view].elements;
      piece.forEachRun([&](uint64_t global, uint64_t storage, uint64_t count) {
        EXPECT_LE(storage + count, local);
        for (uint64_t i = 0; i < count; ++i) {
          // Where the bucket has it: behind u in the first one.
          EXPECT_EQ(position * local + storage + i, global < 7 ? global + i + 1 : global + i - 7);
          seen.push_back(global + i);
        }
      });
    }
  std::vector<uint64_t> all(12);
  std::iota(all.begin(), all.end(), 0);
  EXPECT_EQ(seen, all);
}

TEST(Program, CutTensorRules) {
  auto broken = [](uint64_t index, auto change, const std::string &part) {
    std::vector<unsigned char> bytes = CutTensor().blob.finish();
    Header header;
    std::memcpy(&header, bytes.data(), sizeof header);
    change(reinterpret_cast<Tensor *>(bytes.data() + header.tensors.offset)[index]);
    expectBadInput([&] { load(bytes); }, part);
  };
  broken(
      2, [](Tensor &t) { t.begin = 12; }, "must have some of its 12 elements in the bucket, got: [12, 12)");
  broken(
      2, [](Tensor &t) { t.end = 13; }, "must have some of its 12 elements in the bucket, got: [7, 13)");
  broken(
      2, [](Tensor &t) { t.begin = 8; },
      "must hold each of its 12 elements once, got: a range from 8 on behind the first 7");
  broken(
      2, [](Tensor &t) { t.begin = 6; },
      "must hold each of its 12 elements once, got: a range from 6 on behind the first 7");
  broken(
      2, [](Tensor &t) { t.end = 11; }, "must hold each of its 12 elements once, got: the first 11");
  broken(
      2, [](Tensor &t) { t.a = 2; }, "the name of tensor 2 'w' is taken by another tensor");
  broken(
      2, [](Tensor &t) { t.of = t.name; }, "the name of tensor 2 'w' is taken by another tensor");
}

TEST(Program, RowRules) {
  auto broken = [](uint64_t row, std::function<void(Instr &)> change, const std::string &part) {
    expectBroken<Instr>(&Header::instrs, row, change, part);
  };
  broken(0, [](Instr &i) { i.op = Opcode(99); }, "unknown operation 99");
  broken(0, [](Instr &i) { i.stream = 1; }, "compute stream 0");
  broken(0, [](Instr &i) { i.firstOperand = ~0u; }, "operands of row 0");
  broken(0, [](Instr &i) { i.numParams = ~0u; }, "parameters of row 0");
  broken(6, [](Instr &i) { i.event = 1; }, "must be signalled by one row");
  broken(0, [](Instr &i) { i.event = kNone; }, "which no earlier row signals");
  broken(1, [](Instr &i) { i.numParams = 3; }, "takes 3 operands and 15 parameters");
  broken(2, [](Instr &i) { i.numOperands = 1; }, "takes 2 operands, got: 1");
  broken(3, [](Instr &i) { i.a = 3; }, "names group 3 of 3");
  broken(5, [](Instr &i) { i.b = 3; }, "unknown reduction 3");
  broken(6, [](Instr &i) { i.a = 1; }, "equal chunks");
  broken(9, [](Instr &i) { i.numParams = 0; }, "needs a root among its 3 ranks");
  broken(12, [](Instr &i) { i.numPeers = 1; }, "a send of operand 0 and a receive of operand 1");
  broken(14, [](Instr &i) { i.firstOperand = 0, i.numOperands = 1; }, "takes 0 operands");
  broken(16, [](Instr &i) { i.a = 1; }, "probe");
}

void expectRowRefused(InstrSpec row, const std::string &part) {
  Everything all;
  all.blob.addInstr(row);
  std::vector<unsigned char> bytes = all.blob.finish();
  expectBadInput([&] { load(bytes); }, part);
}

// A 2 x 3 mesh; group 1 is over its second axis: positions 0 to 2 and 3 to 5.
TEST(Program, PositionRules) {
  Everything all;
  auto only = [](BlobBuilder &blob, const std::vector<uint32_t> &positions, InstrSpec row) {
    row.onlyAt = blob.addPositions(positions);
    return row;
  };
  auto expectOnlyRefused = [&](const std::vector<uint32_t> &positions, const InstrSpec &row, const std::string &part) {
    Everything changed;
    changed.blob.addInstr(only(changed.blob, positions, row));
    std::vector<unsigned char> bytes = changed.blob.finish();
    expectBadInput([&] { load(bytes); }, part);
  };
  InstrSpec copy{.op = Opcode::Copy, .operands = {0, 4}};
  InstrSpec barrier{.op = Opcode::Barrier, .a = 1};
  all.blob.addInstr(only(all.blob, {1, 0, 0, 0, 0, 1}, copy));
  uint32_t row = all.blob.addInstr(only(all.blob, {1, 1, 1, 0, 0, 0}, barrier));
  uint32_t same = all.blob.addInstr(only(all.blob, {1, 1, 1, 0, 0, 0}, barrier));
  std::vector<unsigned char> bytes = all.blob.finish();
  Program program(bytes.data(), bytes.size());
  EXPECT_TRUE(program.runsAt(program.instrs()[row], 2));
  EXPECT_FALSE(program.runsAt(program.instrs()[row], 3));
  EXPECT_TRUE(program.runsAt(program.instrs()[0], 3));
  EXPECT_EQ(program.instrs()[row].onlyAt, program.instrs()[same].onlyAt);

  expectOnlyRefused({1, 1, 0, 0, 0, 0}, barrier, "must be run by whole groups, got: mesh position 2 does not run it");
  expectOnlyRefused({1, 2, 0, 0, 0, 0}, copy, "1 or 0, got: 2");
  // The same set is of whole groups for one axis, and not for the other.
  Everything mixed;
  mixed.blob.addInstr(only(mixed.blob, {1, 1, 1, 0, 0, 0}, barrier));
  mixed.blob.addInstr(only(mixed.blob, {1, 1, 1, 0, 0, 0}, {.op = Opcode::Barrier, .a = 0}));
  std::vector<unsigned char> broken = mixed.blob.finish();
  expectBadInput([&] { load(broken); }, "must be run by whole groups, got: mesh position 3 does not run it");
  expectBroken<Instr>(&Header::instrs, 0, [](Instr &i) { i.onlyAt = 1 << 20; },
                      "the positions that run row 0");
}

// A rank keeps its own rows and those that its waits are for.
TEST(Program, RowsOfAPosition) {
  BlobBuilder blob("rows");
  uint32_t group = blob.addGroup({blob.addAxis("pipe", 2)});
  Positions first = blob.addPositions({1, 0}), last = blob.addPositions({0, 1});
  blob.addInstr({.op = Opcode::Barrier, .stream = 1, .event = 0, .a = group});
  blob.addInstr({.op = Opcode::PointToPoint, .stream = 1, .event = 1, .a = kNone, .onlyAt = first});
  blob.addInstr({.op = Opcode::PointToPoint, .stream = 1, .event = 2, .a = kNone, .onlyAt = first});
  blob.addInstr({.op = Opcode::Wait, .params = {1}, .onlyAt = first});
  blob.addInstr({.op = Opcode::Wait, .params = {2}, .onlyAt = last});
  blob.addInstr({.op = Opcode::Wait, .params = {0}});
  std::vector<unsigned char> bytes = blob.finish();
  Program program(bytes.data(), bytes.size());
  EXPECT_EQ(program.rowsAt(0), (std::vector<uint32_t>{0, 1, 2, 3, 5}));
  EXPECT_EQ(program.rowsAt(1), (std::vector<uint32_t>{0, 2, 4, 5}));
}

// Two stages of two positions each: w0 is held by the first, w1 by the last, at the same bytes.
struct Stages {
  struct Spec {
    std::vector<uint32_t> first = {1, 1, 0, 0}, last = {0, 0, 1, 1}; // who holds w0 and w1
    std::vector<uint32_t> rows = {0, 0, 1, 1}, probe = {0, 0, 1, 1}; // who runs the row with w1, and reads the loss
    std::vector<uint32_t> axes = {1};                                // that shard w1
    bool isOneView = false;
  };
  std::vector<unsigned char> bytes;

  explicit Stages(const Spec &spec) {
    BlobBuilder blob("stages");
    blob.addAxis("pipe", 2);
    blob.addAxis("data", 2);
    uint64_t shards = 1 << spec.axes.size();
    uint32_t w0 = blob.addView(0, 8 / shards, DType::F32), loss = blob.addView(128, 1, DType::F32);
    uint32_t w1 = spec.isOneView ? w0 : blob.addView(0, 8 / shards, DType::F32);
    uint32_t x = blob.addView(64, 4, DType::F32);
    blob.addArg({.name = "w0", .kind = ArgKind::Param, .view = w0, .dims = {{8, spec.axes}},
                 .init = InitKind::Constant, .heldAt = blob.addPositions(spec.first)});
    blob.addArg({.name = "w1", .kind = ArgKind::Param, .view = w1, .dims = {{8, spec.axes}},
                 .init = InitKind::Constant, .heldAt = blob.addPositions(spec.last)});
    blob.addArg({.name = "x", .view = x, .dims = {{4}}, .heldAt = blob.addPositions({1, 1, 0, 0})});
    uint32_t result = blob.addResult({"loss", ResultKind::Loss, loss});
    blob.addInstr({.op = Opcode::Launch, .operands = {w1, loss}, .name = "k", .onlyAt = blob.addPositions(spec.rows)});
    BlobBuilder::PeerSpec send{true, x, {2, kNone, kNone, kNone}};
    BlobBuilder::PeerSpec receive{false, loss, {kNone, kNone, 0, kNone}};
    blob.addInstr({.op = Opcode::PointToPoint, .a = kNone, .peers = {send, receive}}); // all run it, one sends x
    blob.addInstr({.op = Opcode::Probe, .a = result, .onlyAt = blob.addPositions(spec.probe)});
    blob.header().arenaBytes = 192;
    blob.header().numKernels = 1;
    bytes = blob.finish();
  }
};

TEST(Program, ArgumentsAreHeldAtPositions) {
  std::vector<unsigned char> bytes = Stages({}).bytes;
  Program program(bytes.data(), bytes.size());
  EXPECT_TRUE(program.holds(program.args()[0], 1) && !program.holds(program.args()[0], 2));
  EXPECT_TRUE(program.holds(program.tensors()[1], 2) && !program.holds(program.tensors()[1], 1));
  EXPECT_TRUE(program.holds(program.results()[0], 3) && !program.holds(program.results()[0], 0));
  EXPECT_EQ(firstHolders(program, {}, program.holders(program.results()[0])), std::vector<uint32_t>{2});
  auto refused = [](const Stages::Spec &spec, const std::string &part) {
    expectBadInput([&] { load(Stages(spec).bytes); }, part);
  };
  refused({.first = {1, 1, 1, 0}}, "arguments must not share storage, but 'w0' and 'w1' overlap at byte 0");
  refused({.isOneView = true}, "arguments must not share storage, but 'w0' and 'w1' overlap at byte 0");
  refused({.first = {1, 2, 0, 0}}, "position 1 must hold argument 0 'w0' or not, 1 or 0, got: 2");
  refused({.first = {0, 0, 0, 0}}, "each of the 1 parts of argument 'w0' must be held at a mesh position, got: 0");
  refused({.first = {1, 0, 0, 0}}, "each of the 2 parts of tensor 'w0' must be held at a mesh position, got: 1");
  refused({.axes = {0, 1}}, "each of the 4 parts of tensor 'w0' must be held at a mesh position, got: 2");
  refused({.probe = {0, 0, 0, 0}}, "each of the 1 parts of result 'loss' must be held at a mesh position, got: 0");
  refused({.rows = {0, 1, 1, 1}}, "row 0 (launch 'k') must run only where argument 'w1' is held, got: mesh position 1");
  Header header;
  std::memcpy(&header, bytes.data(), sizeof header);
  auto *args = reinterpret_cast<Arg *>(bytes.data() + header.args.offset);
  args[2].heldAt = args[1].heldAt; // x is not where it is sent
  expectBadInput([&] { load(bytes); },
                 "row 1 (point_to_point '') must run only where argument 'x' is held, got: mesh position 0");
  args[2].heldAt = uint32_t(header.indices.count) - 3;
  expectBadInput([&] { load(bytes); }, "the positions that hold argument 2 'x' must lie inside");
}

TEST(Program, OperandRules) {
  Everything e;
  BlobBuilder::PeerSpec lost{true, e.x, {1, kNone, kNone, kNone, kNone, kNone}};
  BlobBuilder::PeerSpec nothing{false, e.scratch, std::vector<uint32_t>(6, kNone)};
  BlobBuilder::PeerSpec outside{true, e.x, {6, kNone, kNone, kNone, kNone, kNone}};
  BlobBuilder::PeerSpec onto{false, e.x, {1, kNone, kNone, kNone, kNone, kNone}}; // where lost sends it
  expectRowRefused({.op = Opcode::Permute, .a = kNone, .operands = {e.x, e.scratch},
                    .peers = {lost, nothing}},
                   "must pair each send with its receive");
  expectRowRefused({.op = Opcode::PointToPoint, .a = kNone, .peers = {outside}},
                   "names mesh position 6 of 6");
  expectRowRefused({.op = Opcode::PointToPoint, .a = kNone, .peers = {lost, onto}},
                   "must not share storage");
  expectRowRefused({.op = Opcode::AllToAll, .a = e.b, .operands = {e.w, e.w}}, "must be apart");
  expectRowRefused({.op = Opcode::AllReduce, .a = e.b, .operands = {e.valid, e.loss}},
                   "must keep the element type");
  expectRowRefused({.op = Opcode::Copy, .operands = {e.w, e.w}}, "must be apart");
  expectRowRefused({.op = Opcode::Wait, .params = {-1}}, "waits for event -1");
  auto gemm = [&](std::vector<int64_t> params, const std::string &part,
                  std::vector<uint32_t> operands = {}) {
    if (operands.empty())
      operands = {e.x, e.w, e.out};
    expectRowRefused({.op = Opcode::Library, .operands = operands, .params = params}, part);
  };
  gemm({3, 6, 2, 1, 0, 0, 3, 6, 6, 0, 0, 0, 0, 0, 0}, "A of");
  gemm({2, 6, 3, 1, 0, 0, 3, 6, 6, 0, 0, 0, 0, 0, 0}, "B of");
  gemm({2, 6, 2, 1, 0, 0, 3, 6, 7, 0, 0, 0, 0, 0, 0}, "C of");
  gemm({2, 6, 2, 2, 0, 0, 3, 6, 6, 1ll << 62, 0, 0, 0, 0, 0}, "A of");
  gemm({2, 6, 2, 1, 0, 0, 3, 6, 6, -1, 0, 0, 0, 0, 0}, "A of");
  gemm({2, 6, 2, 1, 0, 0, 1, 6, 6, 0, 0, 0, 0, 0, 0}, "ld of A");
  gemm({0, 6, 2, 1, 0, 0, 3, 6, 6, 0, 0, 0, 0, 0, 0}, "must be 1 to");
  gemm({2, 6, 2, 1, 2, 0, 3, 6, 6, 0, 0, 0, 0, 0, 0}, "must be 0 or 1");
  gemm({1, 2, 2, 3, 0, 0, 2, 2, 2, 2, 4, 1, 0, 0, 0}, "must be apart");
  gemm({2, 6, 2, 1, 0, 0, 3, 6, 6, 0, 0, 0, 0, 1, 0}, "as its views say");
  gemm({2, 2, 2, 1, 0, 0, 3, 6, 3, 0, 0, 0, 0, 0, 0}, "must not share storage", {e.x, e.w, e.x});
  auto scatter = [&](std::vector<uint32_t> operands, std::vector<int64_t> params,
                     const std::string &part) {
    expectRowRefused({.op = Opcode::Library, .a = uint32_t(LibraryFunction::ScatterAdd),
                      .operands = operands, .params = params}, part);
  };
  const int64_t i64 = int64_t(DType::I64), f32 = int64_t(DType::F32);
  scatter({e.valid, e.x, e.out}, {1, 1, 1, 0, i64}, "takes 6 parameters, got: 5");
  scatter({e.valid, e.x, e.out}, {1, 1, 1, 2, i64, f32}, "must be 0 or 1, got: 2");
  scatter({e.valid, e.x, e.out}, {1, 1, 1, 1, i64, f32}, "takes 4 operands, got: 3");
  scatter({e.valid, e.x, e.out}, {1, 0, 1, 0, i64, f32}, "must be at least 1, got: 0");
  scatter({e.valid, e.x, e.out}, {2, 1, 1, 0, i64, f32}, "ids of");
  scatter({e.valid, e.x, e.out}, {1, 1, 1ll << 62, 0, i64, f32}, "values of");
  scatter({e.valid, e.x, e.out}, {1, 1ll << 40, 6, 0, i64, f32}, "output of");
  scatter({e.x, e.w, e.out}, {6, 6, 2, 0, f32, f32}, "as its views say");
  scatter({e.valid, e.x, e.x}, {1, 1, 6, 0, i64, int64_t(DType::F64)}, "as its views say");
  scatter({e.valid, e.x, e.x}, {1, 1, 6, 0, i64, f32}, "must not share storage");
  scatter({e.valid, e.x, e.w, e.x}, {1, 1, 6, 1, i64, f32}, "offset of");
  expectRowRefused({.op = Opcode::Library, .a = 77}, "calls unknown library function 77");
}

// Random changes: most are found, the rest must still be safe to load.
void expectSurvives(const std::vector<unsigned char> &good) {
  load(good);
  for (size_t size = 0; size < good.size(); ++size) {
    std::vector<unsigned char> cut(good.begin(), good.begin() + long(size));
    EXPECT_THROW(load(cut), Error) << size;
  }
  std::mt19937 random(1);
  const uint32_t hostile[] = {0, 1, 2, 7, 63, 64, 0x7fffffff, 0x80000000, 0xfffffffe, 0xffffffff};
  int found = 0, changes = 0;
  for (size_t at = 8; at + 4 <= good.size(); at += 4)
    for (uint32_t value : hostile) {
      std::vector<unsigned char> changed = good;
      std::memcpy(changed.data() + at, &value, 4);
      ++changes;
      try {
        load(changed);
      } catch (const Error &error) {
        ++found;
        EXPECT_EQ(error.code, kExitBadInput);
      }
    }
  for (int round = 0; round < 20'000; ++round) {
    std::vector<unsigned char> changed = good;
    for (int i = 0; i < 4; ++i)
      changed[8 + random() % (changed.size() - 8)] = static_cast<unsigned char>(random());
    try {
      load(changed);
    } catch (const Error &error) {
      EXPECT_EQ(error.code, kExitBadInput);
    }
  }
  EXPECT_GT(found, changes / 3);
}

TEST(Program, SurvivesCutsAndChanges) {
  expectSurvives(Everything().blob.finish());
  expectSurvives(Stages({}).bytes);
}

} // namespace
} // namespace shoal::rt
