// Bytes by class follow from which rows touch what, and nothing else.
#include "core/footprint.h"
#include "core/program.h"
#include "shoal-rt/blob_builder.h"

#include <gtest/gtest.h>

namespace shoal::rt {
namespace {

TEST(Footprint, CountsTheMostThatIsInUseAtOnce) {
  BlobBuilder blob("footprint");
  blob.header().arenaBytes = 4096;
  blob.header().numKernels = 1;
  uint32_t w = blob.addView(0, 16, DType::F32), m = blob.addView(64, 32, DType::F32);
  uint32_t x = blob.addView(192, 5, DType::F32);
  blob.addArg({"w", ArgKind::Param, w, {{16}}, -1, InitKind::Constant});
  blob.addArg({.name = "m", .kind = ArgKind::State, .view = m, .dims = {{32}}, .of = "w"});
  blob.addArg({"x", ArgKind::Input, x, {{5}}});
  auto make = [&](uint64_t at, uint64_t elements, StorageClass storageClass) {
    return blob.addView(at, elements, DType::F32, storageClass);
  };
  // Two gradients share bytes, one after the other; the first is used through a part of it.
  uint32_t first = make(256, 10, StorageClass::Grad), second = make(256, 8, StorageClass::Grad);
  uint32_t part = blob.addView(260, 2, DType::F32, StorageClass::Grad, first);
  uint32_t a = make(512, 100, StorageClass::Activation), b = make(1024, 30, StorageClass::Activation);
  uint32_t scratch = make(2048, 7, StorageClass::Workspace);
  make(3072, 9, StorageClass::Activation); // no row uses it
  uint32_t result = blob.addResult({"y", ResultKind::Output, b, {{30}}});
  auto launch = [&](std::vector<uint32_t> views) {
    blob.addInstr({.op = Opcode::Launch, .operands = std::move(views)});
  };
  launch({x, a});
  launch({a, part, scratch});
  launch({second, b});
  blob.addInstr({.op = Opcode::Probe, .a = result});
  BytesReport bytes;
  {
    std::vector<unsigned char> table = blob.finish();
    Program program(table.data(), table.size());
    bytes = countBytes(program, 0);
  }
  EXPECT_EQ(bytes.params, 64u);
  EXPECT_EQ(bytes.optimizer, 128u);
  EXPECT_EQ(bytes.grads, 40u);            // not 72: they do not live together
  EXPECT_EQ(bytes.activations, 20 + 400u); // the input, and the larger of two that follow each other
  EXPECT_EQ(bytes.workspace, 28u);
  EXPECT_EQ(bytes.peak, 0u);
}

// What another position holds and runs is none of this one's.
TEST(Footprint, CountsWhatThePositionHoldsAndRuns) {
  BlobBuilder blob("stages");
  blob.addAxis("pipe", 2);
  Positions first = blob.addPositions({1, 0}), last = blob.addPositions({0, 1});
  blob.header().arenaBytes = 4096;
  blob.header().numKernels = 1;
  auto arg = [&](const std::string &name, ArgKind kind, uint64_t at, uint64_t elements, Positions heldAt) {
    uint32_t view = blob.addView(at, elements, DType::F32);
    blob.addArg({.name = name, .kind = kind, .view = view, .dims = {{elements}}, .init = InitKind::Constant,
                 .of = kind == ArgKind::State ? "w0" : "", .heldAt = heldAt});
    return view;
  };
  uint32_t w0 = arg("w0", ArgKind::Param, 0, 16, first), m = arg("m", ArgKind::State, 64, 16, first);
  uint32_t w1 = arg("w1", ArgKind::Param, 0, 40, last), x = arg("x", ArgKind::Input, 256, 5, first);
  uint32_t a = blob.addView(512, 100, DType::F32), b = blob.addView(512, 30, DType::F32);
  blob.addInstr({.op = Opcode::Launch, .operands = {x, w0, m, a}, .onlyAt = first});
  blob.addInstr({.op = Opcode::Launch, .operands = {w1, b}, .onlyAt = last});
  // Both run it: the first sends a buffer that the last has not.
  uint32_t sent = blob.addView(1024, 50, DType::F32), got = blob.addView(2048, 50, DType::F32);
  BlobBuilder::PeerSpec send{true, sent, {1, kNone}}, receive{false, got, {kNone, 0}};
  blob.addInstr({.op = Opcode::PointToPoint, .a = kNone, .peers = {send, receive}});
  blob.addInstr({.op = Opcode::Launch, .operands = {got, b}, .onlyAt = last});
  std::vector<unsigned char> table = blob.finish();
  Program program(table.data(), table.size());
  BytesReport here = countBytes(program, 0), there = countBytes(program, 1);
  EXPECT_EQ(here.params, 64u);
  EXPECT_EQ(here.optimizer, 64u);
  EXPECT_EQ(here.activations, 20 + 400u);
  EXPECT_EQ(there.params, 160u);
  EXPECT_EQ(there.optimizer, 0u);
  EXPECT_EQ(there.activations, 120 + 200u);
}

} // namespace
} // namespace shoal::rt
