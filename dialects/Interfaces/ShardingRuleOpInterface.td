#ifndef SHOAL_SHARDING_RULE_OP_INTERFACE
#define SHOAL_SHARDING_RULE_OP_INTERFACE

include "mlir/IR/OpBase.td"

def ShardingRuleOpInterface : OpInterface<"ShardingRuleOpInterface"> {
  let cppNamespace = "::shoal";
  let description = [{
    What the propagation and the partitioner know of an op: its dimensions mapped to
    factors (see `shoal/Interfaces/ShardingRule.h`). An op without this interface that
    meets a sharded operand is an error, never a silent gather.
  }];
  let methods = [
    InterfaceMethod<"The factors of the op and how they map to operand and result dimensions.",
      "::shoal::ShardingRule", "getShardingRule", (ins)>,
    InterfaceMethod<[{
        Builds the op on one device's shards: `operands` are local, `ctx` tells the local result
        types, offsets and global sizes. The default clones the op with local result types. Ops
        whose meaning depends on the position (mask, iota) override it. Masks of padding have
        already been applied to operands whose reduction factors are padded.
      }],
      "::llvm::LogicalResult", "localize",
      (ins "::mlir::OpBuilder &":$builder, "::mlir::ValueRange":$operands,
           "const ::shoal::LocalizeContext &":$ctx,
           "::llvm::SmallVectorImpl<::mlir::Value> &":$results), "", [{
        return ::shoal::localizeByCloning($_op.getOperation(), builder, operands, ctx, results);
      }]>,
    InterfaceMethod<[{
        Replaces an op whose `Decompose` factor is sharded by ops that can be sharded there
        (softmax becomes max, subtract, exp, sum, divide). Fails for ops that are not made of others. A kernel may be
        built by lowering the parts.
      }],
      "::llvm::FailureOr<::llvm::SmallVector<::mlir::Value>>", "decompose",
      (ins "::mlir::OpBuilder &":$builder), "", [{ return ::mlir::failure(); }]>,
    InterfaceMethod<[{
        Multiplications and additions of products, which is where the time goes: 2 per point of a contraction. A float, since
        those of a long sequence leave 64 bits.
      }], "double", "getFlops", (ins), "", [{ return ::shoal::flopsOfContraction($_op.getOperation(), $_op.getShardingRule()); }]>,
  ];
}

#endif
