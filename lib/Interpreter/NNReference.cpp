// Registration of the reference semantics of the `nn` dialect.
#include "NNReference.h"

#include "shoal/Interpreter/Interpreter.h"

using namespace mlir;

void shoal::interp::registerReferenceModels(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, nn::NNDialect *) {
    attachAttentionReferences(*context);
    attachElementwiseReferences(*context);
    attachShapeReferences(*context);
    attachEmbeddingReferences(*context);
    attachReductionReferences(*context);
    attachNormReferences(*context);
    attachLossReferences(*context);
    attachRandomReferences(*context);
    attachUpdateReferences(*context);
  });
}
