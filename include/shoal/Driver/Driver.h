// The compiler as a function: from a parsed model and a plan to what was asked for, in memory. shoalc is
// a command line around it; other tools, fuzzers and unit tests call it as well.
//
// Every error is an MLIR diagnostic. What no place in the model is to blame for has an unknown location,
// and `printDiagnostic` then names the tool.
#ifndef SHOAL_DRIVER_DRIVER_H
#define SHOAL_DRIVER_DRIVER_H

#include "shoal/Pipelines/PlanOptions.h"

#include "shoal-rt/exit_codes.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/ADT/StringSet.h"

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace shoal {

/// How a compilation ended; the values are the tools' exit codes.
enum class Outcome { Success = 0, WorkFailed = rt::kExitWorkFailed, InputWrong = rt::kExitBadInput };

/// How far to go. Of Object and Executable the output is the same payload; `codegen::writeExecutable` makes a
/// program of it.
enum class Emit { Global, Local, Exec, LLVM, PTX, Object, Executable };

/// How a report is written: as data, or as a page to look at.
enum class ReportFormat { None, Json, Html };

/// Names and sizes in order, the last fastest.
using MeshAxes = std::vector<std::pair<std::string, int64_t>>;

/// Whether the ops are verified behind every pass where nobody says: in builds whose assertions stand.
#ifdef NDEBUG
inline constexpr bool kVerifyEach = false;
#else
inline constexpr bool kVerifyEach = true;
#endif

struct CompilerOptions {
  std::string name; // how messages call the model: its file
  MeshAxes mesh;    // empty: the model's own mesh, or one device
  PlanOptions plan;
  std::vector<const PlanOption *> given; // what the user chose of the plan, also where it is the default
  Emit emit = Emit::Executable;
  std::string cpu; // empty: this machine's
  std::string gpuArch = "sm_80";
  ReportFormat report = ReportFormat::None; // with Emit::Exec and later
  ReportFormat timeline = ReportFormat::None; // of a pipeline, simulated; with Emit::Local and later
  bool explain = false;    // with Emit::Local and later
  bool verifyPlan = false; // with Emit::Local and later
  /// The ops are verified behind every pass, and not only by the contract passes at the borders of levels; `mlir-opt
  /// --verify-each`.
  bool verifyEach = kVerifyEach;
  std::function<void(double part)> verifyProgress; // told how much of that is done, from 0 to 1; may be empty
};

struct CompilerOutput {
  std::string text;   // IR or assembly as text, or the payload's bytes
  std::string report; // in the format asked for
  std::string timeline; // in the format asked for: the page, or a Chrome trace
  std::string explanation; // of every collective, when asked for
  std::vector<std::string> verified; // what was compared with one device, a line for each program
};

/// Reads a model ("-": stdin), which is verified by `compile`, when it has its mesh. Null after a diagnostic.
mlir::OwningOpRef<mlir::ModuleOp> readModel(llvm::StringRef path, mlir::MLIRContext &context);

/// Compiles the module, which becomes what the last level was.
Outcome compile(mlir::ModuleOp module, const CompilerOptions &options, CompilerOutput &output);

/// Prints a diagnostic as one line, "FILE:LINE:COLUMN: error: ...", without what is not known of the place, or
/// "TOOL: error: ...", and each of its notes as another. A remark that is among `toldRemarks`, since training and
/// evaluation are two programs of one model, is not told again.
void printDiagnostic(llvm::StringRef tool, mlir::Diagnostic &diagnostic, llvm::StringSet<> &toldRemarks);

} // namespace shoal

#endif // SHOAL_DRIVER_DRIVER_H
