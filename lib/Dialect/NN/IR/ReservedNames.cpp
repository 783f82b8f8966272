// The table of the names that the compiler and the runtime give.
#include "shoal/Dialect/NN/IR/ReservedNames.h"

using namespace mlir;

namespace shoal::nn {

namespace {

enum class Bearer { Any, Argument, Metric };

struct ReservedName {
  StringLiteral name;
  Bearer of; // whose names it is kept from; the arguments that have it by their role have no name in the text
  NameScope scope;
  StringLiteral rule;
};

constexpr StringLiteral kEveryLine = "not be step, epoch, loss or wall_s, which every line of metrics has";

constexpr ReservedName kReservedNames[] = {
    {"__metadata__", Bearer::Any, NameScope::Anywhere, "not be the one that safetensors files reserve"},
    {kStepName, Bearer::Argument, NameScope::Anywhere,
     "not be step, by which the count of steps is known (nn.step)"},
    {kValidRowsName, Bearer::Argument, NameScope::Anywhere,
     "not be valid_rows, by which the number of real rows is known (nn.valid_rows)"},
    {kSeedName, Bearer::Argument, NameScope::Anywhere,
     "not be seed, by which the key of random ops is known (nn.seed)"},
    {"step", Bearer::Metric, NameScope::Anywhere, kEveryLine},
    {"epoch", Bearer::Metric, NameScope::Anywhere, kEveryLine},
    {"loss", Bearer::Metric, NameScope::Anywhere, kEveryLine},
    {"wall_s", Bearer::Metric, NameScope::Anywhere, kEveryLine},
    {"eval_loss", Bearer::Metric, NameScope::Anywhere, "not be eval_loss, which lines of evaluations have"},
    {kLossCountMetric, Bearer::Metric, NameScope::OutsideEvaluations,
     "not be loss_count, by which the batches of an evaluation are weighed"},
    {kGradNormMetric, Bearer::Metric, NameScope::Model, "not be grad_norm, which --grad-norm reports"},
    {kRateMetric, Bearer::Metric, NameScope::Model, "not be lr, which --lr-schedule reports"},
};

} // namespace

StringRef brokenReservation(NameScope scope, StringRef attribute, StringRef name) {
  bool isMetric = attribute == NNDialect::kMetricAttr;
  bool isArgument = attribute == NNDialect::kInputAttr || attribute == NNDialect::kParamAttr ||
                    attribute == NNDialect::kBufferAttr || attribute == NNDialect::kStateAttr;
  for (const ReservedName &reserved : kReservedNames)
    if (reserved.name == name && reserved.scope == scope &&
        (reserved.of == Bearer::Any || (reserved.of == Bearer::Metric ? isMetric : isArgument)))
      return reserved.rule;
  return {};
}

} // namespace shoal::nn
