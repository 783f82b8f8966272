// What goes into the compiler, a file of a model, and its complaints about it.
#include "shoal/Driver/Driver.h"

#include "shoal/Support/Files.h"

#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace shoal {

OwningOpRef<ModuleOp> readModel(llvm::StringRef path, MLIRContext &context) {
  ModelTextProblem problem;
  auto buffer = openModel(path, problem);
  Location nowhere = UnknownLoc::get(&context);
  if (!buffer) {
    emitError(problem.line ? Location(FileLineColLoc::get(&context, path, problem.line, problem.column)) : nowhere)
        << problem.message;
    return nullptr;
  }
  if (buffer->getBuffer().starts_with("ML\xefR")) {
    emitError(nowhere) << "'" << path << "' must be MLIR text, got: bytecode";
    return nullptr;
  }
  // A config.json; MLIR text may begin with "{-#", where it lists resources.
  if (llvm::StringRef text = buffer->getBuffer().ltrim(); text.starts_with("{") && !text.starts_with("{-#")) {
    emitError(nowhere) << "'" << path << "' must be MLIR text, got: JSON; shoal-model makes a model of a config.json";
    return nullptr;
  }
  llvm::SourceMgr sources;
  sources.AddNewSourceBuffer(std::move(buffer), llvm::SMLoc());
  return parseSourceFile<ModuleOp>(sources, ParserConfig(&context, /*verifyAfterParse=*/false));
}

/// The innermost place in a file, or what the location says instead of one.
static Location findPlace(Location loc) {
  while (!isa<FileLineColLoc>(loc)) {
    if (auto named = dyn_cast<NameLoc>(loc); named && !isa<UnknownLoc>(named.getChildLoc()))
      loc = named.getChildLoc();
    else if (auto fused = dyn_cast<FusedLoc>(loc); fused && !fused.getLocations().empty())
      loc = fused.getLocations().front();
    else if (auto call = dyn_cast<CallSiteLoc>(loc))
      loc = call.getCallee();
    else
      break;
  }
  return loc;
}

static llvm::StringRef getWord(DiagnosticSeverity severity) {
  switch (severity) {
  case DiagnosticSeverity::Error:
    return "error";
  case DiagnosticSeverity::Warning:
    return "warning";
  case DiagnosticSeverity::Note:
    return "note";
  case DiagnosticSeverity::Remark:
    return "remark";
  }
  llvm_unreachable("unknown severity");
}

/// A module that the text does not write out is at line 0 of its file, a rank of a schedule at column 0 of its line.
static void printPlace(FileLineColLoc place, llvm::raw_ostream &os) {
  os << place.getFilename().getValue();
  if (place.getLine())
    os << ":" << place.getLine();
  if (place.getLine() && place.getColumn())
    os << ":" << place.getColumn();
}

void printDiagnostic(llvm::StringRef tool, Diagnostic &diagnostic, llvm::StringSet<> &toldRemarks) {
  std::string lines;
  llvm::raw_string_ostream os(lines);
  auto print = [&](Diagnostic &d) {
    Location place = findPlace(d.getLocation());
    if (auto file = dyn_cast<FileLineColLoc>(place))
      printPlace(file, os);
    else
      os << tool;
    os << ": " << getWord(d.getSeverity()) << ": ";
    if (auto option = dyn_cast<NameLoc>(place)) // what a flag brought has no place in the file
      os << option.getName().getValue() << ": ";
    std::string text = d.str();
    std::replace(text.begin(), text.end(), '\n', ' ');
    os << text << "\n";
  };
  print(diagnostic);
  for (Diagnostic &note : diagnostic.getNotes())
    print(note);
  if (diagnostic.getSeverity() != DiagnosticSeverity::Remark || toldRemarks.insert(lines).second)
    llvm::errs() << lines;
}

} // namespace shoal
