// Batches from memory-mapped .npy files.
#include "core/dataset.h"
#include "core/error.h"
#include "shoal-rt/random.h"
#include "shoal-rt/traffic.h"

#include <algorithm>
#include <cstring>
#include <numeric>

namespace shoal::rt {

std::vector<uint64_t> epochOrder(uint64_t seed, uint64_t epoch, uint64_t rows) {
  std::vector<uint64_t> order(rows);
  std::iota(order.begin(), order.end(), uint64_t(0));
  uint64_t key = streamKey(seed, "shuffle");
  for (uint64_t i = rows; i > 1; --i) { // Fisher and Yates; i values scaled from 64 bits
    std::array<uint32_t, 4> words = philox(key, i, epoch);
    uint64_t draw = uint64_t(words[0]) << 32 | words[1];
    std::swap(order[i - 1], order[uint64_t((unsigned __int128)draw * i >> 64)]);
  }
  return order;
}

Dataset::Dataset(const Program &program, uint32_t position,
                 const std::map<std::string, std::string> &files, const char *flag)
    : program_(program), position_(position), batchRows_(program.header().batchRows) {
  std::vector<std::pair<const Arg *, uint64_t>> rows;
  for (const Arg &arg : program.args()) {
    if (arg.kind != ArgKind::Input)
      continue;
    std::string name(program.str(arg.name));
    auto given = files.find(name);
    if (given == files.end())
      badInput("input '", name, "' ", shapeText(program.batchShape(arg)), " needs ", flag, " ", name,
               "=FILE.npy");
    files_.insert(*given);
    if (!program.holds(arg, position))
      continue;
    std::span<const Dim> dims = program.fileDims(arg);
    uint64_t microbatches = dims.size() < arg.numDims ? program.dims(arg).front().global : 1;
    inputs_.push_back(std::unique_ptr<Input>(
        new Input{&arg, program.views()[arg.view].dtype, boxOf(program, dims, position), microbatches,
                  arg.batchDim < 0 ? 0 : dims.front().global, NpyFile(given->second), {}}));
    Input &input = *inputs_.back();
    checkShape(input);
    if (arg.batchDim >= 0) {
      rows.push_back({&arg, input.file.shape().front()});
      continue;
    }
    input.whole.resize(input.box.localElements() * elementBytes(input.type));
    input.box.forEachRun([&](uint64_t global, uint64_t local, uint64_t count) {
      take(input, global, count, input.whole.data() + local * elementBytes(input.type));
    });
    input.file.checkWhole();
  }
  if (!isHeldInParts(program))
    takeRows(rows);
}

std::vector<const Arg *> Dataset::batchedInputs(const Program &program) {
  std::vector<const Arg *> batched;
  for (const Arg &arg : program.args())
    if (arg.kind == ArgKind::Input && arg.batchDim >= 0)
      batched.push_back(&arg);
  return batched;
}

bool Dataset::isHeldInParts(const Program &program) {
  return std::ranges::any_of(batchedInputs(program), [&](const Arg *arg) { return program.holders(*arg) != kNone; });
}

// Per input its rows, and, so that a maximum is a minimum, the rest of 64 bits; zeros where another position knows.
std::vector<uint64_t> Dataset::rowsHere() const {
  std::vector<uint64_t> rows;
  for (const Arg *arg : batchedInputs(program_)) {
    auto held = std::ranges::find(inputs_, arg, [](const std::unique_ptr<Input> &input) { return input->arg; });
    bool isHere = held != inputs_.end();
    rows.push_back(isHere ? (*held)->file.shape().front() : 0);
    rows.push_back(isHere ? ~rows.back() : 0);
  }
  return rows;
}

void Dataset::agreeOnRows(const std::vector<uint64_t> &most) {
  std::vector<std::pair<const Arg *, uint64_t>> rows;
  for (const Arg *arg : batchedInputs(program_)) {
    uint64_t known = most[2 * rows.size()], least = ~most[2 * rows.size() + 1];
    if (known != least)
      badInput(fileOf(*arg), ": has ", known, " rows on one rank, but ", least, " on another");
    rows.push_back({arg, known});
  }
  takeRows(rows);
}

void Dataset::takeRows(const std::vector<std::pair<const Arg *, uint64_t>> &known) {
  for (const auto &[arg, rows] : known) {
    if (arg != known.front().first && rows != rows_)
      badInput(fileOf(*arg), ": has ", rows, " rows, but ", fileOf(*known.front().first), " has ", rows_);
    rows_ = rows;
  }
  // Inference without a count treats each row by itself, and padded rows are not written.
  bool reduces = program_.header().mode != Mode::Infer;
  bool countsRows = std::ranges::any_of(program_.args(), [](const Arg &arg) { return arg.kind == ArgKind::ValidRows; });
  if (batched() && reduces && !countsRows && rows_ % batchRows_ != 0)
    badInput(fileOf(*known.front().first), ": has ", rows_, " rows, and the program takes only whole ",
             "batches of ", batchRows_);
}

void Dataset::checkShape(const Input &input) const {
  const std::string &path = input.file.path();
  std::string name(program_.str(input.arg->name));
  std::span<const Dim> dims = program_.fileDims(*input.arg);
  int32_t batchDim = input.arg->batchDim < 0 ? -1 : 0;
  const std::vector<uint64_t> &shape = input.file.shape();
  bool same = shape.size() == dims.size();
  for (size_t d = 0; same && d < dims.size(); ++d)
    same = int64_t(d) == batchDim || shape[d] == dims[d].global;
  if (!same)
    badInput(path, ": has shape ", shapeText(shape), ", but input '", name, "' expects ",
             shapeText(dims, batchDim));
  if (!canConvert(input.file.type(), input.type))
    badInput(path, ": holds ", fileTypeName(input.file.type()), ", but input '", name,
             "' expects ", dtypeName(input.type));
}

// Before the step that would use them, and on the rank that does: a file may be larger than memory.
void Dataset::take(const Input &input, uint64_t global, uint64_t count, char *to) const {
  convert(input.file.data() + global * fileElementBytes(input.file.type()), input.file.type(), to,
          input.type, count, input.file.path());
  const Arg &arg = *input.arg;
  if (arg.indices == 0)
    return;
  for (uint64_t i = 0; i < count; ++i) {
    int64_t value = 0;
    if (input.type == DType::I32) {
      int32_t narrow;
      std::memcpy(&narrow, to + i * sizeof narrow, sizeof narrow);
      value = narrow;
    } else {
      std::memcpy(&value, to + i * sizeof value, sizeof value);
    }
    if ((value >= 0 && value < arg.indices) || value == arg.ignored)
      continue;
    uint64_t rowElements = 1;
    const std::vector<uint64_t> &shape = input.file.shape();
    for (size_t d = 1; d < shape.size(); ++d)
      rowElements *= shape[d];
    std::string ignored = arg.ignored == 0 ? "" : cat(", or ", arg.ignored);
    badInput(input.file.path(), ": row ", (global + i) / rowElements, " holds ", value,
             ", but input '", program_.str(arg.name), "' expects 0 to ", arg.indices - 1, ignored);
  }
}

uint64_t Dataset::fill(uint64_t epoch, uint64_t batch, char *arena) {
  uint64_t valid = 0;
  if (batched()) {
    uint64_t begin = batch * batchRows_;
    valid = std::min(batchRows_, rows_ - begin);
    bool isRead = std::ranges::any_of(
        inputs_, [](const std::unique_ptr<Input> &input) { return input->arg->batchDim >= 0; });
    if (isRead && shuffled_ && orderEpoch_ != epoch) {
      order_ = epochOrder(seed_, epoch, rows_);
      orderEpoch_ = epoch;
    }
    fileRows_.resize(isRead ? batchRows_ : 0);
    for (uint64_t i = 0; i < fileRows_.size(); ++i) {
      uint64_t row = begin + std::min(i, valid - 1);
      fileRows_[i] = shuffled_ ? order_[row] : row;
    }
  }
  for (const std::unique_ptr<Input> &input : inputs_) {
    char *to = arena + program_.views()[input->arg->view].offset;
    if (input->arg->batchDim >= 0)
      fillBatched(*input, fileRows_, to);
    else if (!input->whole.empty())
      std::memcpy(to, input->whole.data(), input->whole.size());
  }
  for (const Arg &arg : program_.args())
    if (arg.kind == ArgKind::ValidRows && program_.holds(arg, position_))
      storeElement(arena + program_.views()[arg.view].offset, DType::I64, 0, double(valid));
  return valid;
}

void Dataset::fillBatched(const Input &input, const std::vector<uint64_t> &fileRows,
                          char *to) const {
  Box box = input.box;
  uint64_t elements = box.localElements();
  bool isPadded = false;
  for (size_t d = 1; d < box.dims.size(); ++d)
    isPadded |= box.dims[d].valid != box.dims[d].local;
  if (isPadded)
    std::memset(to, 0, input.microbatches * elements * elementBytes(input.type));
  BoxDim &rows = box.dims.front();
  uint64_t start = rows.start;
  rows.global = rows_;
  rows.valid = 1;
  // One row of the file at a time goes to one row of the buffer. Rows past the batch, of a shard or of the last
  // micro-batch, repeat the last row, too; those past a micro-batch are rows of the next, and count in that.
  for (uint64_t m = 0; m < input.microbatches; ++m)
    for (uint64_t i = 0; i < rows.local; ++i) {
      rows.start = fileRows[std::min(m * input.rows + start + i, uint64_t(fileRows.size()) - 1)];
      rows.localStart = i;
      box.forEachRun([&](uint64_t global, uint64_t local, uint64_t count) {
        take(input, global, count, to + (m * elements + local) * elementBytes(input.type));
      });
    }
  input.file.checkWhole();
}

} // namespace shoal::rt
