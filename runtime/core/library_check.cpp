// What the library calls of a rank program must keep, function by function: the libraries themselves
// believe what they are given.
#include "core/error.h"
#include "core/program_check.h"

#include <climits>

namespace shoal::rt {

void ProgramChecker::checkLibrary(const std::string &who, const Instr &instr) const {
  switch (LibraryFunction(instr.a)) {
  case LibraryFunction::Gemm:
    return checkGemm(who, instr);
  case LibraryFunction::Attention:
  case LibraryFunction::AttentionGrad:
    return checkAttention(who, instr);
  case LibraryFunction::ScatterAdd:
    return checkScatterAdd(who, instr);
  }
  badInput("program: ", who, " calls unknown library function ", instr.a);
}

void ProgramChecker::checkGemm(const std::string &who, const Instr &instr) const {
  auto operands = p.operands(instr);
  auto params = p.params(instr);
  if (operands.size() != 3 || params.size() != kGemmNumParams)
    badInput("program: ", who, " takes 3 operands and ", uint32_t(kGemmNumParams),
             " parameters, got: ", operands.size(), " and ", params.size());
  for (uint32_t i : {kGemmM, kGemmN, kGemmK, kGemmBatch, kGemmLdA, kGemmLdB, kGemmLdC})
    if (params[i] < 1 || params[i] > INT_MAX)
      badInput("program: parameter ", i, " of ", who, " must be 1 to ", INT_MAX, ", got: ",
               params[i]);
  for (uint32_t i : {kGemmTransA, kGemmTransB, kGemmAccumulate})
    if (params[i] < 0 || params[i] > 1)
      badInput("program: parameter ", i, " of ", who, " must be 0 or 1, got: ", params[i]);

  int64_t m = params[kGemmM], n = params[kGemmN], k = params[kGemmK];
  auto matrix = [&](const char *what, uint32_t view, int64_t rows, int64_t columns, int64_t ld,
                    int64_t stride) {
    if (ld < columns)
      badInput("program: ld of ", what, " of ", who, " must be at least ", columns, ", got: ", ld);
    uint64_t elements = p.views_[view].elements, batches = 0;
    if (stride < 0 ||
        !multiplyFits(uint64_t(stride), uint64_t(params[kGemmBatch] - 1), elements, batches) ||
        batches + uint64_t(rows - 1) * uint64_t(ld) + uint64_t(columns) > elements)
      badInput("program: ", what, " of ", who, " must lie inside its view of ", elements,
               " elements, got: ", params[kGemmBatch], " x ", rows, " x ", columns, ", ld ", ld,
               ", stride ", stride);
  };
  bool ta = params[kGemmTransA], tb = params[kGemmTransB];
  matrix("A", operands[0], ta ? k : m, ta ? m : k, params[kGemmLdA], params[kGemmStrideA]);
  matrix("B", operands[1], tb ? n : k, tb ? k : n, params[kGemmLdB], params[kGemmStrideB]);
  matrix("C", operands[2], m, n, params[kGemmLdC], params[kGemmStrideC]);
  if (params[kGemmBatch] > 1 &&
      params[kGemmStrideC] < (m - 1) * params[kGemmLdC] + n)
    badInput("program: the batches of C of ", who, " must be apart, got: stride ",
             params[kGemmStrideC]);
  if (overlap(operands[0], operands[2]) || overlap(operands[1], operands[2]))
    badInput("program: C of ", who, " must not share storage with A or B");

  DType in = p.views_[operands[0]].dtype, out = p.views_[operands[2]].dtype;
  bool known = (in == DType::F32 && out == DType::F32) || (in == DType::F64 && out == DType::F64) ||
               (in == DType::BF16 && (out == DType::F32 || out == DType::BF16));
  if (!known || p.views_[operands[1]].dtype != in || params[kGemmDTypeIn] != int64_t(in) ||
      params[kGemmDTypeOut] != int64_t(out))
    badInput("program: ", who, " must be f32, f64, or bf16 to f32 or bf16, as its views say, got: ",
             dtypeName(in), " x ", dtypeName(p.views_[operands[1]].dtype), " to ", dtypeName(out),
             ", parameters ", params[kGemmDTypeIn], " and ", params[kGemmDTypeOut]);
}

void ProgramChecker::checkScatterAdd(const std::string &who, const Instr &instr) const {
  auto operands = p.operands(instr);
  auto params = p.params(instr);
  if (params.size() != kScatterAddNumParams)
    badInput("program: ", who, " takes ", uint32_t(kScatterAddNumParams), " parameters, got: ",
             params.size());
  if (params[kScatterAddHasOffset] < 0 || params[kScatterAddHasOffset] > 1)
    badInput("program: parameter ", uint32_t(kScatterAddHasOffset), " of ", who,
             " must be 0 or 1, got: ", params[kScatterAddHasOffset]);
  bool hasOffset = params[kScatterAddHasOffset];
  bool sumsApart = params[kScatterAddDType] == int64_t(DType::BF16);
  size_t wanted = 3 + size_t(hasOffset) + size_t(sumsApart);
  if (operands.size() != wanted)
    badInput("program: ", who, " takes ", wanted, " operands, got: ", operands.size());
  for (uint32_t i : {kScatterAddCount, kScatterAddRows, kScatterAddWidth})
    if (params[i] < 1)
      badInput("program: parameter ", i, " of ", who, " must be at least 1, got: ", params[i]);
  uint32_t output = operands[2 + size_t(hasOffset)];
  auto holds = [&](const char *what, uint32_t operand, uint64_t rows, uint64_t width) {
    uint64_t elements = p.views_[operand].elements, needed = 0;
    if (!multiplyFits(rows, width, elements, needed) || needed != elements)
      badInput("program: ", what, " of ", who, " must be ", rows, " x ", width,
               " elements, got: ", elements);
  };
  uint64_t count = uint64_t(params[kScatterAddCount]), rows = uint64_t(params[kScatterAddRows]),
           width = uint64_t(params[kScatterAddWidth]);
  holds("ids", operands[0], count, 1);
  holds("values", operands[1], count, width);
  holds("output", output, rows, width);
  DType ids = p.views_[operands[0]].dtype, type = p.views_[output].dtype;
  if ((ids != DType::I32 && ids != DType::I64) || !isFloat(type) ||
      p.views_[operands[1]].dtype != type || params[kScatterAddDTypeIds] != int64_t(ids) ||
      params[kScatterAddDType] != int64_t(type))
    badInput("program: ", who, " must add floats of one type by i32 or i64, as its views say, got: ",
             dtypeName(ids), ", ", dtypeName(p.views_[operands[1]].dtype), " to ", dtypeName(type),
             ", parameters ", params[kScatterAddDTypeIds], " and ", params[kScatterAddDType]);
  if (hasOffset &&
      (p.views_[operands[2]].dtype != DType::I64 || p.views_[operands[2]].elements != 1))
    badInput("program: the offset of ", who, " must be a scalar i64, got: ",
             p.views_[operands[2]].elements, " ", dtypeName(p.views_[operands[2]].dtype));
  if (sumsApart) {
    const View &workspace = p.views_[operands.back()];
    if (workspace.dtype != DType::F32 || workspace.elements < rows * width)
      badInput("program: the workspace of ", who, " must hold ", rows * width, " f32, got: ",
               workspace.elements, " ", dtypeName(workspace.dtype));
  }
  for (size_t i = 0; i < operands.size(); ++i)
    for (size_t j = 2 + size_t(hasOffset); j < operands.size(); ++j)
      if (i != j && overlap(operands[i], operands[j]))
        badInput("program: what ", who, " writes must not share storage with its other operands");
}

} // namespace shoal::rt
