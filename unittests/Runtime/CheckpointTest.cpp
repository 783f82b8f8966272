// A checkpoint of any plan is read by any other: tensors of their own and in buckets, whole and sharded, of sizes that
// do not divide, in memory of every rank bit for bit what the plan itself would hold. And what is wrong with files is
// named.
#include "TestSupport.h"
#include "core/arena.h"
#include "core/checkpoint_folder.h"
#include "core/checkpoint_load.h"
#include "core/checkpoint_shard.h"
#include "core/checkpoint_tools.h"
#include "core/piece.h"
#include "shoal-rt/blob_builder.h"
#include "shoal-rt/random.h"
#include "shoal-rt/traffic.h"

#include <filesystem>
#include <functional>
#include <numeric>

namespace shoal::rt {
namespace {

using test::expectBadInput;
using DimSpec = BlobBuilder::DimSpec;
namespace fs = std::filesystem;

struct Plan {
  std::string name;
  std::vector<uint32_t> mesh;             // sizes of the axes "data" and "tensor"
  bool inBuckets = false;                 // over "data"
  std::vector<DimSpec> w = {{7}, {5}}, v = {{3}, {2}, {5}};
  std::vector<uint32_t> deviceIds = {};
  DType type = DType::F32;
  uint64_t bucketElements = ~uint64_t(0); // of the largest bucket, which may cut a tensor
  bool inStages = false; // along a third axis, of 2: w at the first, v at the last, c at both
};

std::vector<Plan> plans() {
  return {{"one device", {1, 1}},
          {"data parallel", {4, 1}},
          {"rows and columns", {2, 3}, false, {{7, {0}}, {5, {1}}}, {{3, {}}, {2, {1}}, {5, {0}}}, {5, 0, 4, 1, 3, 2}},
          {"both axes on one dimension", {2, 3}, false, {{7, {1, 0}}, {5, {}}}, {{3, {0}}, {2, {}}, {5, {}}}},
          {"buckets over 3", {3, 1}, true},
          {"buckets over 4", {4, 1}, true},
          {"buckets of shards", {3, 2}, true, {{7}, {5, {1}}}, {{3, {1}}, {2}, {5}}, {3, 1, 0, 2, 5, 4}},
          {"buckets that cut tensors", {2, 1}, true, {{7}, {5}}, {{3}, {2}, {5}}, {}, DType::F32, 16},
          {"buckets that cut shards", {3, 2}, true, {{7}, {5, {1}}}, {{3, {1}}, {2}, {5}}, {}, DType::F32, 9},
          {.name = "stages", .mesh = {1, 1}, .inStages = true},
          {.name = "stages in another order", .mesh = {1, 1}, .deviceIds = {1, 0}, .inStages = true},
          {"stages of shards", {2, 3}, false, {{7, {0}}, {5, {1}}}, {{3}, {2, {1}}, {5, {0}}}, {}, DType::F32, 0, true},
          {"stages of buckets", {3, 1}, true, {{7}, {5}}, {{3}, {2}, {5}}, {}, DType::F32, ~uint64_t(0), true}};
}

constexpr int64_t kStep = 1234567;

// Bits of a float, another one for each element of each tensor.
double valueOf(std::string_view name, uint64_t element) {
  if (name == "step")
    return double(kStep);
  return float(unitInterval(philox(streamKey(1, name), element, 0)[0], 0));
}

Program build(const Plan &plan, bool hasState = true, const std::string &wName = "w") {
  BlobBuilder blob("mlp");
  blob.addAxis("data", plan.mesh[0]);
  blob.addAxis("tensor", plan.mesh[1]);
  blob.setDeviceIds(plan.deviceIds);
  uint64_t arena = 0, lastArena = 0; // of a position that is in the last stage
  Positions first = kNone, last = kNone;
  if (plan.inStages) {
    blob.addAxis("pipe", 2);
    std::vector<uint32_t> odd;
    for (uint32_t position = 0; position < plan.mesh[0] * plan.mesh[1] * 2; ++position)
      odd.push_back(position % 2);
    last = blob.addPositions(odd);
    for (uint32_t &one : odd)
      one = 1 - one;
    first = blob.addPositions(odd);
  }
  auto elementsOf = [&](const std::vector<DimSpec> &dims) {
    uint64_t elements = 1;
    for (const DimSpec &dim : dims) {
      uint64_t shards = 1;
      for (uint32_t axis : dim.axes)
        shards *= plan.mesh[axis];
      elements *= (dim.global + shards - 1) / shards;
    }
    return elements;
  };
  // Stages lie over each other; what both hold lies behind the two.
  auto addView = [&](uint64_t elements, DType type, Positions heldAt = kNone) {
    bool isLast = plan.inStages && heldAt == last;
    if (heldAt == kNone)
      arena = lastArena = std::max(arena, lastArena);
    uint64_t &end = isLast ? lastArena : arena, at = end;
    end += (elements * elementBytes(type) + kAlignment - 1) / kAlignment * kAlignment;
    if (heldAt == kNone)
      lastArena = arena;
    return blob.addView(at, elements, type);
  };
  auto add = [&](ArgKind kind, const std::string &suffix) {
    std::vector<BlobBuilder::MemberSpec> members = {
        {wName, plan.w, InitKind::Normal, 0, 1, {5, 7}}, {"v", plan.v}, {"c", {}}};
    for (BlobBuilder::MemberSpec &one : members) {
      if (kind == ArgKind::State)
        one.of = one.name;
      one.name += suffix;
    }
    auto holdersOf = [&](size_t member) { return member == 0 ? first : member == 1 ? last : kNone; };
    if (!plan.inBuckets) {
      for (size_t i = 0; i < members.size(); ++i) {
        const BlobBuilder::MemberSpec &one = members[i];
        blob.addArg({.name = one.name,
                     .kind = kind,
                     .view = addView(elementsOf(one.dims), plan.type, holdersOf(i)),
                     .dims = one.dims,
                     .init = one.init,
                     .a = one.a,
                     .b = one.b,
                     .file = one.file,
                     .of = one.of,
                     .heldAt = holdersOf(i)});
      }
      return;
    }
    uint64_t elements = 0, shards = plan.mesh[0];
    int number = 0;
    std::vector<BlobBuilder::MemberSpec> held;
    auto close = [&](Positions heldAt) {
      if (held.empty())
        return;
      elements = (elements + shards - 1) / shards * shards;
      blob.addArg({.name = cat("bucket.", number++, suffix),
                   .kind = kind,
                   .view = addView(elements / shards, plan.type, heldAt),
                   .dims = {{elements, {0}}},
                   .members = held,
                   .heldAt = heldAt});
      elements = 0;
      held.clear();
    };
    for (size_t i = 0; i < members.size(); ++i) {
      const BlobBuilder::MemberSpec &one = members[i];
      for (uint64_t begin = 0, end, all = elementsOf(one.dims); begin < all; begin = end) {
        end = std::min(all, begin + (plan.bucketElements - elements));
        held.push_back(one);
        held.back().range = {begin, end};
        elements += end - begin;
        if (elements == plan.bucketElements)
          close(holdersOf(i));
      }
      if (plan.inStages)
        close(holdersOf(i)); // a bucket is of one stage
    }
    close(kNone);
  };
  add(ArgKind::Param, "");
  if (hasState) {
    add(ArgKind::State, ".m");
    blob.addArg({.name = "step", .kind = ArgKind::Step, .view = addView(1, DType::I64)});
  }
  blob.header().arenaBytes = std::max(arena, lastArena);
  std::vector<unsigned char> bytes = blob.finish();
  return Program(bytes.data(), bytes.size());
}

// The memory of a position whose tensors have the values above; padding is zero.
std::vector<char> memoryOf(const Program &program, uint32_t position) {
  std::vector<char> arena(program.header().arenaBytes, 0);
  for (const Tensor &tensor : program.tensors()) {
    if (!program.holds(tensor, position))
      continue;
    const View &view = program.views()[tensor.view];
    pieceOf(program, tensor, position).forEachRun([&](uint64_t global, uint64_t local, uint64_t count) {
      for (uint64_t i = 0; i < count; ++i)
        storeElement(arena.data() + view.offset, view.dtype, local + i, valueOf(program.str(tensor.name), global + i));
    });
  }
  return arena;
}

class CheckpointTest : public testing::Test {
protected:
  // As the ranks of a program would.
  void save(const Program &program) {
    CheckpointIndex index;
    index.program = "mlp";
    index.plan = "a plan";
    index.ranks = program.numPositions();
    index.position.step = uint64_t(kStep);
    std::vector<Share> shares = shareOut(program);
    index.tensors = indexTensors(program, shares);
    for (uint32_t position = 0; position < program.numPositions(); ++position) {
      std::vector<char> arena = memoryOf(program, position);
      IndexFile file = CheckpointShard(program, shares, position).write(folder_, arena.data(), [](double) {});
      if (file.bytes != 0)
        index.files[shardName(program, position)] = file;
    }
    std::ofstream(folder_ + "/" + kIndexName) << toText(index);
  }
  void clear() {
    for (const auto &entry : fs::directory_iterator(folder_))
      fs::remove(entry);
  }
  // Inverts the lowest bit of a byte of a file.
  void flip(const std::string &name, uint64_t at) {
    std::fstream file(folder_ + "/" + name, std::ios::binary | std::ios::in | std::ios::out);
    file.seekg(int64_t(at));
    char byte = char(file.get() ^ 1);
    file.seekp(int64_t(at));
    file.put(byte);
  }
  LoadSummary load(const Program &program) {
    Checkpoint checkpoint(folder_);
    std::vector<char> arena(program.header().arenaBytes);
    return loadCheckpoint(program, 0, checkpoint, arena.data());
  }

  test::ScratchFolder scratch_;
  const std::string &folder_ = scratch_.path();
};

TEST_F(CheckpointTest, AnyPlanReadsAnyOther) {
  for (const Plan &writer : plans()) {
    clear();
    save(build(writer));
    Checkpoint checkpoint(folder_);
    std::string said = verifyCheckpoint(checkpoint);
    EXPECT_NE(said.find("133 elements of 7 tensors each in one of"), std::string::npos) << said;
    for (const Plan &reader : plans()) {
      SCOPED_TRACE(writer.name + " to " + reader.name);
      Program program = build(reader);
      for (uint32_t position = 0; position < program.numPositions(); ++position) {
        std::vector<char> arena(program.header().arenaBytes, 1), expected = memoryOf(program, position);
        LoadSummary summary = loadCheckpoint(program, position, checkpoint, arena.data());
        EXPECT_TRUE(summary.unused.empty() && summary.newState.empty());
        for (const Arg &arg : program.args()) {
          if (!program.holds(arg, position))
            continue;
          const View &view = program.views()[arg.view];
          EXPECT_EQ(0, std::memcmp(arena.data() + view.offset, expected.data() + view.offset,
                                   view.elements * elementBytes(view.dtype)))
              << program.str(arg.name) << " at position " << position;
        }
      }
    }
  }
}

// Replicas are written once, and the holders share the work.
TEST_F(CheckpointTest, SharesAreEven) {
  Program program = build(plans()[1]);
  std::vector<uint64_t> bytes(program.numPositions(), 0);
  uint64_t all = 0;
  for (const Share &share : shareOut(program))
    for (const PlacedBox &box : share.boxes) {
      bytes[share.writer] += box.elements();
      all += box.elements();
    }
  EXPECT_EQ(all, 133u);
  EXPECT_EQ(bytes, (std::vector<uint64_t>{35, 35, 31, 32}));
}

TEST_F(CheckpointTest, OtherTypes) {
  save(build(plans()[4]));
  Plan wide = plans()[2];
  wide.type = DType::F64;
  Program program = build(wide);
  Checkpoint checkpoint(folder_);
  std::vector<char> arena(program.header().arenaBytes), expected = memoryOf(program, 3);
  loadCheckpoint(program, 3, checkpoint, arena.data());
  const View &view = program.views()[0];
  EXPECT_EQ(0, std::memcmp(arena.data(), expected.data(), view.elements * 8));
}

TEST_F(CheckpointTest, Merged) {
  for (size_t plan : {2, 6, 8}) {
    clear();
    save(build(plans()[plan]));
    Checkpoint checkpoint(folder_);
    mergeCheckpoint(checkpoint, folder_ + "/whole", false);
    SafetensorsFile model(folder_ + "/whole");
    ASSERT_EQ(model.tensors().size(), 3u);
    EXPECT_EQ(model.find("w")->shape, (std::vector<uint64_t>{5, 7})) << "the shape in files";
    for (const auto &[name, tensor] : model.tensors())
      for (uint64_t i = 0; i < (name == "w" ? 35u : name == "v" ? 30u : 1u); ++i)
        EXPECT_EQ(loadElement(tensor.data, DType::F32, i), valueOf(name, i)) << name << " " << i;
    mergeCheckpoint(checkpoint, folder_ + "/whole", true);
    EXPECT_EQ(SafetensorsFile(folder_ + "/whole").tensors().size(), 7u);
    std::string shard = checkpoint.index().files.begin()->first;
    expectBadInput([&] { mergeCheckpoint(checkpoint, folder_ + "/" + shard, true); },
                   "is a file of the checkpoint itself");
  }
}

TEST_F(CheckpointTest, StateOfAnotherOptimizer) {
  save(build(plans()[0], /*hasState=*/false));
  LoadSummary summary = load(build(plans()[1]));
  EXPECT_EQ(summary.newState, (std::vector<std::string>{"w.m", "v.m", "c.m", "step"}));
  // A step that is there belongs to other state, or to a model with dropout: it begins with the state.
  Program program = build(plans()[0]);
  clear();
  save(program);
  CheckpointIndex whole = Checkpoint(folder_).index();
  for (const char *name : {"w", "v", "c"}) {
    whole.tensors.erase(cat(name, ".m"));
    whole.tensors.at(name).states = 0;
  }
  std::ofstream(folder_ + "/" + kIndexName) << toText(whole);
  summary = load(program);
  EXPECT_EQ(summary.newState, (std::vector<std::string>{"w.m", "v.m", "c.m", "step"}));
  clear();
  save(build(plans()[1]));
  summary = load(build(plans()[0], /*hasState=*/false));
  EXPECT_EQ(summary.unused, (std::vector<std::string>{"c.m", "step", "v.m", "w.m"}));
}

// Parameters may have different state under equal suffixes: the index says what is whose. A part of it is refused, with
// the checksums right.
TEST_F(CheckpointTest, PartOfTheState) {
  Plan plan = plans()[0];
  save(build(plan));
  CheckpointIndex index = Checkpoint(folder_).index();
  EXPECT_EQ(index.tensors.at("w.m").of, "w");
  EXPECT_EQ(index.tensors.at("w").states, 1u);
  auto write = [&] { std::ofstream(folder_ + "/" + kIndexName) << toText(index); };
  auto kept = index.tensors.extract("v.m");
  kept.key() = "v.n"; // another optimizer's
  index.tensors.insert(std::move(kept));
  auto other = index.tensors.extract("c.m");
  other.key() = "w.n";
  other.mapped().of = "w";
  index.tensors.insert(std::move(other));
  index.tensors.at("w").states = 2;
  index.tensors.at("c").states = 0;
  write();
  Checkpoint mixed(folder_);
  EXPECT_NO_THROW(verifyCheckpoint(mixed)) << "m of w, n of w and v, none of c";
  EXPECT_NO_THROW(mergeCheckpoint(mixed, folder_ + "/whole", true));
  expectBadInput([&] { load(build(plan)); },
                 ": holds 'w.m' but not 'v.m', expected all of the optimizer's state or none");
  index.tensors.erase("w.m");
  write();
  expectBadInput([&] { Checkpoint partial(folder_); },
                 "index.json: tensor 'w': must have 2 tensors of state (\"states\"), got: 1, 'w.n'");
}

TEST_F(CheckpointTest, FolderOfAnotherStep) {
  save(build(plans()[0]));
  std::string name = folder_ + "/" + stepName(uint64_t(kStep) + 1);
  fs::create_directory(name);
  fs::copy(folder_ + "/" + kIndexName, name + "/" + kIndexName);
  expectBadInput([&] { Checkpoint renamed(name + "/"); },
                 cat("index.json: is of step ", kStep, ", expected ", kStep + 1, " as its folder is named"));
}

TEST_F(CheckpointTest, AnotherModelIsNamed) {
  save(build(plans()[0]));
  expectBadInput([&] { load(build(plans()[0], true, "u")); }, "is of another model: it lacks 'u' [7, 5]");
  Plan wider = plans()[0];
  wider.v = {{3}, {2}, {6}};
  expectBadInput([&] { load(build(wider)); }, "'v' has shape [3, 2, 5], expected [3, 2, 6]");
}

TEST_F(CheckpointTest, DamageIsNamed) {
  save(build(plans()[4]));
  const std::string shard = "rank-1-of-3.safetensors";
  uint64_t size = fs::file_size(folder_ + "/" + shard);
  for (uint64_t at : {uint64_t(0), uint64_t(20), size - 1}) {
    flip(shard, at);
    Checkpoint checkpoint(folder_);
    expectBadInput([&] { verifyCheckpoint(checkpoint); }, shard + ": is damaged: its bytes have CRC-32C ");
    flip(shard, at);
  }
  std::ofstream(folder_ + "/" + shard, std::ios::app) << "x";
  Checkpoint checkpoint(folder_);
  expectBadInput([&] { verifyCheckpoint(checkpoint); },
                 cat(shard, ": has ", size + 1, " bytes, expected ", size));
  fs::remove(folder_ + "/" + shard);
  expectBadInput([&] { verifyCheckpoint(checkpoint); }, shard + ": cannot be opened: No such file");
  expectBadInput([&] { load(build(plans()[0])); }, shard + ": cannot be opened: No such file");
  fs::remove(folder_ + "/" + kIndexName);
  expectBadInput([&] { Checkpoint gone(folder_); }, "index.json: cannot be opened");
}

// Files that have the right sums, but hold something else than the index says.
TEST_F(CheckpointTest, FilesAgainstIndex) {
  save(build(plans()[0]));
  Checkpoint good(folder_);
  std::string shard = good.index().files.begin()->first;
  CheckpointIndex index = good.index();
  index.tensors["v"].boxes[0].tensor = "other";
  std::ofstream(folder_ + "/" + kIndexName) << toText(index);
  expectBadInput([&] { load(build(plans()[1])); }, shard + ": lacks tensor 'other', which ");
  index = good.index();
  index.tensors["v"].type = FileType::F64;
  std::ofstream(folder_ + "/" + kIndexName) << toText(index);
  expectBadInput([&] { load(build(plans()[1])); }, "tensor 'v[0:3, 0:2, 0:5]' is f32[3, 2, 5], which ");
}

} // namespace
} // namespace shoal::rt
