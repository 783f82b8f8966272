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
    | `pipe.ranks` | argument of an evaluation step, L2 | the ranks along "pipe" on which training keeps it |

    Ops that passes make have the stage of the op for which they make them (`shoal/Interfaces/Origin.h`): gradients and
    updates that of the forward op, also what micro-batches, casts and recomputation add. What several ops share and is
    made of arguments and constants alone (offsets, counts, copies of parameters, the learning rate) has none; nor has
    the norm of all gradients. The sum of cotangents of a value that several stages read is of the stage that makes the
    value; of an argument, or what has no stage, that of its first reader.
  }];
  let useDefaultAttributePrinterParser = 1;
  let hasOperationAttrVerify = 1;
  let hasRegionArgAttrVerify = 1;
  let hasRegionResultAttrVerify = 1;
  let extraClassDeclaration = [{
    static constexpr llvm::StringLiteral kStageAttr = "pipe.stage";
    static constexpr llvm::StringLiteral kRanksAttr = "pipe.ranks";

  private:
    void registerAttributes();

  public:
  }];
}

#endif
