// Replaces arguments and results of a function; see Signature.h.
#include "Signature.h"

#include "shoal/Support/DeadOps.h"

using namespace mlir;

namespace shoal::dist {

Signature::Signature(func::FuncOp func) : func(func) {
  MLIRContext *context = func.getContext();
  FunctionOpInterface function(func);
  for (BlockArgument argument : func.getArguments())
    arguments[argument] = DictionaryAttr::get(context, function.getArgAttrs(argument.getArgNumber()));
  for (unsigned i = 0; i < func.getNumResults(); ++i) {
    auto attrs = DictionaryAttr::get(context, function.getResultAttrs(i));
    results.push_back({attrs, false, {}});
    for (NamedAttribute attr : attrs)
      if (auto name = dyn_cast<StringAttr>(attr.getValue()))
        named[{attr.getName(), name}] = i;
  }
}

/// A piece says the index of what it is a piece of.
DictionaryAttr Signature::withIndex(DictionaryAttr attrs, unsigned index) {
  auto global = attrs.getAs<GlobalAttr>(DistDialect::kGlobalAttr);
  if (!global)
    return attrs;
  NamedAttrList list(attrs);
  list.set(DistDialect::kGlobalAttr,
           GlobalAttr::get(attrs.getContext(), index, global.getType(), global.getSharding()));
  return list.getDictionary(attrs.getContext());
}

Signature::~Signature() {
  Block &block = func.getBody().front();
  SmallVector<Value> values;
  SmallVector<DictionaryAttr> argAttrs, resultAttrs;
  for (auto [result, returned] : llvm::zip_equal(results, block.getTerminator()->getOperands())) {
    for (auto [value, attrs] : result.before) {
      resultAttrs.push_back(withIndex(attrs, values.size()));
      values.push_back(value);
    }
    if (result.isDead)
      continue;
    resultAttrs.push_back(withIndex(result.attrs, values.size()));
    values.push_back(returned);
  }
  block.getTerminator()->setOperands(values);
  // What only the old results were made of, and the old arguments read.
  eraseDeadOps(block);
  llvm::BitVector gone(block.getNumArguments());
  for (BlockArgument argument : block.getArguments())
    if (dead.contains(argument))
      gone.set(argument.getArgNumber());
    else
      argAttrs.push_back(withIndex(arguments.lookup(argument), argAttrs.size()));
  block.eraseArguments(gone);
  func.setFunctionType(FunctionType::get(func.getContext(), block.getArgumentTypes(), TypeRange(ValueRange(values))));
  func.setAllArgAttrs(argAttrs);
  func.setAllResultAttrs(resultAttrs);
}

BlockArgument Signature::insertBefore(BlockArgument other, Type type, DictionaryAttr attrs) {
  BlockArgument argument = other.getOwner()->insertArgument(other.getArgNumber(), type, other.getLoc());
  arguments[argument] = attrs;
  return argument;
}

std::optional<unsigned> Signature::find(StringRef role, StringRef name) const {
  MLIRContext *context = func->getContext();
  auto at = named.find({StringAttr::get(context, role), StringAttr::get(context, name)});
  return at == named.end() ? std::nullopt : std::optional(at->second);
}

void Signature::insertResultBefore(StringRef role, StringRef name, Value value, DictionaryAttr attrs) {
  if (auto at = find(role, name))
    results[*at].before.push_back({value, attrs});
}

void Signature::eraseResult(StringRef role, StringRef name) {
  if (auto at = find(role, name))
    results[*at].isDead = true;
}

} // namespace shoal::dist
