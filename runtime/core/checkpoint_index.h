// index.json of a checkpoint: what was trained and how far, and of each tensor the boxes in which the files beside it
// hold it. Boxes are of logical tensors, never of a plan's buffers, so any plan reads them. docs/checkpoints.md
// describes the fields.
#ifndef SHOAL_RT_CORE_CHECKPOINT_INDEX_H
#define SHOAL_RT_CORE_CHECKPOINT_INDEX_H

#include "core/element.h"

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace shoal::rt {

inline constexpr uint64_t kCheckpointVersion = 2;
inline constexpr const char *kIndexName = "index.json";

const char *tensorKindName(TensorKind kind); // "param", "state", ...

// Where the next step begins. Epochs and batches are counted from 0 here.
struct TrainingPosition {
  uint64_t step = 0;  // steps done
  uint64_t epoch = 0; // of the next batch
  uint64_t batch = 0; // the next one of its epoch
};

struct IndexBox {
  std::string file;   // beside the index
  std::string tensor; // its name in the file
  std::vector<uint64_t> start, shape;
};

struct IndexTensor {
  TensorKind kind = TensorKind::Param;
  FileType type = FileType::F32;
  std::vector<uint64_t> shape;     // logical
  std::vector<uint64_t> fileShape; // of the same elements: what --load and --dump-params have
  std::vector<IndexBox> boxes;     // every element is in exactly one
  std::string of;                  // of state: its parameter
  uint64_t states = 0;             // of a parameter: how many tensors of state are of it, all of them in the index
};

struct IndexFile {
  uint64_t bytes = 0;
  uint32_t crc = 0; // CRC-32C of all of them
};

struct CheckpointIndex {
  std::string program, plan; // who wrote it: names, for people
  uint64_t ranks = 1;
  TrainingPosition position;
  uint64_t seed = 0; // of shuffling, dropout and first values
  bool shuffled = false;
  uint64_t rows = 0, batchRows = 0; // of the data; 0 without batches
  std::map<std::string, IndexTensor> tensors;
  std::map<std::string, IndexFile> files;

  // Names, shapes and types of the model's tensors in 32 bits, for people to compare.
  uint32_t fingerprint() const;
};

std::string toText(const CheckpointIndex &index);

// Reads what toText() wrote; `path` is for errors. Exit 2 on anything else: a byte that changed, another version, boxes
// that overlap or leave elements out, a part of a parameter's state, state that no optimizer keeps so.
CheckpointIndex parseCheckpointIndex(std::string_view text, const std::string &path);

} // namespace shoal::rt

#endif // SHOAL_RT_CORE_CHECKPOINT_INDEX_H
