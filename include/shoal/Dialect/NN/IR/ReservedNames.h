// Names that the compiler and the runtime give, so that no value of a model may have them: one table for the verifier
// of the nn dialect and for `nn-verify-model`.
#ifndef SHOAL_DIALECT_NN_IR_RESERVEDNAMES_H
#define SHOAL_DIALECT_NN_IR_RESERVEDNAMES_H

#include "shoal/Dialect/NN/IR/NN.h"

namespace shoal::nn {

/// Of the arguments that have no name in the text.
inline constexpr llvm::StringLiteral kStepName = "step", kValidRowsName = "valid_rows", kSeedName = "seed";

/// The metric of an evaluation that says how many terms its loss is the mean of; `nn-explicit-counts` adds
/// it where the loss is a mean.
inline constexpr llvm::StringLiteral kLossCountMetric = "loss_count";

/// What `nn-optimize` reports.
inline constexpr llvm::StringLiteral kGradNormMetric = "grad_norm", kRateMetric = "lr";

/// The optimizers' state of a parameter has the parameter's name and one of these behind it.
inline constexpr llvm::StringLiteral kVelocitySuffix = ".velocity", kFirstMomentSuffix = ".m",
                                     kSecondMomentSuffix = ".v";
inline constexpr llvm::StringLiteral kStateSuffixes[] = {kVelocitySuffix, kFirstMomentSuffix, kSecondMomentSuffix};

/// Where a name is held against the table.
enum class NameScope {
  Anywhere,
  OutsideEvaluations, // where a pass gives it
  Model               // as a user wrote it: a pass gives it later, where it is asked to
};

/// The rule that a name of the role in `attribute` ("nn.param", "nn.metric") breaks in that scope, to be put behind "...
/// name must"; empty when it is free.
llvm::StringRef brokenReservation(NameScope scope, llvm::StringRef attribute, llvm::StringRef name);

} // namespace shoal::nn

#endif // SHOAL_DIALECT_NN_IR_RESERVEDNAMES_H
