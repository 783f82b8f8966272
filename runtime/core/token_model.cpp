// Finds the ids and the logits of a program by their types and shapes.
#include "core/token_model.h"
#include "core/error.h"

namespace shoal::rt {
namespace {

template <typename Value> std::string describe(const Program &program, const Value &value) {
  return cat(program.str(value.name), " ", shapeText(program.dims(value), value.batchDim), " ",
             dtypeName(program.views()[value.view].dtype));
}

void addTo(std::string &list, const std::string &text) { list += (list.empty() ? "" : ", ") + text; }

} // namespace

std::optional<TokenModel> findTokenModel(const Program &program, std::string &why) {
  const Arg *ids = nullptr;
  const Result *logits = nullptr;
  std::string inputs, outputs;
  uint32_t numInputs = 0, numOutputs = 0;
  for (const Arg &arg : program.args())
    if (arg.kind == ArgKind::Input)
      ids = &arg, ++numInputs, addTo(inputs, describe(program, arg));
  for (const Result &result : program.results())
    if (result.kind == ResultKind::Output)
      logits = &result, ++numOutputs, addTo(outputs, describe(program, result));
  auto fits = [&] {
    if (numInputs != 1 || numOutputs != 1 || ids->numDims != 2 || logits->numDims != 3 || ids->batchDim > 0)
      return false;
    DType in = program.views()[ids->view].dtype, out = program.views()[logits->view].dtype;
    return (in == DType::I32 || in == DType::I64) && (out == DType::F32 || out == DType::F64 || out == DType::BF16) &&
           program.dims(*ids)[0].global == program.dims(*logits)[0].global &&
           program.dims(*ids)[1].global == program.dims(*logits)[1].global;
  };
  if (!fits()) {
    why = cat("expected a program with one input of token ids, [B, S], and one output of logits, [B, S, V], got: ",
              inputs.empty() ? "no input" : inputs, " and ", outputs.empty() ? "no output" : outputs);
    return std::nullopt;
  }
  std::span<const Dim> dims = program.dims(*logits);
  TokenModel model{ids, logits, dims[0].global, dims[1].global, dims[2].global};
  if (ids->indices != 0 && model.classes > uint64_t(ids->indices)) {
    why = cat("expected logits of at most as many classes as input '", program.str(ids->name), "' takes ids, ",
              ids->indices, ", got: ", model.classes);
    return std::nullopt;
  }
  return model;
}

} // namespace shoal::rt
