// From machine code and blobs to an executable: a data object with the symbols that the runtime
// looks up, lld as a library, and a copy of the prelinked runtime with the result at its end.
#include "shoal/Codegen/Host.h"
#include "shoal/Support/Files.h"

#include "HostMachine.h"
#include "shoal-rt/payload.h"
#include "shoal-rt/program.h"

#include "lld/Common/Driver.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Target/TargetMachine.h"

LLD_HAS_DRIVER(elf)

using namespace mlir;

namespace shoal::codegen {
namespace {

using EmitError = function_ref<InFlightDiagnostic()>;

/// An object that defines `shoal_program`, `shoal_kernels` and, where there is one, `shoal_evaluation`.
FailureOr<std::string> emitTables(ArrayRef<std::string> table, ArrayRef<unsigned char> blob,
                                  ArrayRef<unsigned char> evaluation, EmitError emitError) {
  auto machine = createHostMachine({}, emitError);
  if (failed(machine))
    return failure();
  llvm::LLVMContext context;
  llvm::Module module("program", context);
  module.setTargetTriple((*machine)->getTargetTriple().str());
  module.setDataLayout((*machine)->createDataLayout());
  auto define = [&](const char *symbol, ArrayRef<unsigned char> contents) {
    StringRef bytes(reinterpret_cast<const char *>(contents.data()), contents.size());
    llvm::Constant *data = llvm::ConstantDataArray::getString(context, bytes, /*AddNull=*/false);
    auto *global = new llvm::GlobalVariable(module, data->getType(), /*isConstant=*/true,
                                            llvm::GlobalValue::ExternalLinkage, data, symbol);
    global->setAlignment(llvm::Align(rt::kAlignment));
  };
  define(rt::kProgramSymbol, blob);
  if (!evaluation.empty())
    define(rt::kEvaluationSymbol, evaluation);
  auto *pointer = llvm::PointerType::get(context, 0);
  auto *function = llvm::FunctionType::get(llvm::Type::getVoidTy(context), {pointer}, false);
  SmallVector<llvm::Constant *> entries;
  for (const std::string &name : table) {
    auto *kernel = cast<llvm::Function>(module.getOrInsertFunction(name, function).getCallee());
    kernel->setVisibility(llvm::GlobalValue::HiddenVisibility);
    entries.push_back(kernel);
  }
  // A program without kernels still exports the symbol.
  if (entries.empty())
    entries.push_back(llvm::ConstantPointerNull::get(pointer));
  auto *type = llvm::ArrayType::get(pointer, entries.size());
  new llvm::GlobalVariable(module, type, /*isConstant=*/true, llvm::GlobalValue::ExternalLinkage,
                           llvm::ConstantArray::get(type, entries), rt::kKernelsSymbol);
  return emitHostObject(module, **machine);
}

LogicalResult writeFile(StringRef path, StringRef bytes, EmitError emitError) {
  std::error_code error;
  llvm::raw_fd_ostream out(path, error);
  if (!error) {
    out << bytes;
    out.close();
    error = out.error();
    out.clear_error();
  }
  if (error)
    return emitError() << "cannot write '" << path << "': " << error.message();
  return success();
}

} // namespace

FailureOr<std::string> linkPayload(const KernelObjects &code, ArrayRef<std::string> table,
                                   ArrayRef<unsigned char> blob, EmitError emitError,
                                   ArrayRef<unsigned char> evaluation) {
  for (const std::string &name : table)
    if (!llvm::is_contained(code.kernels, name))
      return emitError() << "the program's table names a kernel that was not compiled: '" << name
                         << "'",
             failure();
  auto tables = emitTables(table, blob, evaluation, emitError);
  if (failed(tables))
    return failure();
  llvm::SmallString<128> directory;
  if (std::error_code error = llvm::sys::fs::createUniqueDirectory("shoal", directory))
    return emitError() << "cannot create a temporary directory: " << error.message(), failure();
  auto cleanup = llvm::make_scope_exit([&] { llvm::sys::fs::remove_directories(directory); });

  std::vector<std::string> paths;
  auto add = [&](StringRef bytes) {
    paths.push_back((directory + "/" + std::to_string(paths.size()) + ".o").str());
    return writeFile(paths.back(), bytes, emitError);
  };
  for (const std::string &object : code.objects)
    if (failed(add(object)))
      return failure();
  if (failed(add(*tables)))
    return failure();
  std::string output = (directory + "/payload.so").str();
  std::vector<const char *> arguments{
      "ld.lld",      "-shared", "--hash-style=gnu", "--build-id=none", "--gc-sections", "-z",
      "noexecstack", "-o",      output.c_str()};
  for (const std::string &path : paths)
    arguments.push_back(path.c_str());
  std::string messages;
  llvm::raw_string_ostream stream(messages);
  lld::Result result = lld::lldMain(arguments, stream, stream, {{lld::Gnu, &lld::elf::link}});
  if (result.retCode != 0)
    return emitError() << "lld cannot link the payload: " << StringRef(messages).split('\n').first,
           failure();
  auto linked =
      llvm::MemoryBuffer::getFile(output, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!linked)
    return emitError() << "cannot read '" << output << "': " << linked.getError().message(),
           failure();
  return (*linked)->getBuffer().str();
}

LogicalResult writeExecutable(StringRef runtimePath, StringRef payload, StringRef outputPath,
                              EmitError emitError) {
  llvm::sys::fs::file_status status;
  if (!llvm::sys::fs::status(runtimePath, status) && llvm::sys::fs::exists(status) &&
      !llvm::sys::fs::is_regular_file(status))
    return emitError() << "cannot read the runtime '" << runtimePath << "': not a regular file";
  auto runtime =
      llvm::MemoryBuffer::getFile(runtimePath, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!runtime)
    return emitError() << "cannot read the runtime '" << runtimePath
                       << "': " << runtime.getError().message();
  if (!(*runtime)->getBuffer().contains(rt::kRuntimeMarker))
    return emitError() << "'" << runtimePath << "' is no runtime executable of this compiler";
  // The name will be replaced, which a device or folder must not be.
  if (!llvm::sys::fs::status(outputPath, status) && llvm::sys::fs::exists(status) &&
      !llvm::sys::fs::is_regular_file(status))
    return emitError() << "cannot write '" << outputPath << "': not a regular file";
  rt::PayloadFooter footer = rt::payloadFooter(payload.data(), payload.size());
  StringRef end(reinterpret_cast<const char *>(&footer), sizeof footer);
  if (std::error_code error = replaceFile(outputPath, {(*runtime)->getBuffer(), payload, end},
                                          llvm::sys::fs::perms(0777)))
    return emitError() << "cannot write '" << outputPath << "': " << error.message();
  return success();
}

} // namespace shoal::codegen
