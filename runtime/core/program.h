// A rank program after it was read and checked: the records of shoal-rt/program.h as
// spans. Whoever holds a Program may index without looking, since every index, offset
// and operand was checked against what it indexes.
#ifndef SHOAL_RT_CORE_PROGRAM_H
#define SHOAL_RT_CORE_PROGRAM_H

#include "shoal-rt/program.h"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace shoal::rt {

class Program {
public:
  // Copies and checks a blob of at most `available` bytes (what the symbol or buffer
  // holds). Throws Error with exit code 2 that names the record and the rule.
  Program(const unsigned char *blob, uint64_t available);

  const Header &header() const { return *header_; }
  std::string_view name() const { return str(header().name); }
  std::string_view plan() const { return str(header().plan); }
  std::string_view stages() const { return str(header().stages); }
  std::string_view str(Str s) const {
    return {reinterpret_cast<const char *>(strings_.data()) + s.offset, s.size};
  }

  std::span<const Axis> axes() const { return axes_; }
  std::span<const uint32_t> deviceIds() const { return deviceIds_; }
  std::span<const Group> groups() const { return groups_; }
  std::span<const View> views() const { return views_; }
  std::span<const Arg> args() const { return args_; }
  std::span<const Result> results() const { return results_; }
  std::span<const Instr> instrs() const { return instrs_; }
  std::span<const Tensor> tensors() const { return tensors_; }

  std::span<const Dim> dims(const Arg &a) const { return dims_.subspan(a.firstDim, a.numDims); }
  std::span<const Dim> dims(const Result &r) const { return dims_.subspan(r.firstDim, r.numDims); }
  std::span<const Dim> dims(const Tensor &t) const { return dims_.subspan(t.firstDim, t.numDims); }
  // The axes over which its bucket lies sharded, major to minor; none for a tensor of its own.
  std::span<const uint32_t> flatAxes(const Tensor &t) const {
    if (!t.inBucket)
      return {};
    return axesOf((t.kind == TensorKind::Grad ? dims(results_[t.owner]) : dims(args_[t.owner]))[0]);
  }
  // The dimensions of an input in files, which know no micro-batches, and its shape with the rows of a batch.
  std::span<const Dim> fileDims(const Arg &a) const { return dims(a).subspan(a.batchDim > 0 ? 1 : 0); }
  std::vector<uint64_t> batchShape(const Arg &a) const;
  // The shape in files, of the same elements as the logical shape.
  std::vector<uint64_t> fileShape(const Tensor &t) const;
  std::span<const uint32_t> axesOf(const Dim &d) const {
    return indices_.subspan(d.firstAxis, d.numAxes);
  }
  std::span<const uint32_t> axesOf(const Group &g) const {
    return indices_.subspan(g.firstIndex, g.numIndices);
  }
  std::span<const uint32_t> operands(const Instr &i) const {
    return operands_.subspan(i.firstOperand, i.numOperands);
  }
  std::span<const Peer> peers(const Instr &i) const {
    return peers_.subspan(i.firstPeer, i.numPeers);
  }
  std::span<const int64_t> params(const Instr &i) const {
    return params_.subspan(i.firstParam, i.numParams);
  }
  bool isIn(Positions set, uint32_t position) const { return set == kNone || indices_[set + position] != 0; }
  bool runsAt(const Instr &i, uint32_t position) const { return isIn(i.onlyAt, position); }
  // Where an argument, a result or a tensor is.
  Positions holders(const Arg &a) const { return a.heldAt; }
  Positions holders(const Result &r) const { return instrs_[r.probe].onlyAt; }
  Positions holders(const Tensor &t) const {
    return t.kind == TensorKind::Grad ? holders(results_[t.owner]) : holders(args_[t.owner]);
  }
  template <typename Held> bool holds(const Held &held, uint32_t position) const {
    return isIn(holders(held), position);
  }
  // Rows that matter at a position, in order: those that it runs, and those for which one of these waits.
  std::vector<uint32_t> rowsAt(uint32_t position) const;
  // The other end of a send or receive, as a mesh position, or kNone.
  uint32_t peerOf(const Peer &p, uint32_t position) const {
    return indices_[p.firstPosition + position];
  }

  // Mesh arithmetic. A position is row-major over all axes, the last fastest.
  uint32_t numPositions() const { return uint32_t(deviceIds_.size()); }
  uint32_t positionOfRank(uint32_t mpiRank) const;
  uint32_t coordinate(uint32_t position, uint32_t axis) const;
  // Linear position over `axes`, major to minor, and the number of such positions.
  uint32_t linear(uint32_t position, std::span<const uint32_t> axes) const;
  uint32_t extent(std::span<const uint32_t> axes) const;

private:
  template <typename T>
  std::span<const T> section(const char *what, const Section &section, uint64_t size) const;

  std::vector<uint64_t> storage_; // the blob, aligned for its records
  const Header *header_ = nullptr;
  std::span<const char> strings_;
  std::span<const Axis> axes_;
  std::span<const uint32_t> deviceIds_, indices_, operands_;
  std::span<const Group> groups_;
  std::span<const Dim> dims_;
  std::span<const View> views_;
  std::span<const Arg> args_;
  std::span<const Result> results_;
  std::span<const Tensor> tensors_;
  std::span<const Instr> instrs_;
  std::span<const Peer> peers_;
  std::span<const int64_t> params_;

  friend class ProgramChecker;
};

const char *dtypeName(DType type);
const char *opcodeName(Opcode op);
// The same, and for a library call the function: "gemm".
const char *rowKind(const Instr &instr);

// The logical shape of an argument or result.
std::vector<uint64_t> globalShape(std::span<const Dim> dims);

// "[8, 64]"; "[rows, 64]" where dimension `batchDim` is as long as the data.
std::string shapeText(std::span<const uint64_t> shape, int32_t batchDim = -1);
std::string shapeText(std::span<const Dim> dims, int32_t batchDim = -1);

} // namespace shoal::rt

#endif // SHOAL_RT_CORE_PROGRAM_H
