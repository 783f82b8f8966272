// What an op's `localize` builds on the way to its results lies over the axes of a later run as its operands do: the next
// run takes it apart without gathering anything.
#include "shoal/Dialect/Dist/IR/Dist.h"
#include "shoal/Dialect/Dist/Transforms/Passes.h"
#include "shoal/Dialect/NN/IR/NN.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace shoal;

namespace {

/// On shards two ops.
class TwiceOp : public Op<TwiceOp, OpTrait::OneResult, OpTrait::OneOperand, ShardingRuleOpInterface::Trait> {
public:
  using Op::Op;
  static StringRef getOperationName() { return "test.twice"; }
  static ArrayRef<StringRef> getAttributeNames() { return {}; }
  ShardingRule getShardingRule() { return rules::elementwise(*this); }
  LogicalResult localize(OpBuilder &builder, ValueRange operands, const LocalizeContext &,
                         SmallVectorImpl<Value> &results) {
    Value first = builder.create<nn::NegOp>(getLoc(), operands.front());
    results.push_back(builder.create<nn::ReluOp>(getLoc(), first));
    return success();
  }
};

class TestDialect : public Dialect {
public:
  explicit TestDialect(MLIRContext *context) : Dialect("test", context, TypeID::get<TestDialect>()) {
    addOperations<TwiceOp>();
  }
  static StringRef getDialectNamespace() { return "test"; }
};

constexpr StringLiteral kModel = R"(
  dist.mesh @mesh <["data"=2, "tensor"=2]>
  func.func @f(%x: tensor<5x4xf32> {dist.sharding = #dist.sharding<@mesh, [{"data"}, {"tensor"}]>}) -> tensor<5x4xf32> {
    %0 = "test.twice"(%x) {dist.shardings = [#dist.sharding<@mesh, [{"data"}, {"tensor"}]>]} : (tensor<5x4xf32>) -> tensor<5x4xf32>
    return %0 : tensor<5x4xf32>
  })";

TEST(Partition, LocalizeOnTheWay) {
  MLIRContext context;
  context.loadDialect<TestDialect, dist::DistDialect, nn::NNDialect, func::FuncDialect>();
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(kModel, &context);
  ASSERT_TRUE(module);
  auto partition = [&](StringRef axis) {
    PassManager pm(&context);
    std::vector<std::string> axes{axis.str()};
    dist::PartitionPassOptions options;
    options.axes = axes;
    pm.addPass(dist::createPartitionPass(options));
    return pm.run(*module);
  };
  auto find = [&] {
    nn::NegOp found;
    module->walk([&](nn::NegOp op) { found = op; });
    return found;
  };
  ASSERT_TRUE(succeeded(partition("tensor")));
  ASSERT_TRUE(find());
  dist::ShardingAttr sharding = dist::getSharding(find());
  ASSERT_TRUE(sharding);
  EXPECT_EQ(sharding.getDimAxes(0), ArrayRef(StringAttr::get(&context, "data")));
  EXPECT_TRUE(sharding.getDimAxes(1).empty());

  ASSERT_TRUE(succeeded(partition("data")));
  EXPECT_EQ(cast<RankedTensorType>(find().getType()).getShape(), ArrayRef<int64_t>({3, 2}));
  module->walk([](dist::CollectiveOpInterface op) { ADD_FAILURE() << op->getName().getStringRef().str(); });
}

} // namespace
