#ifndef SHOAL_EXEC_ENUMS
#define SHOAL_EXEC_ENUMS

// In a file of its own: enums of included files would be generated again.
include "mlir/IR/EnumAttr.td"

class Exec_Enum<string name, string summary, list<I32EnumAttrCase> cases> : I32EnumAttr<name, summary, cases> {
  let cppNamespace = "::shoal::exec";
  let genSpecializedAttr = 0;
}

def Exec_ClassEnum : Exec_Enum<"StorageClass", "what a buffer's bytes are counted as", [
    I32EnumAttrCase<"param", 0>, I32EnumAttrCase<"optimizer", 1>, I32EnumAttrCase<"input", 2>,
    I32EnumAttrCase<"grad", 3>, I32EnumAttrCase<"activation", 4>, I32EnumAttrCase<"workspace", 5>]>;

def Exec_MemoryEnum : Exec_Enum<"Memory", "where bytes lie: in the device's memory, or in that of its host", [
    I32EnumAttrCase<"device", 0>, I32EnumAttrCase<"host", 1>]>;

def Exec_ModeEnum : Exec_Enum<"Mode", "what a program does with its data", [
    I32EnumAttrCase<"train", 0>, I32EnumAttrCase<"infer", 1>, I32EnumAttrCase<"eval", 2>]>;

def Exec_ArgKindEnum : Exec_Enum<"ArgKind", "where an argument's contents come from", [
    I32EnumAttrCase<"input", 0>, I32EnumAttrCase<"param", 1>, I32EnumAttrCase<"state", 2>,
    I32EnumAttrCase<"step", 3>, I32EnumAttrCase<"valid_rows", 4>, I32EnumAttrCase<"buffer", 5>,
    I32EnumAttrCase<"seed", 6>]>;

def Exec_InitEnum : Exec_Enum<"Init", "how an argument starts", [
    I32EnumAttrCase<"none", 0>, I32EnumAttrCase<"constant", 1>, I32EnumAttrCase<"uniform", 2>,
    I32EnumAttrCase<"normal", 3>, I32EnumAttrCase<"kaiming_uniform", 4>, I32EnumAttrCase<"xavier_uniform", 5>]>;

def Exec_ResultKindEnum : Exec_Enum<"ResultKind", "what the host does with a result", [
    I32EnumAttrCase<"loss", 0>, I32EnumAttrCase<"metric", 1>, I32EnumAttrCase<"output", 2>, I32EnumAttrCase<"grad", 3>]>;

#endif
