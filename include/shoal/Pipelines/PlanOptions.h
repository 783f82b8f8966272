// What a user may choose about a program, and the table of it. shoalc's command line, the options of the
// textual pipelines, their checks and their help are made from the rows: a new choice is a member, a row
// (lib/Pipelines/PlanOptions.cpp), and its use where it acts.
#ifndef SHOAL_PIPELINES_PLANOPTIONS_H
#define SHOAL_PIPELINES_PLANOPTIONS_H

#include "shoal/Dialect/NN/Transforms/OptimizerOptions.h"
#include "shoal/Support/OptionTable.h"

#include "mlir/Pass/PassOptions.h"

#include <optional>
#include <string>
#include <vector>

namespace shoal {

/// The defaults are those of `shoalc`.
struct PlanOptions {
  std::vector<std::string> dataAxes = {"data"}; // of the mesh: axes that split the batch
  std::vector<std::string> sequenceAxes;        // of the mesh: axes that split the tokens of a row
  std::vector<std::string> modelAxes;           // of the mesh: all others, partitioned first, with those of the sequence
  int64_t pipeRanks = 1;                        // of the mesh: along the axis of a pipeline, which shards nothing
  std::string mode = "train";                   // train | eval | infer
  std::string dtype;                            // f32 | bf16 | f64; empty: as written
  std::string gradDtype;                        // of bf16: f32 | bf16; empty: f32
  bool tensorParallel = false; // parameters over mesh axis "tensor", as dist-tensor-parallel finds them
  bool sequenceParallel = false; // the residual stream by sequence over the same axis
  std::string contextParallel = "none"; // the sequence over mesh axis "context", see dist::kContextModes
  bool keepGathered = false; // what these two gather stays for the backward pass
  int64_t zero = 0;          // 0..3: what lies sharded over mesh axis "data", as dist-zero says
  std::string recompute = "none"; // none | selective | full: what backward computes again, per layer
  nn::OptimizePassOptions optimize;
  int64_t microbatches = 1;   // parts of the batch, one after the other
  std::string pipelineSchedule = "1f1b"; // by name, see shoal/Schedule/Generate.h
  int64_t pipelineChunks = 0;            // stages of a rank; 0: as many as the schedule is made for
  std::string scheduleFile;              // the order of a file instead; empty: none
  std::string scheduleText;              // what stands in the file; empty: not read yet
  double memoryLimitGb = 0;   // of a rank, units of 2^30 bytes; 0: any
  int64_t lighterCut = 0;     // how many cuts into stages hold more than the one to take
  std::string pipelineCosts;             // a file of measured costs of stages; empty: estimated
  double bucketMb = 25;       // units of 2^20 bytes
  std::string offload;        // optimizer: its state and masters lie in the host's memory; empty: nothing
  std::string target = "cpu"; // cpu | cuda: whose kernels the arena has workspace for
  bool overlap = true;        // start collectives as early as their operands allow
};

/// The pipelines between levels, as sets of bits.
enum PlanStage : unsigned { kToGlobal = 1, kToLocal = 2, kToExec = 4 };

struct PlanOption : OptionRow<PlanOptions> {
  llvm::StringRef group;     // of shoalc's --help; empty: shoalc finds the value itself
  unsigned stages = 0;       // the pipelines in which it acts; what acts before kToExec plans a model
  bool isOfTraining = false; // and of evaluation, which follows the training step's plan
  llvm::StringRef axis = {}; // a mesh without this axis makes it meaningless
  bool ofAnyAxis = false;    // so does one device, which has no mesh; any axis gives it a meaning
  bool ofPacking = false;    // it acts where gradients are packed: without what leaves them partial it is meaningless
  bool isTold = false;       // a program tells it of itself wherever it acts, also where nobody chose it

  /// As shoalc spells it: "--lr", "--no-overlap".
  std::string getFlag() const;
  bool ofMesh() const { return ofAnyAxis || ofPacking || !axis.empty(); }
  /// Whether it says that it is not in use, as --zero 0 does.
  bool isOff(const PlanOptions &plan) const;
  bool plansModel() const { return !(stages & kToExec); }
};

llvm::ArrayRef<PlanOption> getPlanOptions();

/// The given options as words of a command line: "--lr 0.1", "--betas 0.9,0.95", "--no-overlap".
std::vector<std::string> spellFlags(const PlanOptions &plan, llvm::ArrayRef<const PlanOption *> given);

/// The plan in words, for whoever has the program only: what was given and what every program tells, as
/// "zero 0, dtype bf16, optimizer adamw, lr 0.001".
std::string describePlan(const PlanOptions &plan, llvm::ArrayRef<const PlanOption *> given);

/// Which rule the options break, alone or together, of those that `given` names; empty when none. `spell` says
/// how the caller writes an option.
std::string findPlanFault(const PlanOptions &plan, llvm::ArrayRef<const PlanOption *> given,
                          llvm::function_ref<std::string(const PlanOption &)> spell);

/// The options of a textual pipeline that runs `stages`: those rows that act there.
class PipelineOptions : public mlir::PassPipelineOptions<PipelineOptions> {
public:
  explicit PipelineOptions(unsigned stages);
  /// The plan, after `parseFromString`. When it breaks a rule, says so in `fault`.
  PlanOptions get(std::string &fault) const;

private:
  using Value = std::variant<std::unique_ptr<Option<bool>>, std::unique_ptr<Option<int64_t>>,
                             std::unique_ptr<Option<double>>, std::unique_ptr<Option<std::string>>,
                             std::unique_ptr<ListOption<std::string>>>;
  std::vector<std::pair<const PlanOption *, Value>> values;
};

} // namespace shoal

#endif // SHOAL_PIPELINES_PLANOPTIONS_H
