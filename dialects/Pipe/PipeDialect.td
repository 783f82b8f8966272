#ifndef SHOAL_PIPE_DIALECT
#define SHOAL_PIPE_DIALECT

include "mlir/IR/OpBase.td"

def Pipe_Dialect : Dialect {
  let name = "pipe";
  let cppNamespace = "::shoal::pipe";
  let summary = "Stages of a pipeline and their schedules";
  let description = [{
    A pipeline is the one plan whose ranks run different programs. The stage of an op is an attribute at L1; in which
    order ranks compute, send and receive is data: the op `pipe.schedule`.

    | attribute | on | meaning |
    | --- | --- | --- |
    | `pipe.stage` | op of L1 | the stage that computes it, an `i64` from 0 on |
  }];
  let useDefaultAttributePrinterParser = 1;
  let hasOperationAttrVerify = 1;
  let hasRegionArgAttrVerify = 1;
  let hasRegionResultAttrVerify = 1;
  let extraClassDeclaration = [{
    static constexpr llvm::StringLiteral kStageAttr = "pipe.stage";

  private:
    void registerAttributes();

  public:
  }];
}

#endif
