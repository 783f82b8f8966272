// The proof that a plan kept the meaning: a local program on all ranks against the global program
// on one device. Used by `shoalc --verify-plan` and the pass `dist-verify-plan`.
#ifndef SHOAL_INTERPRETER_VERIFYPLAN_H
#define SHOAL_INTERPRETER_VERIFYPLAN_H

#include "shoal/Interpreter/Interpreter.h"

#include "mlir/IR/BuiltinOps.h"

#include <functional>
#include <optional>
#include <string>

namespace shoal::interp {

struct VerifyPlanOptions {
  std::string function; ///< by default every function of the local module
  uint64_t seed = 1;    ///< of parameters and inputs
  unsigned steps = 3;   ///< both go on from one device's state; odd steps have a short batch
  Precision precision = Precision::F64;
  bool onOneDevice = false; ///< the local program is a global one, too: rewritten, and not partitioned
  double tolerance = 0.0; ///< against a tensor's root mean square; 0: 1e-10 in F64, else 1e-4
  std::function<void(double part)> progress; ///< told how much is done, from 0 to 1, op by op; may be empty
};

/// The first value, in the order of the global program, that differs.
struct PlanDifference {
  mlir::Operation *local = nullptr;  ///< op of the local module (its function for a result)
  mlir::Operation *global = nullptr; ///< op of the global module (its function for a result)
  std::string message;               ///< one line: op, id, element, rank, both values, step
};

struct PlanReport {
  std::optional<PlanDifference> difference; ///< none: the plan keeps the meaning
  int64_t comparedValues = 0;  ///< pieces of global values in the local program, per step
  int64_t comparedResults = 0; ///< results of functions

  /// "12 values and 3 results compared in each of 3 steps".
  std::string countsText(const VerifyPlanOptions &options) const;
};

/// How much there is to do, in floating-point operations of all ranks and of one device, in all steps: about a second
/// for each `kOperationsPerSecond`.
double estimateWork(mlir::ModuleOp global, mlir::ModuleOp local, const VerifyPlanOptions &options);
inline constexpr double kOperationsPerSecond = 5e8;

/// Runs both. Fails (after an error) when a program cannot be run or they do not belong together.
mlir::FailureOr<PlanReport> verifyPlan(mlir::ModuleOp global, mlir::ModuleOp local,
                                       const VerifyPlanOptions &options);

/// The same; a difference is an error at the local op, with a note at the global one.
mlir::LogicalResult checkPlan(mlir::ModuleOp global, mlir::ModuleOp local,
                              const VerifyPlanOptions &options, PlanReport *details = nullptr);

} // namespace shoal::interp

#endif // SHOAL_INTERPRETER_VERIFYPLAN_H
