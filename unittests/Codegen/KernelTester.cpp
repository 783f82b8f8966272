#include "KernelTester.h"

#include "EmulatedGPU.h"

#include "shoal-rt/program.h"
#include "shoal/Codegen/Host.h"
#include "shoal/Codegen/Passes.h"
#include "shoal/Conversion/NNToLinalg.h"
#include "shoal/Dialect/Exec/IR/Exec.h"
#include "shoal/Dialect/NN/IR/NN.h"
#include "shoal/Interpreter/Interpreter.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"

#include "gtest/gtest.h"

#include <cmath>
#include <cstring>
#include <dlfcn.h>
#include <memory>
#include <random>

namespace shoal::test {
namespace {

using namespace mlir;

constexpr size_t kGuard = 64; // bytes around a buffer that must not change
constexpr unsigned char kGuardByte = 0xA5;

/// An aligned buffer between guards, with the elements as the kernel sees them.
class Buffer {
public:
  explicit Buffer(int64_t bytes) : size(bytes) {
    size_t rounded = (size_t(bytes) + 63) / 64 * 64;
    memory.reset(static_cast<unsigned char *>(std::aligned_alloc(64, rounded + 2 * kGuard)),
                 std::free);
    std::memset(memory.get(), kGuardByte, rounded + 2 * kGuard);
  }
  unsigned char *data() const { return memory.get() + kGuard; }
  bool intact() const {
    for (size_t k = 0; k < kGuard; ++k)
      if (memory.get()[k] != kGuardByte || data()[size + k] != kGuardByte)
        return false;
    return true;
  }

private:
  int64_t size;
  std::shared_ptr<unsigned char> memory;
};

int64_t elementBytes(Type type) { return (type.getIntOrFloatBitWidth() + 7) / 8; }

template <typename T> void put(unsigned char *to, T value) {
  std::memcpy(to, &value, sizeof value);
}
template <typename T> T get(const unsigned char *from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

Buffer toBuffer(const interp::Tensor &tensor) {
  Type type = tensor.type.getElementType();
  int64_t width = elementBytes(type);
  Buffer buffer(width * tensor.size());
  for (int64_t k = 0; k < tensor.size(); ++k) {
    unsigned char *to = buffer.data() + k * width;
    if (type.isF32())
      put(to, float(tensor.f[k]));
    else if (type.isF64())
      put(to, tensor.f[k]);
    else if (type.isBF16())
      put(to, uint16_t(llvm::bit_cast<uint32_t>(float(tensor.f[k])) >> 16));
    else if (width == 8)
      put(to, int64_t(tensor.i[k]));
    else if (width == 4)
      put(to, int32_t(tensor.i[k]));
    else
      put(to, uint8_t(tensor.i[k]));
  }
  return buffer;
}

double fromBuffer(const Buffer &buffer, Type type, int64_t k) {
  const unsigned char *from = buffer.data() + k * elementBytes(type);
  if (type.isF32())
    return get<float>(from);
  if (type.isF64())
    return get<double>(from);
  if (type.isBF16())
    return llvm::bit_cast<float>(uint32_t(get<uint16_t>(from)) << 16);
  if (type.isInteger(64))
    return double(get<int64_t>(from));
  return type.isInteger(32) ? double(get<int32_t>(from)) : double(get<uint8_t>(from));
}

interp::Tensor randomTensor(RankedTensorType type, const Inputs &inputs, std::mt19937 &random) {
  interp::Tensor tensor(type);
  std::uniform_real_distribution<double> real(inputs.low, inputs.high);
  std::uniform_int_distribution<int64_t> whole(inputs.intLow, inputs.intHigh);
  for (double &value : tensor.f)
    value = real(random);
  for (int64_t &value : tensor.i)
    value = type.getElementType().isInteger(1) ? (whole(random) & 1) : whole(random);
  // The reference starts from what the kernel can be given.
  interp::normalize(tensor, interp::Precision::Program);
  return tensor;
}

double defaultTolerance(Type type) {
  if (type.isF64())
    return 1e-12;
  return type.isF32() ? 2e-5 : type.isBF16() ? 2e-2 : 0;
}

/// The unit of the subnormal numbers of a type.
double smallestNumber(Type type) {
  auto real = dyn_cast<FloatType>(type);
  return real ? llvm::APFloat::getSmallest(real.getFloatSemantics()).convertToDouble() : 0;
}

} // namespace

KernelTester::KernelTester() : context(MLIRContext::Threading::DISABLED) {
  DialectRegistry registry;
  registry.insert<func::FuncDialect, nn::NNDialect, exec::ExecDialect>();
  registerLoweringModels(registry);
  interp::registerReferenceModels(registry);
  context.appendDialectRegistry(registry);
  context.loadAllAvailableDialects();
}

OwningOpRef<ModuleOp> KernelTester::parse(const std::string &text) {
  return parseSourceString<ModuleOp>(text, &context);
}

void KernelTester::check(const std::string &text, const Inputs &inputs, double tolerance) {
  SCOPED_TRACE(text);
  OwningOpRef<ModuleOp> module = parse(text);
  ASSERT_TRUE(module);
  auto plan = [&](const char *target) {
    codegen::KernelWorkspacePassOptions options;
    options.target = target;
    PassManager passes(&context);
    passes.addPass(codegen::createKernelWorkspacePass(options));
    return passes.run(*module);
  };
  {
    SCOPED_TRACE("on the CPU");
    ASSERT_TRUE(succeeded(plan("cpu")));
    checkCode(*module, codegen::compileKernels(*module), inputs, tolerance,
              [](shoal_rt_kernel kernel, void *const *buffers) { kernel(buffers); });
  }
  if (!emulatesGPU)
    return;
  SCOPED_TRACE("on an emulated GPU");
  ASSERT_TRUE(succeeded(plan("cuda")));
  auto code = compileForEmulatedGPU(*module);
  // One thread, one block of a number that is no power of two, and more blocks than one.
  std::vector<std::pair<unsigned, unsigned>> sizes = {{1, 1}, {1, 7}, {3, 4}};
  if (hasFullBlocks)
    sizes.insert(sizes.end(), {{1, 256}, {2, 255}});
  for (auto [blocks, threads] : sizes) {
    SCOPED_TRACE(std::to_string(blocks) + " blocks of " + std::to_string(threads) + " threads");
    checkCode(*module, code, inputs, tolerance,
              [&](shoal_rt_kernel kernel, void *const *buffers) {
                launchEmulated(kernel, buffers, blocks, threads);
              });
  }
}

void KernelTester::checkCode(ModuleOp module, FailureOr<codegen::KernelObjects> code,
                             const Inputs &inputs, double tolerance, Launch launch) {
  ASSERT_TRUE(succeeded(code));
  const unsigned char blob[] = {1, 2, 3};
  auto payload =
      codegen::linkPayload(*code, code->kernels, blob, [&] { return module->emitError(); });
  ASSERT_TRUE(succeeded(payload));

  int descriptor;
  llvm::SmallString<128> path;
  ASSERT_FALSE(llvm::sys::fs::createTemporaryFile("shoal-kernel", "so", descriptor, path));
  auto cleanup = llvm::make_scope_exit([&] { llvm::sys::fs::remove(path); });
  {
    llvm::raw_fd_ostream out(descriptor, /*shouldClose=*/true);
    out << *payload;
  }
  void *library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  ASSERT_TRUE(library) << dlerror();
  auto close = llvm::make_scope_exit([&] { dlclose(library); });
  auto *program = static_cast<const unsigned char *>(dlsym(library, rt::kProgramSymbol));
  auto *kernels = static_cast<const shoal_rt_kernel *>(dlsym(library, rt::kKernelsSymbol));
  ASSERT_TRUE(program && kernels);
  EXPECT_EQ(std::memcmp(program, blob, sizeof blob), 0);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(program) % 64, 0u);

  for (auto [number, name] : llvm::enumerate(code->kernels)) {
    SCOPED_TRACE(name);
    auto func = module.lookupSymbol<func::FuncOp>(name);
    std::mt19937 random(inputs.seed + unsigned(number));
    interp::TensorList arguments;
    for (Type type : func.getArgumentTypes())
      arguments.push_back(randomTensor(cast<RankedTensorType>(type), inputs, random));
    auto expected = interp::runGlobal(func, arguments);
    ASSERT_TRUE(succeeded(expected));

    std::vector<Buffer> buffers;
    for (const interp::Tensor &argument : arguments)
      buffers.push_back(toBuffer(argument));
    auto inplace = func->getAttrOfType<DenseI64ArrayAttr>(exec::ExecDialect::kInplaceAttr);
    std::vector<size_t> where;
    for (auto [k, type] : llvm::enumerate(func.getResultTypes())) {
      if (inplace && inplace[k] >= 0) {
        where.push_back(size_t(inplace[k]));
        continue;
      }
      where.push_back(buffers.size());
      auto tensor = cast<RankedTensorType>(type);
      buffers.push_back(Buffer(tensor.getNumElements() * elementBytes(tensor.getElementType())));
    }
    if (auto workspace = func->getAttrOfType<IntegerAttr>(exec::ExecDialect::kWorkspaceAttr))
      buffers.push_back(Buffer(workspace.getInt()));
    std::vector<void *> pointers;
    for (Buffer &buffer : buffers)
      pointers.push_back(buffer.data());
    launch(kernels[number], pointers.data());

    for (auto [k, tensor] : llvm::enumerate(*expected)) {
      Type type = tensor.type.getElementType();
      double allowed = tolerance > 0 && isa<FloatType>(type) ? tolerance : defaultTolerance(type);
      int wrong = 0;
      for (int64_t e = 0; e < tensor.size() && wrong < 5; ++e) {
        double want = tensor.at(e), got = fromBuffer(buffers[where[k]], type, e);
        bool equal = std::isnan(want) ? std::isnan(got)
                                      : want == got || std::abs(got - want) <=
                                                           allowed * std::max(largestUnit, std::abs(want)) +
                                                               smallestNumber(type);
        if (!equal)
          ++wrong, ADD_FAILURE() << "result " << k << " element " << e << ": expected " << want
                                 << ", got " << got;
      }
    }
    // Operands that are not overwritten keep their bytes; nothing is written outside.
    for (auto [k, argument] : llvm::enumerate(arguments)) {
      if (llvm::is_contained(where, k))
        continue;
      Buffer before = toBuffer(argument);
      EXPECT_EQ(std::memcmp(before.data(), buffers[k].data(),
                            argument.size() * elementBytes(argument.type.getElementType())),
                0)
          << "operand " << k << " was written";
    }
    for (auto [k, buffer] : llvm::enumerate(buffers))
      EXPECT_TRUE(buffer.intact()) << "buffer " << k << " was overrun";
  }
}

} // namespace shoal::test
