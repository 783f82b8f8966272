// Models as L1 IR, from their config: the families that Hugging Face calls GPT-2 and Llama.
//
// Parameters carry the names of the checkpoints, and as `file` their shapes. Inside, heads are dimensions of
// their own, never merged with the size of a head, so that sharding them needs no gather when they do not
// divide; the residual stream is [batch, sequence, hidden] from the embedding to the logits.
#ifndef SHOAL_MODELS_MODELS_H
#define SHOAL_MODELS_MODELS_H

#include "shoal/Models/Config.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace shoal::models {

/// Rows of a batch and tokens of a row, both at least 1.
struct BatchShape {
  int64_t rows, tokens;
};

/// A module of one function: inputs `input_ids` and `labels`, tensor<BxSxi64>, where label i is the token that
/// should follow token i, or -100 where none counts; the loss, and `logits`. Null with one line in `error`
/// when the batch does not fit the model or a tensor would be too large.
mlir::OwningOpRef<mlir::ModuleOp> buildGpt2(mlir::MLIRContext &context, const Gpt2Config &config,
                                            BatchShape batch, std::string &error);
mlir::OwningOpRef<mlir::ModuleOp> buildLlama(mlir::MLIRContext &context, const LlamaConfig &config,
                                             BatchShape batch, std::string &error);

} // namespace shoal::models

#endif // SHOAL_MODELS_MODELS_H
