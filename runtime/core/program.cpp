// Reads a blob into spans, and the mesh arithmetic on them. The rules that records must
// keep are in program_check.cpp.
#include "core/program.h"
#include "core/error.h"
#include "core/program_check.h"

#include <cstring>

namespace shoal::rt {

const char *dtypeName(DType type) {
  switch (type) {
  case DType::F32:
    return "f32";
  case DType::F64:
    return "f64";
  case DType::BF16:
    return "bf16";
  case DType::I32:
    return "i32";
  case DType::I64:
    return "i64";
  case DType::I1:
    return "i1";
  }
  return "unknown";
}

const char *opcodeName(Opcode op) {
  static constexpr const char *names[] = {
      "launch",     "library",   "copy",    "axis_index", "all_reduce",         "all_gather",
      "reduce_scatter", "all_to_all", "broadcast", "scatter", "gather", "collective_permute",
      "point_to_point", "barrier", "wait", "probe"};
  return uint32_t(op) < std::size(names) ? names[uint32_t(op)] : "unknown";
}

const char *rowKind(const Instr &instr) {
  if (instr.op == Opcode::Library)
    switch (LibraryFunction(instr.a)) {
    case LibraryFunction::Gemm:
      return "gemm";
    case LibraryFunction::Attention:
      return "attention";
    case LibraryFunction::AttentionGrad:
      return "attention_grad";
    case LibraryFunction::ScatterAdd:
      return "scatter_add";
    }
  return opcodeName(instr.op);
}

std::vector<uint64_t> globalShape(std::span<const Dim> dims) {
  std::vector<uint64_t> shape;
  for (const Dim &dim : dims)
    shape.push_back(dim.global);
  return shape;
}

std::vector<uint64_t> Program::batchShape(const Arg &a) const {
  std::vector<uint64_t> shape = globalShape(fileDims(a));
  if (a.batchDim >= 0)
    shape.front() = header().batchRows;
  return shape;
}

std::vector<uint64_t> Program::fileShape(const Tensor &t) const {
  if (t.numFileSizes == 0)
    return globalShape(dims(t));
  std::span<const int64_t> sizes = params_.subspan(t.firstFileSize, t.numFileSizes);
  return {sizes.begin(), sizes.end()};
}

std::string shapeText(std::span<const uint64_t> shape, int32_t batchDim) {
  std::string text = "[";
  for (size_t d = 0; d < shape.size(); ++d)
    text += (d ? ", " : "") + (int64_t(d) == batchDim ? "rows" : std::to_string(shape[d]));
  return text + "]";
}

std::string shapeText(std::span<const Dim> dims, int32_t batchDim) {
  return shapeText(globalShape(dims), batchDim);
}

template <typename T>
std::span<const T> Program::section(const char *what, const Section &section, uint64_t size) const {
  if (section.offset % alignof(T) != 0)
    badInput("program: section '", what, "' must start at a multiple of ", alignof(T),
             ", got: ", section.offset);
  if (section.offset > size || section.count > (size - section.offset) / sizeof(T))
    badInput("program: section '", what, "' must lie inside ", size, " bytes, got: ",
             section.count, " records of ", sizeof(T), " bytes at ", section.offset);
  const char *base = reinterpret_cast<const char *>(storage_.data());
  return {reinterpret_cast<const T *>(base + section.offset), size_t(section.count)};
}

Program::Program(const unsigned char *blob, uint64_t available) {
  if (available < sizeof(Header))
    badInput("program: a header takes ", sizeof(Header), " bytes, got: ", available);
  Header header;
  std::memcpy(&header, blob, sizeof header);
  if (std::memcmp(header.magic, kProgramMagic, sizeof header.magic) != 0)
    badInput("program: magic must be 'SHOALPRG', got other bytes");
  if (header.version != kProgramVersion)
    badInput("program: version must be ", kProgramVersion, ", got: ", header.version,
             "; compile it again with this release");
  if (header.size < sizeof(Header) || header.size > available)
    badInput("program: size must be between ", sizeof(Header), " and the ", available,
             " bytes present, got: ", header.size);
  storage_.resize((header.size + 7) / 8);
  std::memcpy(storage_.data(), blob, header.size);
  header_ = reinterpret_cast<const Header *>(storage_.data());

  strings_ = section<char>("strings", header.strings, header.size);
  axes_ = section<Axis>("axes", header.axes, header.size);
  deviceIds_ = section<uint32_t>("deviceIds", header.deviceIds, header.size);
  indices_ = section<uint32_t>("indices", header.indices, header.size);
  groups_ = section<Group>("groups", header.groups, header.size);
  dims_ = section<Dim>("dims", header.dims, header.size);
  views_ = section<View>("views", header.views, header.size);
  args_ = section<Arg>("args", header.args, header.size);
  results_ = section<Result>("results", header.results, header.size);
  tensors_ = section<Tensor>("tensors", header.tensors, header.size);
  instrs_ = section<Instr>("instrs", header.instrs, header.size);
  operands_ = section<uint32_t>("operands", header.operands, header.size);
  peers_ = section<Peer>("peers", header.peers, header.size);
  params_ = section<int64_t>("params", header.params, header.size);
  ProgramChecker(*this).check();
}

std::vector<uint32_t> Program::rowsAt(uint32_t position) const {
  std::vector<bool> isAwaited(header().numEvents, false);
  for (const Instr &instr : instrs_)
    if (instr.op == Opcode::Wait && runsAt(instr, position))
      isAwaited[uint32_t(params(instr)[0])] = true;
  std::vector<uint32_t> rows;
  for (uint32_t row = 0; row < instrs_.size(); ++row)
    if (runsAt(instrs_[row], position) || (instrs_[row].event != kNone && isAwaited[instrs_[row].event]))
      rows.push_back(row);
  return rows;
}

uint32_t Program::positionOfRank(uint32_t mpiRank) const {
  for (uint32_t position = 0; position < deviceIds_.size(); ++position)
    if (deviceIds_[position] == mpiRank)
      return position;
  return kNone;
}

uint32_t Program::coordinate(uint32_t position, uint32_t axis) const {
  for (uint32_t a = uint32_t(axes_.size()) - 1; a > axis; --a)
    position /= axes_[a].size;
  return position % axes_[axis].size;
}

uint32_t Program::linear(uint32_t position, std::span<const uint32_t> axes) const {
  uint32_t index = 0;
  for (uint32_t axis : axes)
    index = index * axes_[axis].size + coordinate(position, axis);
  return index;
}

uint32_t Program::extent(std::span<const uint32_t> axes) const {
  uint32_t size = 1;
  for (uint32_t axis : axes)
    size *= axes_[axis].size;
  return size;
}

} // namespace shoal::rt
