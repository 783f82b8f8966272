// The rank program as the compiler writes it and the runtime reads it: one
// contiguous, little-endian, pointer-free blob. It is plain data with fixed-size
// records, so that a step of 10,000 rows costs nothing to compile and little to load.
//
// The blob and the kernels live in one shared object (the "payload"), which
// exports two symbols:
//   extern "C" const unsigned char shoal_program[];        the blob, see Header
//   extern "C" const shoal_rt_kernel shoal_kernels[];      Header::kernels entries
// Every Section gives a byte offset from the start of the blob and a count of records.
// A reader must check magic, version, that each section lies inside `size`, and
// that every index, offset and operand lies inside what it indexes.
#ifndef SHOAL_RT_PROGRAM_H
#define SHOAL_RT_PROGRAM_H

#include <cstdint>

// A kernel receives the addresses of its buffers in the order of the row's
// operands: inputs, in-out, outputs, workspace. Addresses are 64-byte aligned, except of
// views inside a larger buffer (a gradient in its bucket), for which the kernel was compiled.
extern "C" typedef void (*shoal_rt_kernel)(void *const *buffers);

namespace shoal::rt {

inline constexpr char kProgramMagic[8] = {'S', 'H', 'O', 'A', 'L', 'P', 'R', 'G'};
inline constexpr uint32_t kProgramVersion = 13;
inline constexpr uint32_t kNone = 0xffffffffu;
inline constexpr uint64_t kAlignment = 64;
inline constexpr const char *kProgramSymbol = "shoal_program";
inline constexpr const char *kKernelsSymbol = "shoal_kernels";
// A second program of Mode::Eval, beside a training program: the same mesh and kernels, and parameters
// at the same places of the arena.
inline constexpr const char *kEvaluationSymbol = "shoal_evaluation";

enum class DType : uint32_t { F32, F64, BF16, I32, I64, I1 };
enum class Reduction : uint32_t { Sum, Max, Min };
enum class Mode : uint32_t { Train, Infer, Eval };

struct Section {
  uint64_t offset; // bytes from the start of the blob
  uint64_t count;  // records
};

// A string of the string section (bytes, not terminated).
struct Str {
  uint32_t offset; // bytes from the start of the string section
  uint32_t size;
};

// A mesh axis. Ranks are row-major over the axes, the last axis fastest; `deviceIds`
// maps that position to an MPI rank (identity unless the mesh permutes devices).
struct Axis {
  Str name;
  uint32_t size;
  uint32_t pad;
};

// A set of mesh axes (indices into `axes` through `indices`), in major-to-minor
// order: one communicator per set and per position on the remaining axes.
struct Group {
  uint32_t firstIndex;
  uint32_t numIndices;
};

// One dimension of an argument or result: its logical size, the size of this
// rank's shard (ceil(size / shards); the last shards may hold padding) and the mesh
// axes that shard it, major to minor.
struct Dim {
  uint64_t global;
  uint64_t local;
  uint32_t firstAxis; // into `indices`
  uint32_t numAxes;
};

// Some of the mesh positions: into `indices`, where each position has 1 if it is one of them, else 0. kNone: all.
using Positions = uint32_t;

// What the bytes of a view are reported as; inputs count as activations.
enum class StorageClass : uint32_t { Param, Optimizer, Input, Grad, Activation, Workspace };

// A typed range of the arena: `offset` bytes from its base, 64-byte aligned unless the
// view is a range of a larger one. `storage` is the view of all the bytes that are
// allocated together with it, itself where nothing larger holds it; storages may share
// bytes when they are in use at different times, or at different positions.
struct View {
  uint64_t offset; // bytes
  uint64_t elements;
  DType dtype;
  StorageClass storageClass;
  uint32_t storage; // into `views`
  uint32_t pad;
};

enum class ArgKind : uint32_t {
  Input,     // read from --data NAME=FILE, sharded rows of the step's batch
  Param,     // initialised from (seed, name, global index), or --load
  State,     // optimizer state, filled with `a`
  Step,      // i64 scalar: 0 before the first step; the program updates it itself
  ValidRows, // i64 scalar: rows of this step's batch that are real
  Buffer,    // kept beside the parameters, filled with `a`, or --load: running statistics
  Seed,      // i64 scalar: the key of the program's random numbers, streamKey(--seed, name)
};

// What files of parameters hold: PyTorch's state_dict.
constexpr bool isModelState(ArgKind kind) {
  return kind == ArgKind::Param || kind == ArgKind::Buffer;
}

// What the storage of an argument counts as.
constexpr StorageClass storageClassOf(ArgKind kind) {
  return isModelState(kind)       ? StorageClass::Param
         : kind == ArgKind::State ? StorageClass::Optimizer
                                  : StorageClass::Input;
}

enum class InitKind : uint32_t {
  None,
  Constant,       // a
  Uniform,        // [a, b)
  Normal,         // mean a, standard deviation b
  KaimingUniform, // uniform in +-sqrt(6 / fan_in), fan_in = first dimension of a matrix
  XavierUniform,  // uniform in +-sqrt(6 / (fan_in + fan_out))
};

// `heldAt`: where its storage is the argument's, and each of its shards is held by one of them. At any other position
// no row that runs touches it, and its bytes may be somebody else's.
struct Arg {
  Str name;
  ArgKind kind;
  uint32_t view;     // into `views`: its storage in the arena
  uint32_t firstDim; // into `dims`
  uint32_t numDims;
  int32_t batchDim; // inputs: the sample dimension, -1 when un-batched; 1: dimension 0 counts micro-batches
  Positions heldAt;
  int64_t indices; // inputs: elements are in [0, indices), or `ignored`; 0: they may be anything
  int64_t ignored; // 0 where none is
};

enum class ResultKind : uint32_t {
  Loss,   // scalar, already global
  Metric, // scalar, already global (grad_norm, ...), reported under its name
  Output, // written by --output NAME=FILE.npy, valid rows only when batched
  Grad,   // a gradient as the update sees it before clipping; --dump-grads writes it
};

// A value the host may look at, at its probe and only there: later rows may write over it. It is held where the probe
// runs, and each of its shards by one of those positions.
struct Result {
  Str name;
  ResultKind kind;
  uint32_t view;
  uint32_t firstDim;
  uint32_t numDims;
  int32_t batchDim;
  uint32_t probe; // the row (Opcode::Probe) at which the host may read it
  uint32_t pad;
};

enum class TensorKind : uint32_t { Param, Buffer, State, Step, Grad };

// What files of parameters hold: PyTorch's state_dict.
constexpr bool isModelState(TensorKind kind) {
  return kind == TensorKind::Param || kind == TensorKind::Buffer;
}

// What files know by a name: of every argument that outlives a step (the seed does not), and of every gradient, either
// itself, or each of the tensors that lie one after another in a 1-D bucket. A bucket is as an argument or result of
// one dimension, which its flat axes shard: a position holds a range of its elements. Those that follow the last tensor
// are padding, zeros. A tensor that several buckets hold has a record in each, alike but for owner, view and range;
// together the ranges are each of its elements once.
struct Tensor {
  Str name;
  Str of; // of state the name of its parameter; else empty
  TensorKind kind;
  uint32_t owner;    // into `args`, of a gradient into `results`
  uint32_t view;     // the owner's
  uint32_t firstDim; // into `dims`: of the tensor; in a bucket the box that it is a part of
  uint32_t numDims;
  uint32_t inBucket; // 0 or 1
  uint64_t first;    // in a bucket: the element of the whole bucket at which the range begins
  uint64_t begin, end; // the elements of the box that are in the bucket; all of them where it is in none
  InitKind init;
  uint32_t pad;
  double a, b;                          // of `init`
  uint32_t firstFileSize, numFileSizes; // into `params`: the shape in files; none: the logical shape
};

// The metric of an evaluation program that says how many terms its loss is the mean of.
inline constexpr const char *kLossCountMetric = "loss_count";

enum class Opcode : uint32_t {
  Launch,     // kernel a; operands = its buffers
  Library,    // library function a; params and operands = its own, see LibraryFunction
  Copy,       // operands = source, destination (equal bytes)
  AxisIndex,  // writes (linear position on group a) * params[0] as i64; operand = destination
  AllReduce,  // group a, reduction b; operand 0 in, operand 1 out (may be the same view)
  AllGather,  // out = N equal chunks in group order; operand 0 in, 1 out
  ReduceScatter, // in = N equal chunks; operand 0 in, 1 out
  AllToAll,   // N equal chunks; operand 0 in, 1 out
  Broadcast,  // params[0] = root position; operand 0 in (root), 1 out
  Scatter,    // params[0] = root position; N chunks at the root; operand 0 in, 1 out
  Gather,     // params[0] = root position; zeros elsewhere; operand 0 in, 1 out
  Permute, // operand 0 in, 1 out; peers = [send of operand 0, receive of operand 1], kNone:
           // none (receives zeros); a = group whose axes reports name, or kNone
  PointToPoint, // a grouped set of sends and receives, see `peers`; a as for Permute. Messages
                // between two positions match in the order in which a stream issues them
  Barrier,    // group a
  Wait,       // the stream waits for event `params[0]`
  Probe,      // the host may read result a here
};

// Row of the step. A row on a stream starts when the rows before it on that
// stream have ended. `event` is set when it has ended; `Wait` makes another stream wait.
// Launch, Library, AxisIndex and Probe run on stream 0. An event is signalled by one row and
// waited for by later rows only. Where a position does not run a row, the row ends in its turn
// without doing anything; a collective is run by whole groups.
// Operands of a collective are apart in memory, except that AllReduce and Broadcast may work
// in place; all sizes fit an int.
struct Instr {
  Opcode op;
  uint32_t stream;       // 0 = compute, 1.. = communication
  uint32_t event;        // kNone, or the event it signals
  uint32_t a, b;         // see Opcode
  uint32_t firstOperand; // into `operands`: indices of `views`
  uint32_t numOperands;
  uint32_t firstPeer; // into `peers`
  uint32_t numPeers;
  uint32_t firstParam; // into `params` (i64)
  uint32_t numParams;
  Str name;   // for traces and errors: "matmul w1", "all_reduce {data} bucket 0"
  Str reason; // collectives: why it exists; else empty
  Str scope;  // what a timeline shows it as a part of (shoal-rt/timeline.h), messages separated by blanks; or empty
  Positions onlyAt; // who runs the row
};

// What a Library row calls. Its operands are inputs, outputs, workspace in this order, its params
// whole numbers, or the bits of a double. A view may start at any multiple of its element size.
enum class LibraryFunction : uint32_t {
  Gemm, // params = GemmParam; operands = A, B, C
  Attention, AttentionGrad, // see shoal-rt/attention.h
  ScatterAdd, // params = ScatterAddParam; operands = ids, values, [offset], output, [workspace]
};

// Gemm: C[b] (m x n) = op(A[b]) (m x k) * op(B[b]) (k x n) (+ C[b] when Accumulate), row-major.
enum GemmParam : uint32_t {
  kGemmM, kGemmN, kGemmK, kGemmBatch, kGemmTransA, kGemmTransB, kGemmLdA, kGemmLdB, kGemmLdC,
  kGemmStrideA, kGemmStrideB, kGemmStrideC, // elements between batches
  kGemmAccumulate, kGemmDTypeIn, kGemmDTypeOut, kGemmNumParams,
};

// ScatterAdd: output (Rows x Width) = per row r the sum of the rows k of values (Count x Width) with
// ids[k] - offset == r, in their order; bf16 is summed in a workspace of as many f32.
enum ScatterAddParam : uint32_t {
  kScatterAddCount, kScatterAddRows, kScatterAddWidth, kScatterAddHasOffset, kScatterAddDTypeIds,
  kScatterAddDType, kScatterAddNumParams,
};

// One send or receive of a PointToPoint row: `view`, and per mesh position the
// peer's mesh position (kNone: this position takes no part).
struct Peer {
  uint32_t isSend;
  uint32_t view;
  uint32_t firstPosition; // into `indices`, one entry per mesh position
  uint32_t pad;
};

struct Header {
  char magic[8];
  uint32_t version;
  Mode mode;
  uint64_t size; // of the blob
  Str name;
  Str plan; // in words, for people: "optimizer adamw, lr 0.001, dtype bf16, zero 3"
  Str stages; // what costs of its pipeline's stages are costs of; empty without stages
  uint64_t arenaBytes;
  uint64_t batchRows; // rows of a full global batch, 0 without batched inputs
  uint32_t numStreams, numEvents, numKernels, pad;
  Section strings;   // char
  Section axes;      // Axis
  Section deviceIds; // uint32_t, product of the axis sizes
  Section indices;   // uint32_t
  Section groups;    // Group
  Section dims;      // Dim
  Section views;     // View
  Section args;      // Arg
  Section results;   // Result
  Section tensors;   // Tensor
  Section instrs;    // Instr
  Section operands;  // uint32_t
  Section peers;     // Peer
  Section params;    // int64_t
};

} // namespace shoal::rt

#endif // SHOAL_RT_PROGRAM_H
