// The rows of the input files, batch by batch: which rows a step takes is a function of
// (seed, epoch, batch) alone, so that every plan sees the same batches, and each rank
// reads only its box of them, and opens only files of inputs that it holds.
#ifndef SHOAL_RT_CORE_DATASET_H
#define SHOAL_RT_CORE_DATASET_H

#include "core/box.h"
#include "core/npy.h"

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace shoal::rt {

// Of an epoch, whose last batch may be short. Data without batches have none.
constexpr uint64_t batchesOf(uint64_t rows, uint64_t batchRows) {
  return batchRows == 0 ? 0 : rows / batchRows + (rows % batchRows != 0);
}

// Row order of an epoch (counted from 0): a permutation of 0 to rows - 1.
std::vector<uint64_t> epochOrder(uint64_t seed, uint64_t epoch, uint64_t rows);

class Dataset {
public:
  // `files` maps each input of the program to its file, as `flag` gave them. Opens and checks
  // those that the position holds. Where it does not hold all batches, agreeOnRows() is next.
  Dataset(const Program &program, uint32_t position,
          const std::map<std::string, std::string> &files, const char *flag = "--data");
  // Without files, and so without rows: somebody else writes the inputs.
  explicit Dataset(const Program &program) : program_(program), batchRows_(program.header().batchRows) {}

  // Whether some position has to be told how many rows there are; all are asked, or none.
  static bool isHeldInParts(const Program &program);
  // What the position knows of them, for the element-wise maximum over all positions ...
  std::vector<uint64_t> rowsHere() const;
  // ... which says how many there are. Exit 2 on all positions alike where files disagree.
  void agreeOnRows(const std::vector<uint64_t> &most);

  bool batched() const { return batchRows_ != 0; }
  uint64_t rows() const { return rows_; }
  uint64_t batchRows() const { return batchRows_; }
  uint64_t batchesPerEpoch() const { return batchesOf(rows_, batchRows_); }

  void shuffle(uint64_t seed) { shuffled_ = true, seed_ = seed; }

  // Writes the inputs of batch `batch` of `epoch` (both from 0) and the count of its rows
  // into the arena. Rows past the last real one repeat it. Returns the count.
  uint64_t fill(uint64_t epoch, uint64_t batch, char *arena);

private:
  struct Input {
    const Arg *arg;
    DType type;
    Box box; // of a micro-batch, in the dimensions of the file
    uint64_t microbatches, rows; // of a batch, and of one of them on all ranks
    NpyFile file;
    std::vector<char> whole; // un-batched: converted once
  };

  // In the order of the program.
  static std::vector<const Arg *> batchedInputs(const Program &program);
  const std::string &fileOf(const Arg &arg) const { return files_.at(std::string(program_.str(arg.name))); }
  void takeRows(const std::vector<std::pair<const Arg *, uint64_t>> &known);
  void checkShape(const Input &input) const;
  // Converts a run of the file's elements to `to`, and holds indices against their range.
  void take(const Input &input, uint64_t global, uint64_t count, char *to) const;
  void fillBatched(const Input &input, const std::vector<uint64_t> &fileRows, char *to) const;

  const Program &program_;
  uint32_t position_ = 0;
  std::map<std::string, std::string> files_; // of inputs
  std::vector<std::unique_ptr<Input>> inputs_; // that the position holds
  uint64_t rows_ = 0, batchRows_ = 0;
  bool shuffled_ = false;
  uint64_t seed_ = 0;
  uint64_t orderEpoch_ = UINT64_MAX;
  std::vector<uint64_t> order_;
  std::vector<uint64_t> fileRows_; // of the current batch
};

} // namespace shoal::rt

#endif // SHOAL_RT_CORE_DATASET_H
