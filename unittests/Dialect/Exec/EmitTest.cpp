// Rank programs as the runtime reads them: emitted, then checked by the runtime's own loader.
#include "core/program.h"

#include "shoal-rt/report.h"
#include "shoal-rt/traffic.h"
#include "shoal/Codegen/Emit.h"
#include "shoal/Dialect/Exec/Transforms/Passes.h"

#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace shoal;

namespace {

// Every kind of row once, on a 2x2 mesh whose devices are permuted.
const char *const kProgram = R"(
dist.mesh @mesh <["data"=2, "tensor"=2], device_ids=[0, 2, 1, 3]>
func.func private @first(tensor<4xf32>) -> tensor<4xf32> attributes {exec.kernel}
func.func private @second(tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> attributes {exec.kernel, exec.inplace = array<i64: 0>}
exec.program @all train arena = 1024 rows = 4 bytes = <params = 16, grads = 4, optimizer = 3, activations = 2, workspace = 1> {
  %p = exec.arg param "p" at 0 init = uniform(-1.0, 2.0) : !exec.buffer<4xf32>
  %x = exec.arg input "x" at 64 global tensor<4x2xf32> sharding = <@mesh, [{"data"}, {}]> batch = 0 : !exec.buffer<2x2xf32>
  %step = exec.arg step "step" at 128 : !exec.buffer<i64>
  %a = exec.buffer activation at 192 : !exec.buffer<4xf32>
  %b = exec.buffer activation at 256 : !exec.buffer<8xf32>
  %c = exec.buffer activation at 320 : !exec.buffer<4xf32>
  %i = exec.buffer activation at 384 : !exec.buffer<i64>
  %t = exec.launch @first ins(%p : !exec.buffer<4xf32>) outs(%a : !exec.buffer<4xf32>) -> !exec.token
  exec.wait %t stream 1
  %u = exec.all_reduce {"data", "tensor"} sum %a to %a stream 1 {name = "sum", reason = "why"} : !exec.buffer<4xf32>, !exec.buffer<4xf32> -> !exec.token
  exec.wait %u
  exec.launch @second ins(%p, %a : !exec.buffer<4xf32>, !exec.buffer<4xf32>) inplace [0]
  exec.gemm %x, %x into %c m = 2 n = 2 k = 2 lda = 2 ldb = 2 ldc = 2 transpose_b {name = "matmul x"} : !exec.buffer<2x2xf32>, !exec.buffer<2x2xf32>, !exec.buffer<4xf32>
  exec.axis_index {"tensor"} * 3 to %i : !exec.buffer<i64>
  exec.all_gather {"data"} %a to %b : !exec.buffer<4xf32>, !exec.buffer<8xf32>
  exec.reduce_scatter {"data"} sum %b to %a : !exec.buffer<8xf32>, !exec.buffer<4xf32>
  exec.all_to_all {"tensor"} %a to %c : !exec.buffer<4xf32>, !exec.buffer<4xf32>
  exec.broadcast {"tensor"} root = 1 %a to %a : !exec.buffer<4xf32>, !exec.buffer<4xf32>
  exec.gather {"tensor"} root = 1 %a to %b : !exec.buffer<4xf32>, !exec.buffer<8xf32>
  exec.scatter {"tensor"} root = 0 %b to %c : !exec.buffer<8xf32>, !exec.buffer<4xf32>
  exec.permute {"data"} from [0] to [1] %a to %c : !exec.buffer<4xf32>, !exec.buffer<4xf32>
  exec.point_to_point sends(%a : !exec.buffer<4xf32>) to [array<i64: 3, -1, -1, -1>] recvs(%c : !exec.buffer<4xf32>) from [array<i64: -1, -1, -1, 0>]
  exec.barrier {"data"}
  exec.copy %a to %c : !exec.buffer<4xf32>, !exec.buffer<4xf32>
  exec.probe grad "p" %a : !exec.buffer<4xf32>
  exec.probe output "y" %x global tensor<4x2xf32> sharding = <@mesh, [{"data"}, {}]> batch = 0 : !exec.buffer<2x2xf32>
}
)";

struct EmitTest : testing::Test {
  EmitTest() {
    context.loadDialect<func::FuncDialect, dist::DistDialect, exec::ExecDialect>();
    module = parseSourceString<ModuleOp>(kProgram, &context);
  }
  MLIRContext context;
  OwningOpRef<ModuleOp> module;
};

} // namespace

// Tensors in buckets have names, shapes and first values of their own; state and gradients lie in files as their
// parameter.
TEST_F(EmitTest, TensorsInBuckets) {
  context.loadDialect<nn::NNDialect>();
  module = parseSourceString<ModuleOp>(R"(
dist.mesh @mesh <["data"=2, "tensor"=2]>
exec.program @buckets train arena = 192 rows = 0 bytes = <params = 40, grads = 0, optimizer = 0, activations = 0, workspace = 0> {
  %p = exec.arg param "bucket.0" at 0 global tensor<20xf32> sharding = <@mesh, [{"data"}]>
      bucket = <[<#nn.param<"u", init = uniform(-1.0, 2.0), file = [21]>, tensor<3x4xf32> of <0, tensor<3x7xf32>, <@mesh, [{}, {"tensor"}]>>>,
                 <#nn.param<"v", init = ones>, tensor<7xf32>>]> : !exec.buffer<10xf32>
  %m = exec.arg state "bucket.0.m" at 64 bucket = <[<#nn.state<"u.m", of = "u", init = 0.5>, tensor<3x4xf32> of <0, tensor<3x7xf32>, <@mesh, [{}, {"tensor"}]>>>]> : !exec.buffer<12xf32>
  %w = exec.arg param master "w" at 128 init = none(0.0, 0.0) : !exec.buffer<4xf32>
  exec.probe grad "bucket.0" %m bucket = <[<"u", tensor<3x4xf32> of <0, tensor<3x7xf32>, <@mesh, [{}, {"tensor"}]>>>]> : !exec.buffer<12xf32>
})", &context);
  ASSERT_TRUE(module);
  PassManager passes(&context);
  passes.addPass(exec::createVerifyPass());
  ASSERT_TRUE(succeeded(passes.run(*module)));
  FailureOr<codegen::Program> emitted = codegen::emitProgram(*module, "zero 3");
  ASSERT_TRUE(succeeded(emitted));
  rt::Program program(emitted->blob.data(), emitted->blob.size());
  ASSERT_EQ(program.tensors().size(), 5u);
  const rt::Tensor &u = program.tensors()[0], &v = program.tensors()[1], &m = program.tensors()[2],
                   &w = program.tensors()[3], &grad = program.tensors()[4];
  EXPECT_EQ(program.str(u.name), "u");
  EXPECT_EQ(std::tuple(u.init, u.a, u.b), std::tuple(rt::InitKind::Uniform, -1.0, 2.0));
  EXPECT_EQ(rt::shapeText(program.dims(u)), "[3, 7]");
  EXPECT_EQ(program.dims(u)[1].local, 4u);
  EXPECT_EQ(program.axesOf(program.dims(u)[1])[0], 1u);
  EXPECT_EQ(program.flatAxes(u).size(), 1u);
  EXPECT_EQ(std::tuple(program.str(v.name), v.first, v.init, v.a), std::tuple("v", 12u, rt::InitKind::Constant, 1.0));
  EXPECT_EQ(std::tuple(program.str(m.name), m.kind, m.a), std::tuple("u.m", rt::TensorKind::State, 0.5));
  EXPECT_EQ(program.str(m.of), "u");
  EXPECT_EQ(program.str(u.of), "");
  EXPECT_EQ(std::tuple(grad.kind, grad.owner), std::tuple(rt::TensorKind::Grad, 0u));
  for (const rt::Tensor *tensor : {&u, &m, &grad})
    EXPECT_EQ(program.fileShape(*tensor), std::vector<uint64_t>{21});
  EXPECT_EQ(program.fileShape(v), std::vector<uint64_t>{7});
  EXPECT_EQ(w.kind, rt::TensorKind::Param);
  EXPECT_EQ(program.views()[w.view].storageClass, rt::StorageClass::Optimizer);
}

TEST_F(EmitTest, TheRuntimeAcceptsEveryKindOfRow) {
  ASSERT_TRUE(module);
  PassManager passes(&context);
  passes.addPass(exec::createVerifyPass());
  ASSERT_TRUE(succeeded(passes.run(*module)));
  FailureOr<codegen::Program> emitted = codegen::emitProgram(*module, "zero 3", "two stages");
  ASSERT_TRUE(succeeded(emitted));
  EXPECT_EQ(emitted->kernels, (std::vector<std::string>{"first", "second"}));

  rt::Program program(emitted->blob.data(), emitted->blob.size());
  EXPECT_EQ(program.name(), "all");
  EXPECT_EQ(program.plan(), "zero 3");
  EXPECT_EQ(program.stages(), "two stages");
  EXPECT_EQ(program.header().mode, rt::Mode::Train);
  EXPECT_EQ(program.header().arenaBytes, 1024u);
  EXPECT_EQ(program.header().batchRows, 4u);
  EXPECT_EQ(program.header().numStreams, 2u);
  EXPECT_EQ(program.header().numEvents, 2u);
  EXPECT_EQ(std::vector<uint32_t>(program.deviceIds().begin(), program.deviceIds().end()),
            (std::vector<uint32_t>{0, 2, 1, 3}));

  ASSERT_EQ(program.args().size(), 3u);
  EXPECT_EQ(program.tensors()[0].init, rt::InitKind::Uniform);
  EXPECT_EQ(program.tensors()[0].b, 2.0);
  EXPECT_EQ(program.args()[1].batchDim, 0);
  EXPECT_EQ(program.dims(program.args()[1])[0].global, 4u);
  EXPECT_EQ(program.dims(program.args()[1])[0].local, 2u);

  std::vector<rt::Opcode> opcodes;
  for (const rt::Instr &instr : program.instrs())
    opcodes.push_back(instr.op);
  using rt::Opcode;
  EXPECT_EQ(opcodes,
            (std::vector<Opcode>{Opcode::Launch, Opcode::Wait, Opcode::AllReduce, Opcode::Wait,
                                 Opcode::Launch, Opcode::Library, Opcode::AxisIndex, Opcode::AllGather,
                                 Opcode::ReduceScatter, Opcode::AllToAll, Opcode::Broadcast,
                                 Opcode::Gather, Opcode::Scatter, Opcode::Permute,
                                 Opcode::PointToPoint, Opcode::Barrier, Opcode::Copy, Opcode::Probe,
                                 Opcode::Probe}));
  EXPECT_EQ(program.str(program.instrs()[2].name), "sum");
  EXPECT_EQ(program.str(program.instrs()[2].reason), "why");
  EXPECT_EQ(program.instrs()[4].a, 1u);
  // The source sends along "data": position 0 to 2 and 1 to 3.
  const rt::Instr &permute = program.instrs()[13];
  EXPECT_EQ(program.peerOf(program.peers(permute)[0], 1), 3u);
  EXPECT_EQ(program.peerOf(program.peers(permute)[0], 2), rt::kNone);
  EXPECT_EQ(program.peerOf(program.peers(permute)[1], 2), 0u);
}

TEST_F(EmitTest, TheReportCountsWhatEachRankSends) {
  ASSERT_TRUE(module);
  FailureOr<rt::Report> promised = codegen::emitReport(*module, "zero 3");
  ASSERT_TRUE(succeeded(promised));
  rt::ReportJson report = rt::ReportJson::parse(rt::toText(*promised));
  EXPECT_EQ(report["plan"], "zero 3");
  ASSERT_EQ(report["ranks"].size(), 4u);
  // MPI rank 1 is at position 2: data 1, tensor 0.
  rt::ReportJson rank = report["ranks"][1];
  EXPECT_EQ(rank["coords"]["data"], 1);
  EXPECT_EQ(rank["coords"]["tensor"], 0);
  EXPECT_EQ(rank["bytes"]["peak"], 1024);
  auto sent = [&](unsigned number, const std::string &kind) {
    for (const rt::ReportJson &line : report["ranks"][number]["collectives"])
      if (line["kind"] == kind)
        return line["bytes"].get<int64_t>();
    return int64_t(-1);
  };
  EXPECT_EQ(sent(1, "all_reduce"), 2 * 3 * 4);   // 2 (N-1)/N of 16 bytes over 4 ranks
  EXPECT_EQ(sent(1, "all_gather"), 16);          // (N-1)/N of 32 bytes over 2
  EXPECT_EQ(sent(1, "reduce_scatter"), 16);
  EXPECT_EQ(sent(1, "all_to_all"), 8);
  EXPECT_EQ(sent(0, "collective_permute"), 16);  // position 0 sends, position 2 receives
  EXPECT_EQ(sent(1, "collective_permute"), 0);
  EXPECT_EQ(sent(0, "send"), 16);
  EXPECT_EQ(sent(3, "send"), -1);                // it only receives
}
