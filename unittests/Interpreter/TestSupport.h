// A context with the model's dialects, and functions read from text.
#ifndef SHOAL_UNITTESTS_INTERPRETER_TESTSUPPORT_H
#define SHOAL_UNITTESTS_INTERPRETER_TESTSUPPORT_H

#include "shoal/Conversion/NNToLinalg.h"
#include "shoal/Dialect/Dist/IR/Dist.h"
#include "shoal/Dialect/NN/IR/NN.h"
#include "shoal/Interpreter/Arguments.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

namespace shoal::interp {

class InterpreterTest : public ::testing::Test {
protected:
  InterpreterTest() {
    mlir::DialectRegistry registry;
    registry.insert<nn::NNDialect, dist::DistDialect, mlir::func::FuncDialect>();
    registerReferenceModels(registry);
    registerLoweringModels(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
  }

  mlir::OwningOpRef<mlir::ModuleOp> parse(const std::string &text) {
    auto module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
    EXPECT_TRUE(module) << text;
    return module;
  }

  static mlir::func::FuncOp function(mlir::ModuleOp module) {
    return *module.getOps<mlir::func::FuncOp>().begin();
  }

  mlir::RankedTensorType type(llvm::ArrayRef<int64_t> shape, mlir::Type element) {
    return mlir::RankedTensorType::get(shape, element);
  }

  mlir::MLIRContext context;
};

} // namespace shoal::interp

#endif // SHOAL_UNITTESTS_INTERPRETER_TESTSUPPORT_H
