// Where values live: which share storage, before storage has offsets. Views share that of their
// operand, updates, gathers and transfers that of the argument they overwrite, buckets and their tensors that of the
// group, tensors in a bucket that of the bucket, an all-reduce that of its operand; every other value has its own.
// A tensor that lies in buckets of two groups is where most of it belongs, and its rest is copied.
#ifndef SHOAL_LIB_DIALECT_EXEC_TRANSFORMS_PLACEMENT_H
#define SHOAL_LIB_DIALECT_EXEC_TRANSFORMS_PLACEMENT_H

#include "shoal/Dialect/Exec/IR/Exec.h"
#include "shoal/Dialect/NN/IR/Updates.h"

#include "llvm/ADT/MapVector.h"

namespace shoal::exec {

struct Storage {
  int64_t elements = 0;
  mlir::Type elementType;
  llvm::ArrayRef<int64_t> shape; // of the value that it was made for; flat for groups
  StorageClass storageClass = StorageClass::activation;
  Memory memory = Memory::device;
  int64_t argument = -1; // of the step function, when it is one's storage
};

struct Place {
  unsigned storage = 0;
  int64_t start = 0; // in elements
};

/// An element range that has to be copied, since it could not be computed where it belongs.
struct CopyRange {
  mlir::Operation *op; // that asks for it
  mlir::Value source; // from element `begin` of its place
  int64_t begin = 0, elements = 0;
  Place target;
};

/// The sum that a library call's result is added to where it lies; null for any other value.
AddToOp findSum(mlir::Value term);

class Placement {
public:
  /// `symbols` holds the kernels that the step calls.
  Placement(mlir::func::FuncOp step, const mlir::SymbolTable &symbols)
      : step(step), symbols(symbols), updated(nn::updatedArguments(step)) {}

  /// Places every tensor of the step. Fails, with an error, on groups that contradict themselves.
  llvm::LogicalResult run();

  const llvm::SmallVector<Storage> &getStorages() const { return storages; }
  Place placeOf(mlir::Value value) const { return places.lookup(value); }
  /// Copies that are made behind the op, for dist.pack and dist.unpack; none when values lie where they should.
  llvm::ArrayRef<CopyRange> copiesOf(mlir::Operation *op) const;
  bool isAligned(Place place) const;

  /// A storage that lower needs beside those of the values.
  unsigned addStorage(mlir::RankedTensorType type, StorageClass storageClass, Memory memory = Memory::device);

private:
  /// The last op that reads elements [begin, end) at a position of the group's. In a list, by `begin`, `upTo` is the
  /// largest end so far.
  struct RangeUse {
    int64_t begin, end, last, upTo;
  };
  /// Buckets that share one flat storage: from element `front` of it on, behind what the first tensor has in another
  /// group.
  struct Group {
    llvm::SmallVector<dist::PackOp> packs;
    unsigned storage = 0;
    int64_t front = 0, elements = 0;
    /// The argument whose storage it is, since the bucket is its new value, and who reads the old one.
    mlir::Value argument;
    llvm::SmallVector<RangeUse> uses;
  };
  /// Elements [begin, end) of a value belong into a group, in which its first one would be at `start`.
  struct Claim {
    Group *group;
    int64_t start, begin, end;
    int64_t overwrittenAt = std::numeric_limits<int64_t>::max();
    bool isContiguous = true;
  };
  using Claims = llvm::MapVector<mlir::Value, llvm::SmallVector<Claim, 1>>;
  llvm::LogicalResult collectGroups();
  mlir::Value findUpdated(const Group &group);
  void collectClaims(Group &group, Claims &claims);
  void claim(const Claims &claims);
  void claimArguments();
  llvm::SmallVector<RangeUse> findRangeUses(mlir::Value argument, mlir::Operation *pack);
  static int64_t lastUse(llvm::ArrayRef<RangeUse> uses, int64_t begin, int64_t end);
  bool reads(mlir::Value value, mlir::Value argument) const;
  /// Where a value was begun: through views, and through kernels that write in place.
  mlir::Value baseOf(mlir::Value value);
  /// The operand that a kernel's result is written over; null when it has a buffer of its own.
  mlir::Value overwrittenBy(mlir::Value result);
  bool mayLieInGroup(mlir::Value root, const Claim &claim);
  bool mayBeWrittenAt(mlir::Value root, int64_t start);
  bool mayReduceInPlace(dist::AllReduceOp op);
  void placeUnpack(dist::UnpackOp op);
  mlir::Operation *findCopier(dist::PackOp op, mlir::Value input);
  void placePack(dist::PackOp op);
  void place(mlir::Operation *op);
  void placeNew(mlir::Value value, Memory memory = Memory::device);
  int64_t lastUse(mlir::Value value, mlir::Operation *except, mlir::Operation *at);
  int64_t indexOf(mlir::Operation *op);

  mlir::func::FuncOp step;
  const mlir::SymbolTable &symbols;
  llvm::SmallVector<std::optional<unsigned>> updated; // by result the argument that it replaces
  llvm::SmallVector<Storage> storages;
  llvm::DenseMap<mlir::Value, Place> places;
  llvm::DenseMap<mlir::Value, Place> claimed; // where a value is to be computed
  llvm::DenseMap<unsigned, mlir::Operation *> begun; // per storage the first op that computes what lies there
  llvm::DenseMap<mlir::Operation *, llvm::SmallVector<CopyRange>> copies;
  llvm::DenseMap<mlir::Operation *, int64_t> indices;
  llvm::MapVector<int64_t, Group> groups;
  llvm::DenseSet<mlir::Value> gradients; // and what they are views of
};

} // namespace shoal::exec

#endif // SHOAL_LIB_DIALECT_EXEC_TRANSFORMS_PLACEMENT_H
