// The evaluation step is compiled from the same model as the training step, by the same pipelines, and
// joins it before kernels are outlined.
#include "shoal/Pipelines/Pipelines.h"

#include "shoal/Dialect/Dist/IR/Dist.h"
#include "shoal/Dialect/Dist/Transforms/SplitAxis.h"
#include "shoal/Dialect/NN/IR/NN.h"
#include "shoal/Dialect/NN/IR/Roles.h"
#include "shoal/Dialect/Pipe/IR/Pipe.h"
#include "shoal/Support/SignatureEdit.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;

namespace shoal {

LogicalResult adoptShardings(ModuleOp evaluation, ModuleOp training) {
  // Tensor parallelism may have split an axis: what annotations by hand name is split here, too.
  if (failed(dist::splitAxesAs(evaluation, dist::lookupMesh(training).getMesh())))
    return failure();
  for (auto func : evaluation.getOps<func::FuncOp>()) {
    auto source = training.lookupSymbol<func::FuncOp>(func.getSymName());
    if (!source)
      continue;
    llvm::StringMap<unsigned> arguments;
    for (unsigned i = 0; i < source.getNumArguments(); ++i)
      arguments[nn::getArgName(source, i)] = i;
    SignatureEdit signature(func);
    for (unsigned i = 0; i < func.getNumArguments(); ++i) {
      auto from = arguments.find(nn::getArgName(func, i));
      if (from == arguments.end() || !nn::isUpdatable(nn::getArgRole(func, i)))
        continue;
      // With what brought the axes, so that evaluation's collectives name the same.
      for (StringRef name :
           {dist::DistDialect::kShardingAttr, dist::DistDialect::kFlatAttr, dist::DistDialect::kWhyAttr})
        if (Attribute attr = source.getArgAttr(from->second, name))
          signature.setArgAttr(i, name, attr);
    }
  }
  return success();
}

void adoptStages(ModuleOp evaluation, ModuleOp training) {
  for (auto func : evaluation.getOps<func::FuncOp>()) {
    auto source = training.lookupSymbol<func::FuncOp>(func.getSymName());
    if (!source)
      continue;
    // Of each parameter the stages that read it, seen through what is made of parameters alone.
    llvm::StringMap<llvm::SmallSetVector<Attribute, 2>> stages;
    for (BlockArgument argument : source.getArguments()) {
      SmallVector<Value> work{argument};
      while (!work.empty())
        for (Operation *user : work.pop_back_val().getUsers())
          if (Attribute stage = user->getAttr(pipe::PipeDialect::kStageAttr))
            stages[nn::getArgName(source, argument.getArgNumber())].insert(stage);
          else if (isa<nn::CastOp>(user))
            work.push_back(user->getResult(0));
    }
    for (BlockArgument argument : func.getArguments()) {
      auto found = stages.find(nn::getArgName(func, argument.getArgNumber()));
      if (found == stages.end() || found->second.size() != 1)
        continue;
      SmallVector<Value> work{argument};
      while (!work.empty())
        for (Operation *user : work.pop_back_val().getUsers())
          if (isa<nn::CastOp>(user))
            work.push_back(user->getResult(0));
          else
            user->setAttr(pipe::PipeDialect::kStageAttr, found->second.front());
    }
  }
}

void adoptBuckets(ModuleOp evaluation, ModuleOp training) {
  for (auto func : evaluation.getOps<func::FuncOp>()) {
    auto source = training.lookupSymbol<func::FuncOp>(func.getSymName());
    if (!source || !func->hasAttr(nn::kEvaluationAttr))
      continue;
    SmallVector<Attribute> buckets;
    for (unsigned i = 0; i < source.getNumArguments(); ++i)
      if (nn::getArgRole(source, i) == nn::ArgRole::Param && source.getArgAttr(i, dist::DistDialect::kBucketAttr))
        buckets.push_back(source.getArgAttrDict(i));
    if (!buckets.empty())
      func->setAttr(dist::DistDialect::kBucketsAttr, ArrayAttr::get(func.getContext(), buckets));
  }
}

void addEvaluation(ModuleOp training, ModuleOp evaluation) {
  SymbolTable symbols(training);
  for (auto func : llvm::make_early_inc_range(evaluation.getOps<func::FuncOp>())) {
    if (!func->hasAttr(nn::kEvaluationAttr))
      continue;
    func->remove();
    func.setSymName((func.getSymName() + "_eval").str());
    symbols.insert(func); // at the end, under a name that is free
    return;
  }
}

} // namespace shoal
