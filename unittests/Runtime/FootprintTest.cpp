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
    bytes = countBytes(program);
  }
  EXPECT_EQ(bytes.params, 64u);
  EXPECT_EQ(bytes.optimizer, 128u);
  EXPECT_EQ(bytes.grads, 40u);            // not 72: they do not live together
  EXPECT_EQ(bytes.activations, 20 + 400u); // the input, and the larger of two that follow each other
  EXPECT_EQ(bytes.workspace, 28u);
  EXPECT_EQ(bytes.peak, 0u);
}

} // namespace
} // namespace shoal::rt
