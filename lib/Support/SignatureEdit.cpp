// Collects the edits of a signature and writes its type and attribute arrays once; see SignatureEdit.h.
#include "shoal/Support/SignatureEdit.h"

using namespace mlir;

namespace shoal {

SignatureEdit::SignatureEdit(FunctionOpInterface func)
    : func(func), argTypes(func.getArgumentTypes()), resultTypes(func.getResultTypes()) {
  MLIRContext *context = func.getContext();
  for (unsigned i = 0; i < func.getNumArguments(); ++i)
    args.push_back(DictionaryAttr::get(context, func.getArgAttrs(i)));
  for (unsigned i = 0; i < func.getNumResults(); ++i)
    results.push_back(DictionaryAttr::get(context, func.getResultAttrs(i)));
}

SignatureEdit::~SignatureEdit() {
  if (isRetyped || args.size() != func.getNumArguments() || results.size() != func.getNumResults())
    func.setType(func.cloneTypeWith(argTypes, resultTypes));
  func.setAllArgAttrs(args);
  func.setAllResultAttrs(results);
}

void SignatureEdit::setArgType(unsigned index, Type type) {
  argTypes[index] = type;
  func.getArgument(index).setType(type);
  isRetyped = true;
}

BlockArgument SignatureEdit::addArgument(Type type, StringRef name, Attribute attr) {
  argTypes.push_back(type);
  set(args.emplace_back(DictionaryAttr::get(func.getContext())), name, attr);
  return func.getFunctionBody().front().addArgument(type, func.getLoc());
}

void SignatureEdit::addResult(Value value, StringRef name, Attribute attr) {
  resultTypes.push_back(value.getType());
  set(results.emplace_back(DictionaryAttr::get(func.getContext())), name, attr);
  Operation *terminator = func.getFunctionBody().front().getTerminator();
  terminator->insertOperands(terminator->getNumOperands(), value);
}

void SignatureEdit::set(DictionaryAttr &attrs, StringRef name, Attribute attr) {
  NamedAttrList list(attrs);
  if (attr)
    list.set(name, attr);
  else
    list.erase(name);
  attrs = list.getDictionary(func.getContext());
}

} // namespace shoal
