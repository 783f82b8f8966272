// Objects, payloads and executables: choice of processor, determinism, and what is refused.
#include "KernelTester.h"

#include "shoal-rt/payload.h"
#include "shoal/Codegen/Host.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"

#include "gtest/gtest.h"

using namespace mlir;
using namespace shoal;
using shoal::test::KernelTester;

namespace {

constexpr char kKernels[] = R"(
  func.func private @relu(%x: tensor<64x100xf32>) -> tensor<64x100xf32> attributes {exec.kernel} {
    %0 = nn.relu %x : tensor<64x100xf32>
    return %0 : tensor<64x100xf32>
  }
  func.func private @exp(%x: tensor<64x100xf32>) -> tensor<64x100xf32> attributes {exec.kernel} {
    %0 = nn.exp %x : tensor<64x100xf32>
    return %0 : tensor<64x100xf32>
  })";

struct Payload : testing::Test {
  void SetUp() override {
    module = tester.parse(kKernels);
    tester.getContext().getDiagEngine().registerHandler([&](Diagnostic &diagnostic) {
      messages += diagnostic.str() + "\n";
      return success();
    });
  }
  auto emitError() {
    return [this] { return module->emitError(); };
  }

  KernelTester tester;
  OwningOpRef<ModuleOp> module;
  std::string messages;
};

TEST_F(Payload, ProcessorIsChosenByName) {
  FailureOr<std::string> old = codegen::emitKernelsLLVM(*module, {"x86-64", ""});
  FailureOr<std::string> recent = codegen::emitKernelsLLVM(*module, {"x86-64-v3", ""});
  ASSERT_TRUE(succeeded(old) && succeeded(recent));
  // exp is vectorized by libmvec, in registers that the processor has.
  EXPECT_NE(old->find("@_ZGVbN4v_expf"), std::string::npos);
  EXPECT_EQ(old->find("@_ZGVdN8v_expf"), std::string::npos);
  EXPECT_NE(recent->find("@_ZGVdN8v_expf"), std::string::npos);
  EXPECT_TRUE(failed(codegen::compileKernels(*module, {"pdp11", ""})));
  EXPECT_NE(messages.find("--cpu must name a processor"), std::string::npos) << messages;
  EXPECT_NE(messages.find("got: 'pdp11'"), std::string::npos) << messages;
}

TEST_F(Payload, SameProgramSameBytes) {
  const unsigned char blob[] = {1, 2, 3, 4};
  std::string payloads[2];
  for (std::string &payload : payloads) {
    auto code = codegen::compileKernels(*module);
    ASSERT_TRUE(succeeded(code));
    EXPECT_EQ(code->kernels, (std::vector<std::string>{"relu", "exp"}));
    auto linked = codegen::linkPayload(*code, code->kernels, blob, emitError());
    ASSERT_TRUE(succeeded(linked));
    payload = *linked;
  }
  EXPECT_EQ(payloads[0], payloads[1]);
}

TEST_F(Payload, ProgramWithoutKernels) {
  OwningOpRef<ModuleOp> empty = tester.parse("module {}");
  auto code = codegen::compileKernels(*empty);
  ASSERT_TRUE(succeeded(code));
  const unsigned char blob[] = {1};
  EXPECT_TRUE(succeeded(codegen::linkPayload(*code, {}, blob, emitError())));
}

TEST_F(Payload, TableMustNameCompiledKernels) {
  auto code = codegen::compileKernels(*module);
  ASSERT_TRUE(succeeded(code));
  const unsigned char blob[] = {1};
  EXPECT_TRUE(failed(codegen::linkPayload(*code, {"relu", "gone"}, blob, emitError())));
  EXPECT_NE(messages.find("names a kernel that was not compiled: 'gone'"), std::string::npos)
      << messages;
}

TEST_F(Payload, ExecutableIsRuntimePayloadAndFooter) {
  llvm::SmallString<128> directory;
  ASSERT_FALSE(llvm::sys::fs::createUniqueDirectory("shoal-payload", directory));
  std::string runtime = (directory + "/runtime").str(), output = (directory + "/out").str();
  {
    std::error_code error;
    llvm::raw_fd_ostream out(runtime, error);
    out << "RUNTIME" << rt::kRuntimeMarker;
  }
  ASSERT_TRUE(succeeded(codegen::writeExecutable(runtime, "PAYLOAD!", output, emitError())));
  ASSERT_TRUE(succeeded(
      codegen::writeExecutable(runtime, "PAYLOAD", output, emitError()))); // over the old one
  auto file =
      llvm::MemoryBuffer::getFile(output, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  ASSERT_TRUE(bool(file));
  StringRef bytes = (*file)->getBuffer();
  std::string front = std::string("RUNTIME") + rt::kRuntimeMarker + "PAYLOAD";
  ASSERT_EQ(bytes.size(), front.size() + sizeof(rt::PayloadFooter));
  EXPECT_TRUE(bytes.starts_with(front));
  rt::PayloadFooter footer;
  std::memcpy(&footer, bytes.data() + front.size(), sizeof footer);
  EXPECT_TRUE(rt::isPayloadFooter(footer));
  EXPECT_EQ(footer.size, 7u);
  EXPECT_EQ(footer.checksum, rt::payloadChecksum("PAYLOAD", 7));
  EXPECT_TRUE(llvm::sys::fs::can_execute(output));
  // Nothing else is left behind.
  std::error_code error;
  int files = 0;
  for (llvm::sys::fs::directory_iterator it(directory, error), end; it != end && !error;
       it.increment(error))
    ++files;
  EXPECT_EQ(files, 2);

  // Nothing but a runtime gets a payload, and no device is replaced.
  EXPECT_TRUE(failed(codegen::writeExecutable("/bin/true", "PAYLOAD", output, emitError())));
  EXPECT_TRUE(failed(codegen::writeExecutable(runtime, "PAYLOAD", "/dev/null", emitError())));
  EXPECT_TRUE(failed(
      codegen::writeExecutable(directory.str().str() + "/none", "PAYLOAD", output, emitError())));
  EXPECT_TRUE(failed(codegen::writeExecutable(runtime, "PAYLOAD", directory.str().str() + "/no/out",
                                              emitError())));
  EXPECT_NE(messages.find("cannot read the runtime"), std::string::npos) << messages;
  EXPECT_NE(messages.find("cannot write '"), std::string::npos) << messages;
  llvm::sys::fs::remove_directories(directory);
}

} // namespace
