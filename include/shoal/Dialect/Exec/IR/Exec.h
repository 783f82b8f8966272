// The `exec` dialect: the rank program. See dialects/Exec.
#ifndef SHOAL_DIALECT_EXEC_IR_EXEC_H
#define SHOAL_DIALECT_EXEC_IR_EXEC_H

#include "shoal-rt/program.h"
#include "shoal/Dialect/Dist/IR/Dist.h"
#include "shoal/Dialect/NN/IR/Roles.h"
#include "shoal/Interfaces/KnownAttributes.h"
#include "shoal/Interfaces/Lowering.h"

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/RegionKindInterface.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "shoal/Dialect/Exec/ExecDialect.h.inc"
#include "shoal/Dialect/Exec/ExecEnums.h.inc"
#define GET_ATTRDEF_CLASSES
#include "shoal/Dialect/Exec/ExecAttrs.h.inc"
#define GET_TYPEDEF_CLASSES
#include "shoal/Dialect/Exec/ExecTypes.h.inc"

namespace shoal::exec {

/// Whom a row waits for.
enum class Meeting {
  /// Nobody: it works alone.
  None,
  /// The other ends of its messages, each by itself.
  Pairs,
  /// All of its group: it ends when every rank has come.
  Group,
};

/// One buffer that is sent or received, and by mesh position the position of the other end, -1 where
/// that position takes no part.
struct Message {
  bool isSend;
  mlir::Value buffer;
  llvm::SmallVector<int64_t> peers;
};

} // namespace shoal::exec

#include "shoal/Dialect/Exec/ExecInterfaces.h.inc"
#define GET_OP_CLASSES
#include "shoal/Dialect/Exec/ExecOps.h.inc"

namespace shoal::exec {

/// Offsets of buffers and of workspace are multiples of this.
inline constexpr int64_t kBufferAlignment = rt::kAlignment;

/// An element type in the runtime's terms; one that buffers admit.
rt::DType getDType(mlir::Type elementType);

/// The kernels of a module, in the order of the payload's table: a launch's kernel number is
/// the position in this list.
llvm::SmallVector<mlir::func::FuncOp> getKernels(mlir::ModuleOp module);

bool isKernel(mlir::func::FuncOp func);

/// A module's rank program, and the evaluation that may stand beside a training program; without one null.
struct Programs {
  ProgramOp step, evaluation;
};

/// An error when there is none or one too many.
mlir::FailureOr<Programs> findPrograms(mlir::ModuleOp module);

/// Where a kernel runs, and all its buffers lie.
Memory getMemory(mlir::func::FuncOp kernel);

/// Per result of a kernel the operand whose buffer it overwrites, or -1.
llvm::SmallVector<int64_t> getInplace(mlir::func::FuncOp kernel);

/// Bytes of scratch memory the kernel is given as its last buffer; 0: none.
int64_t getWorkspaceBytes(mlir::func::FuncOp kernel);

/// Whether a mesh position runs a row or wait, or holds an argument (`exec.at`).
bool runsAt(mlir::Operation *op, int64_t position);

/// Whether some position does so with both.
bool mayMeet(mlir::Operation *a, mlir::Operation *b);

/// The buffers that a row reads and writes at a mesh position that runs it: of messages those that have their other
/// end.
void getAccesses(RowOpInterface row, int64_t position, llvm::SmallVectorImpl<mlir::Value> &reads,
                 llvm::SmallVectorImpl<mlir::Value> &writes);

/// A range of a memory's arena: [begin, end) in bytes, and the arg or buffer it lies in.
struct ByteRange {
  mlir::Operation *storage = nullptr;
  int64_t begin = 0, end = 0;
  Memory memory = Memory::device;
};

/// The bytes that a program allocates in a memory.
inline int64_t getArenaBytes(ProgramOp program, Memory memory) {
  return memory == Memory::host ? program.getHost() : program.getArena();
}

inline void setArenaBytes(ProgramOp program, Memory memory, int64_t bytes) {
  memory == Memory::host ? program.setHost(bytes) : program.setArena(bytes);
}

/// Where an exec.arg or exec.buffer lies.
inline Memory getMemory(mlir::Value buffer) { return mlir::cast<BufferType>(buffer.getType()).getMemory(); }

/// The range a buffer value names; storage is null for malformed IR (a buffer that no
/// exec op defines).
ByteRange getByteRange(mlir::Value buffer);

/// What an op, or a call of a kernel, asks the bytes of its result to be counted as (`exec.class`, `exec.classes`).
std::optional<StorageClass> getAskedClass(mlir::Value value);
void setClass(mlir::Operation *op, StorageClass storage);

/// The distribution of first values in the terms of the runtime.
Init initOf(const std::optional<nn::InitialValue> &value);

} // namespace shoal::exec

#endif // SHOAL_DIALECT_EXEC_IR_EXEC_H
