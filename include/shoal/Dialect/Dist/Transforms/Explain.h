// Every collective of a local program with its bytes, the annotation behind it, what runs beside it and what would
// remove it: what `dist-explain` and `shoalc --explain` print, as data for other readers.
#ifndef SHOAL_DIALECT_DIST_TRANSFORMS_EXPLAIN_H
#define SHOAL_DIALECT_DIST_TRANSFORMS_EXPLAIN_H

#include "shoal/Dialect/Dist/IR/Dist.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/SetVector.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace shoal::dist {

/// One collective of a local program, and why it is there. What sends nothing (all_slice, barrier, recv) is left out.
struct Explanation {
  mlir::Operation *op;
  std::string kind;            // "all_reduce", as in reports (rt::collectiveKind)
  AxesAttr axes;
  int64_t ranks;               // of one group
  mlir::RankedTensorType type; // what one rank gives
  int64_t count;               // times per step: once per micro-batch inside of one
  uint64_t sentBytes;          // per step, by the rank that sends most, on a ring (shoal-rt/traffic.h), as in reports
  std::string part;            // "the backward pass" of a training step; "" of a program without gradients
  std::string layer;           // "" without one; of a bucket that of its tensors
  bool isBucket = false;       // of gradients, or of new parameters
  int64_t ring = -1;           // equal for all that passes around one ring, else -1
  std::string asker;           // "operand 0 of nn.matmul in h.3"; of a program by hand its own words
  std::string change;          // the layouts, "" by hand
  std::string cause;           // the annotations that brought the axes, "" by hand
  std::string overlap;         // what runs between its start and its first use, or "nothing: ..."
  std::string removal;         // what would remove it
};

/// In program order. `overlap`: as compiled without --no-overlap. `namesLayers` off: texts as in any other layer or
/// bucket, so that those of equal ones are equal.
std::vector<Explanation> explain(mlir::func::FuncOp local, bool overlap = true, bool namesLayers = true);

/// Keys and values, and their gradients, that pass by all ranks of a group in hops. Seconds are estimates
/// (tellAssumptions).
struct Ring {
  std::string op; // "nn.attention", which reads what passes by
  std::vector<std::pair<std::string, mlir::RankedTensorType>> tensors; // what passes by: "keys"
  int64_t hops = 0, messages = 0; // of each tensor as many hops, a message each
  uint64_t bytesPerHop = 0;       // of all tensors
  double blockFlops = 0, blockSeconds = 0; // of the op, on what one hop brings
  double transferSeconds = 0;              // of all messages
  double exposedSeconds = 0;               // how long they are waited for

  /// "3 hops of 4096 bytes".
  std::string tellHops() const;
  /// "keys, values tensor<2x8x2x4xf32>".
  std::string tellTensors() const;
  /// What runs beside a hop.
  std::string tellBlock() const;
  bool isHidden() const;
  /// "yes: a hop takes about 3.2 us".
  std::string tellHidden() const;
};
std::string tellAssumptions();

/// Collectives that differ in their layer and in what runs beside them only, or equal rings.
struct ExplanationEntry {
  llvm::SmallVector<unsigned> members; // in program order
  llvm::SetVector<llvm::StringRef> layers, overlaps;
  std::optional<Ring> ring = std::nullopt; // the first of them
  /// How many collectives, or rings.
  size_t getTimes() const { return ring ? members.size() / ring->messages : members.size(); }
};

/// The collectives of a function as they are told: those of equal layers, and buckets, once.
struct Explanations {
  std::vector<Explanation> named, alike; // with texts that name their layer or bucket, and without
  std::vector<ExplanationEntry> entries; // by the first member

  /// What is said of an entry: as named where all its members are asked for by the same. Of a ring the op that reads
  /// what passes by, and the bytes of all its messages.
  Explanation tell(const ExplanationEntry &entry) const;
  bool hasRings() const;
  /// Where on the axis of a pipeline the members of an entry are: "pipe 0", or how often each is:
  /// "pipe 0, 1: 3 times; pipe 2: once". Empty where all are everywhere.
  std::string tellPlaces(const ExplanationEntry &entry, MeshAttr mesh) const;
};
Explanations explainOnce(mlir::func::FuncOp local, bool overlap = true);
/// "3 ops, until nn.add reads it"; of several the first and the last. Of a ring what it computes per hop.
std::string tellOverlaps(const ExplanationEntry &entry);

/// What each mesh position sends for those that are meant.
llvm::SmallVector<uint64_t> countSent(llvm::ArrayRef<Explanation> all, MeshAttr mesh,
                                      llvm::function_ref<bool(const Explanation &)> isMeant);
/// Where on the axis of a pipeline positions are: "pipe 0, 2". Empty where they are everywhere on it, or it is none.
std::string tellPlaces(const llvm::BitVector &positions, MeshAttr mesh);
/// A rank: of a pipeline by its place on each axis, "pipe 1, tensor 0"; else "mesh position 2".
std::string tellRank(int64_t position, MeshAttr mesh);

/// The explanations of a function as text: equal ones of different layers once, then totals by kind and axes, which
/// are the report's.
void printExplanations(mlir::func::FuncOp local, const Explanations &all, llvm::raw_ostream &os);

} // namespace shoal::dist

#endif // SHOAL_DIALECT_DIST_TRANSFORMS_EXPLAIN_H
