// What the rows of attention and of its gradient must keep: sizes that their views have, a
// workspace that is large enough, and outputs that share no bytes with anything else.
#include "core/error.h"
#include "core/program_check.h"
#include "shoal-rt/attention.h"

#include <climits>
#include <cmath>

namespace shoal::rt {

void ProgramChecker::checkAttention(const std::string &who, const Instr &instr) const {
  auto operands = p.operands(instr);
  auto params = p.params(instr);
  if (params.size() != kAttentionNumParams)
    badInput("program: ", who, " takes ", uint32_t(kAttentionNumParams),
             " parameters, got: ", params.size());
  for (uint32_t i = kAttentionBatch; i <= kAttentionHeadSize; ++i)
    if (params[i] < 1 || params[i] > INT_MAX)
      badInput("program: parameter ", i, " of ", who, " must be 1 to ", INT_MAX,
               ", got: ", params[i]);
  for (uint32_t i : {kAttentionCausal, kAttentionSegments, kAttentionPositions, kAttentionWideO, kAttentionWideGrads})
    if (params[i] < 0 || params[i] > 1)
      badInput("program: parameter ", i, " of ", who, " must be 0 or 1, got: ", params[i]);
  if (params[kAttentionWindow] < 0 || params[kAttentionWindow] > INT_MAX)
    badInput("program: the window of ", who, " must be 0 to ", INT_MAX,
             ", got: ", params[kAttentionWindow]);
  AttentionShape shape = attentionShape(params.data());
  if ((shape.causal || shape.window != 0) && !shape.positions && shape.queries != shape.keys)
    badInput("program: the mask of ", who, " needs as many queries as keys, or positions, got: ", shape.queries,
             " and ", shape.keys);
  if (!std::isfinite(shape.scale))
    badInput("program: the scale of ", who, " must be finite, got: ", shape.scale);
  if (shape.dtype != DType::F32 && shape.dtype != DType::F64 && shape.dtype != DType::BF16)
    badInput("program: ", who, " must be f32, f64 or bf16, got: ", params[kAttentionDType]);

  bool backward = LibraryFunction(instr.a) == LibraryFunction::AttentionGrad;
  size_t segments = backward ? 6 : 3, positions = segments + (shape.segments ? 2 : 0);
  size_t inputs = positions + (shape.positions ? 2 : 0), outputs = backward ? 3 : 2;
  if (operands.size() != inputs + outputs + 1)
    badInput("program: ", who, " takes ", inputs + outputs + 1,
             " operands, got: ", operands.size());
  auto expect = [&](size_t operand, DType dtype, std::initializer_list<int64_t> sizes) {
    const View &view = p.views_[operands[operand]];
    uint64_t elements = 1;
    bool fits = true;
    for (int64_t size : sizes)
      fits = fits && multiplyFits(elements, uint64_t(size), view.elements, elements);
    if (!fits || elements != view.elements || view.dtype != dtype)
      badInput("program: operand ", operand, " of ", who, " has ", view.elements, " ",
               dtypeName(view.dtype), ", which is not what its parameters say");
  };
  auto perQuery = [&](size_t operand) {
    expect(operand, attentionComputeType(shape), {shape.batch, shape.queries, shape.kvHeads, shape.groups});
  };
  auto ofQueries = [&](size_t operand, DType dtype) {
    expect(operand, dtype, {shape.batch, shape.queries, shape.kvHeads, shape.groups, shape.headSize});
  };
  auto ofKeys = [&](size_t operand, DType dtype) {
    expect(operand, dtype, {shape.batch, shape.keys, shape.kvHeads, shape.headSize});
  };
  DType o = attentionOType(shape), grads = attentionGradType(shape);
  size_t first = backward ? 1 : 0; // q, behind the cotangent
  ofQueries(first, shape.dtype);
  ofKeys(first + 1, shape.dtype);
  ofKeys(first + 2, shape.dtype);
  if (backward) {
    ofQueries(0, o);
    ofQueries(4, o);
    perQuery(5);
    ofQueries(inputs, grads);
    ofKeys(inputs + 1, grads);
    ofKeys(inputs + 2, grads);
  } else {
    ofQueries(inputs, o);
    perQuery(inputs + 1);
  }
  if (shape.segments) {
    expect(segments, DType::I64, {shape.batch, shape.queries});
    expect(segments + 1, DType::I64, {shape.batch, shape.keys});
  }
  if (shape.positions) {
    expect(positions, DType::I64, {shape.queries});
    expect(positions + 1, DType::I64, {shape.keys});
  }
  // The libraries count the elements from row to row in an int.
  uint64_t row;
  if (!multiplyFits(uint64_t(shape.kvHeads * shape.groups), uint64_t(shape.headSize), INT_MAX, row))
    badInput("program: a row of ", who, " must have at most ", INT_MAX,
             " elements, got: ", shape.kvHeads, " x ", shape.groups, " x ", shape.headSize);
  const View &workspace = p.views_[operands.back()];
  uint64_t needed = attentionWorkspace(shape, backward) * elementBytes(attentionComputeType(shape));
  if (workspace.elements * elementBytes(workspace.dtype) < needed)
    badInput("program: the workspace of ", who, " must have ", needed,
             " bytes, got: ", workspace.elements * elementBytes(workspace.dtype));
  for (size_t written = inputs; written < operands.size(); ++written)
    for (size_t other = 0; other < operands.size(); ++other)
      if (other != written && overlap(operands[written], operands[other]))
        badInput("program: operand ", written, " of ", who, " must not share storage with operand ",
                 other);
}

} // namespace shoal::rt
