#ifndef SHOAL_EXEC_ATTRS
#define SHOAL_EXEC_ATTRS

include "ExecDialect.td"
include "ExecEnums.td"
include "mlir/IR/AttrTypeBase.td"

def Exec_ClassAttr : EnumAttr<Exec_Dialect, Exec_ClassEnum, "class">;
def Exec_MemoryAttr : EnumAttr<Exec_Dialect, Exec_MemoryEnum, "memory">;
def Exec_ModeAttr : EnumAttr<Exec_Dialect, Exec_ModeEnum, "mode">;
def Exec_ArgKindAttr : EnumAttr<Exec_Dialect, Exec_ArgKindEnum, "arg_kind">;
def Exec_InitAttr : EnumAttr<Exec_Dialect, Exec_InitEnum, "init">;
def Exec_ResultKindAttr : EnumAttr<Exec_Dialect, Exec_ResultKindEnum, "result_kind">;

def Exec_BytesAttr : AttrDef<Exec_Dialect, "Bytes"> {
  let mnemonic = "bytes";
  let summary = "the most bytes of each class that are in use at once";
  let description = "`<params = 16384, grads = 16384, optimizer = 0, activations = 8192, workspace = 0>`; inputs count as activations.";
  let parameters = (ins "int64_t":$params, "int64_t":$grads, "int64_t":$optimizer, "int64_t":$activations, "int64_t":$workspace);
  let assemblyFormat = "`<` struct(params) `>`";
}

def Exec_BufferType : TypeDef<Exec_Dialect, "Buffer"> {
  let mnemonic = "buffer";
  let summary = "a contiguous row-major range of an arena";
  let description = [{
    `!exec.buffer<32x64xf32>` in the device's memory, `!exec.buffer<32x64xf32, host>` in that of its host (as the memory space of a memref).
    Booleans take a byte.
  }];
  let parameters = (ins ArrayRefParameter<"int64_t">:$shape, "::mlir::Type":$elementType, "::shoal::exec::Memory":$memory);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// Whether buffers may hold this type; an error when not.
    static ::llvm::LogicalResult verifyElement(::llvm::function_ref<::mlir::InFlightDiagnostic()> emitError, ::mlir::Type elementType);
    /// The buffer of a tensor of static shape.
    static BufferType get(::mlir::RankedTensorType tensor, Memory memory = Memory::device);
    int64_t getNumElements() const;
    int64_t getElementBytes() const;
    int64_t getNumBytes() const { return getNumElements() * getElementBytes(); }
  }];
}

def Exec_TokenType : TypeDef<Exec_Dialect, "Token"> {
  let mnemonic = "token";
  let summary = "signalled when a row has ended";
}

#endif
