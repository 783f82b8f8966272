// An op joins the compiler by four interfaces: every op of `nn` has them.
#include "TestSupport.h"

#include "shoal/Interfaces/Lowering.h"
#include "shoal/Interfaces/Reference.h"

using namespace mlir;

namespace shoal::interp {
namespace {

using InterfacesTest = InterpreterTest;

TEST_F(InterfacesTest, everyOpHasAllFour) {
  int count = 0;
  for (RegisteredOperationName op : context.getRegisteredOperations()) {
    if (op.getDialectNamespace() != "nn")
      continue;
    ++count;
    std::string name = op.getStringRef().str();
    EXPECT_TRUE(op.hasInterface<ShardingRuleOpInterface>()) << name;
    EXPECT_TRUE(op.hasInterface<DifferentiableOpInterface>()) << name;
    EXPECT_TRUE(op.hasInterface<ReferenceOpInterface>()) << name;
    EXPECT_TRUE(op.hasInterface<LoweringOpInterface>()) << name;
  }
  EXPECT_GE(count, 30);
}

} // namespace
} // namespace shoal::interp
