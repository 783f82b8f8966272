// Compiles kernels the way shoalc does (LLVM, lld, dlopen), runs them on random tensors, on the CPU
// and on an emulated GPU, and compares every result with the reference interpreter.
#ifndef SHOAL_UNITTESTS_CODEGEN_KERNELTESTER_H
#define SHOAL_UNITTESTS_CODEGEN_KERNELTESTER_H

#include "shoal-rt/program.h"
#include "shoal/Codegen/Host.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"

#include <string>
#include <vector>

namespace shoal::test {

struct Inputs {
  unsigned seed = 1;
  double low = -2, high = 2;        // floats
  int64_t intLow = -3, intHigh = 5; // integers, inclusive
};

class KernelTester {
public:
  KernelTester();

  /// Checks every function marked exec.kernel in `text`; `tolerance` is relative to max(1,
  /// |expected|), 0: the default of each result's type.
  void check(const std::string &text, const Inputs &inputs = {}, double tolerance = 0);

  /// Relative to |expected| alone, however small, but for the last subnormal number: for functions
  /// whose tails keep their digits.
  void checkTails(const std::string &text, const Inputs &inputs, double tolerance) {
    largestUnit = 0;
    check(text, inputs, tolerance);
    largestUnit = 1;
  }

  /// For kernels that are too large for emulated threads.
  void onlyOnCPU() { emulatesGPU = false; }

  /// Emulates blocks of the size that a GPU is given as well: every thread of one is a thread of the
  /// system, so this is for a few kernels.
  void withFullBlocks() { hasFullBlocks = true; }

  mlir::OwningOpRef<mlir::ModuleOp> parse(const std::string &text);
  mlir::MLIRContext &getContext() { return context; }

private:
  using Launch = mlir::function_ref<void(shoal_rt_kernel, void *const *)>;
  void checkCode(mlir::ModuleOp module, mlir::FailureOr<codegen::KernelObjects> code,
                 const Inputs &inputs, double tolerance, Launch launch);

  mlir::MLIRContext context;
  bool emulatesGPU = true, hasFullBlocks = false;
  double largestUnit = 1; // what a tolerance is relative to, where |expected| is smaller
};

} // namespace shoal::test

#endif // SHOAL_UNITTESTS_CODEGEN_KERNELTESTER_H
