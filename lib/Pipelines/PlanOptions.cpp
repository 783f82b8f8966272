// The table of plan options, what holds between them, and the textual pipelines' options made from it.
#include "shoal/Pipelines/PlanOptions.h"

#include "shoal/Dialect/Dist/IR/AxisRoles.h"
#include "shoal/Dialect/Dist/Transforms/Passes.h"
#include "shoal/Schedule/Generate.h"

#include "llvm/ADT/StringExtras.h"

namespace shoal {
namespace {

constexpr llvm::StringRef kModes[] = {"train", "infer", "eval"};
constexpr llvm::StringRef kDtypes[] = {"f32", "bf16", "f64"};
constexpr llvm::StringRef kGradDtypes[] = {"f32", "bf16"};
constexpr llvm::StringRef kRecompute[] = {"none", "selective", "full"};
constexpr NumberRule kChunksRule = {"from 1 to 64", "V", [](double value) { return value >= 1 && value <= 64; }};
constexpr NumberRule kMemoryLimitRule = {"from 0 (no limit) to 2^20", "GIB",
                                         [](double value) { return value >= 0 && value <= 1 << 20; }};
constexpr llvm::StringRef kOffloads[] = {"optimizer"};
constexpr llvm::StringRef kTargets[] = {"cpu", "cuda"};

template <auto Member> auto &get(PlanOptions &plan) { return plan.*Member; }

/// A row of the optimizer as a row of the plan that holds the optimizer's options.
PlanOption toPlanOption(const OptionRow<nn::OptimizePassOptions> &row) {
  PlanOption option;
  option.name = row.name;
  option.help = row.help;
  option.rule = row.rule;
  option.choices = row.choices;
  option.flag = row.flag;
  option.member = std::visit(
      [](const auto &access) -> PlanOption::Member {
        using T = std::decay_t<decltype(access(std::declval<nn::OptimizePassOptions &>()))>;
        return PlanOption::Access<T>([access](PlanOptions &plan) -> T & { return access(plan.optimize); });
      },
      row.member);
  option.group = "Optimizer";
  option.stages = kToGlobal;
  option.isOfTraining = true;
  option.isTold = row.name == "optimizer" || row.name == "lr";
  return option;
}

std::vector<PlanOption> makeTable() {
  std::vector<PlanOption> rows = {
      {{.name = "data-axes", .member = get<&PlanOptions::dataAxes>, .help = "mesh axes that split the batch"},
       "",
       kToGlobal | kToLocal},
      {{.name = "sequence-axes", .member = get<&PlanOptions::sequenceAxes>,
        .help = "mesh axes that split the tokens of a row"},
       "",
       kToGlobal | kToLocal},
      {{.name = "model-axes", .member = get<&PlanOptions::modelAxes>, .help = "all other mesh axes"},
       "",
       kToGlobal | kToLocal},
      {{.name = "tensor-parallel",
        .member = get<&PlanOptions::tensorParallel>,
        .help = "shard hidden dimensions, heads and vocabularies over mesh axis tensor"},
       "Plan", kToGlobal, /*isOfTraining=*/false, /*axis=*/dist::kTensorAxis},
      {{.name = "sequence-parallel", .member = get<&PlanOptions::sequenceParallel>,
        .help = "shard norms, dropout and residual sums by sequence over mesh axis tensor"},
       "Plan", kToGlobal, /*isOfTraining=*/false, /*axis=*/dist::kTensorAxis},
      {{.name = "context-parallel", .member = get<&PlanOptions::contextParallel>,
        .help = "shard the sequence over mesh axis context; attention takes other tokens' keys and values from a ring "
                "(ring; zigzag: with equal work under a causal mask), gathers them (allgather) or exchanges tokens for "
                "heads (ulysses; hybrid: over axis ulysses, around a ring over context)",
        .choices = dist::kContextModes},
       "Plan", kToGlobal, /*isOfTraining=*/false, /*axis=*/dist::kContextAxis},
      {{.name = "keep-gathered", .member = get<&PlanOptions::keepGathered>,
        .help = "keep what sequence parallelism, or context parallelism by allgather, gathers for the backward pass, "
                "instead of gathering it again"},
       "Plan", kToGlobal, /*isOfTraining=*/true, /*axis=*/{}, /*ofAnyAxis=*/true},
      {{.name = "zero", .member = get<&PlanOptions::zero>,
        .help = "shard over mesh axis data: 1 optimizer state; 2 gradients of micro-batches, too, so that each "
                "micro-batch reduces its own; 3 parameters, too, so that each also gathers them",
        .rule = &dist::kZeroRule},
       "Plan", kToGlobal, /*isOfTraining=*/true, /*axis=*/dist::kDataAxis, /*ofAnyAxis=*/false, /*ofPacking=*/false, /*isTold=*/true},
      {{.name = "recompute", .member = get<&PlanOptions::recompute>,
        .help = "what of each layer the backward pass computes again instead of keeping it: none; selective: all but "
                "products (attention, norms, activation functions, dropout); full: all",
        .choices = kRecompute},
       "Plan", kToGlobal, /*isOfTraining=*/true},
      {{.name = "microbatches", .member = get<&PlanOptions::microbatches>,
        .help = "parts in which a step takes its batch, so that only one part's activations are held; gradients are "
                "reduced once, under --zero 2 and 3 in each part",
        .rule = &dist::kMicrobatchesRule},
       "Plan",
       kToGlobal,
       /*isOfTraining=*/true},
      {{.name = "pipe-ranks", .member = get<&PlanOptions::pipeRanks>, .help = "ranks of the axis of a pipeline"},
       "",
       kToGlobal | kToLocal},
      {{.name = "pipeline-schedule",
        .member = get<&PlanOptions::pipelineSchedule>,
        .help = "order of the stages over mesh axis pipe: naive, gpipe, 1f1b, interleaved (several stages per rank), or "
                "with the backward pass in two parts zb-h1, zb-h2, zb-v",
        .choices = pipe::getScheduleNames()},
       "Plan",
       kToGlobal | kToLocal,
       /*isOfTraining=*/false,
       /*axis=*/dist::kPipeAxis,
       /*ofAnyAxis=*/false,
       /*ofPacking=*/false,
       /*isTold=*/true},
      {{.name = "pipeline-chunks",
        .member = get<&PlanOptions::pipelineChunks>,
        .help = "stages of each rank of mesh axis pipe; unless said, 2 of interleaved and zb-v, 1 of the others",
        .rule = &kChunksRule},
       "Plan",
       kToGlobal | kToLocal,
       /*isOfTraining=*/false,
       /*axis=*/dist::kPipeAxis},
      {{.name = "schedule-file",
        .member = get<&PlanOptions::scheduleFile>,
        .help = "a schedule of your own instead, text or JSON, a line per rank (docs/generated/pipe-passes.md)"},
       "Plan",
       kToGlobal | kToLocal,
       /*isOfTraining=*/false,
       /*axis=*/dist::kPipeAxis},
      {{.name = "schedule-text", .member = get<&PlanOptions::scheduleText>,
        .help = "what stands in the schedule's file, where it has been read already"},
       "",
       kToGlobal | kToLocal},
      {{.name = "memory-limit-gb",
        .member = get<&PlanOptions::memoryLimitGb>,
        .help = "GiB that a rank may hold: a plan that needs more is refused; a pipeline is cut into the fastest stages that "
                "fit, of those that the compiler tries",
        .rule = &kMemoryLimitRule},
       "Plan",
       kToExec},
      {{.name = "lighter-cut", .member = get<&PlanOptions::lighterCut>, .help = "how many cuts into stages hold more"},
       "",
       kToGlobal},
      {{.name = "pipeline-costs",
        .member = get<&PlanOptions::pipelineCosts>,
        .help = "what a run measured of each stage (its --timeline FILE.json) instead of estimates from operations and "
                "bytes, for the orders that go by costs, the places of messages and --timeline"},
       "Plan",
       kToLocal,
       /*isOfTraining=*/false,
       /*axis=*/dist::kPipeAxis},
      {{.name = "bucket-mb",
        .member = get<&PlanOptions::bucketMb>,
        .help = "bytes of one gradient bucket, in MiB, in the type in which it is reduced; under --zero parameters and "
                "state are cut where their gradients are",
        .rule = &dist::kBucketMbRule},
       "Plan", kToLocal, /*isOfTraining=*/true, /*axis=*/{}, /*ofAnyAxis=*/false, /*ofPacking=*/true},
      {{.name = "offload", .member = get<&PlanOptions::offload>,
        .help = "optimizer: its state, the f32 masters and the update are the device's host's (--target cuda)",
        .choices = kOffloads},
       "Plan",
       kToLocal,
       /*isOfTraining=*/true},
      {{.name = "overlap",
        .member = get<&PlanOptions::overlap>,
        .help = "communicate during the backward pass",
        .flag = "no-overlap"},
       "Plan",
       kToLocal | kToExec,
       /*isOfTraining=*/true,
       /*axis=*/"",
       /*ofAnyAxis=*/true},
      {{.name = "mode",
        .member = get<&PlanOptions::mode>,
        .help = "train; infer: only the outputs; eval: the evaluation step that an executable of train brings "
                "along, under the plan that the same flags give to training",
        .choices = kModes},
       "Program",
       kToGlobal | kToLocal},
      {{.name = "dtype",
        .member = get<&PlanOptions::dtype>,
        .help = "type of every float of the program: f32 or f64; bf16: mixed precision, activations in bf16 and "
                "parameters kept in f32",
        .choices = kDtypes,
        .note = "fp16 would need a scale of the loss that changes from step to step, bf16 has the range of f32"},
       "Program",
       kToGlobal},
      {{.name = "grad-dtype",
        .member = get<&PlanOptions::gradDtype>,
        .help = "of --dtype bf16: f32 (default) or bf16, in which gradients are added up and reduced",
        .choices = kGradDtypes},
       "Program",
       kToGlobal,
       /*isOfTraining=*/true},
      {{.name = "target",
        .member = get<&PlanOptions::target>,
        .help = "cpu or cuda: whose kernels run",
        .choices = kTargets},
       "",
       kToExec},
  };
  for (const auto &row : nn::getOptimizerOptions())
    rows.push_back(toPlanOption(row));
  return rows;
}

} // namespace

std::string PlanOption::getFlag() const { return "--" + (flag.empty() ? name : flag).str(); }

bool PlanOption::isOff(const PlanOptions &plan) const { return isDefault(plan) && show(plan) == "0"; }

llvm::ArrayRef<PlanOption> getPlanOptions() {
  static const std::vector<PlanOption> rows = makeTable();
  return rows;
}

std::vector<std::string> spellFlags(const PlanOptions &plan, llvm::ArrayRef<const PlanOption *> given) {
  std::vector<std::string> words;
  const PlanOption *last = nullptr;
  for (const PlanOption *option : given) {
    std::string value = option->show(plan);
    if (last && !option->flag.empty() && last->flag == option->flag)
      words.back() += "," + value;
    else
      words.push_back(option->getFlag() + (value.empty() ? "" : " " + value));
    last = option;
  }
  return words;
}

std::string describePlan(const PlanOptions &plan, llvm::ArrayRef<const PlanOption *> given) {
  // Inference has no order of passes, and an order of one's own is named by its file.
  auto acts = [&](const PlanOption &row) {
    return plan.mode != "infer" && !(row.name == "pipeline-schedule" && !plan.scheduleFile.empty()) &&
           (row.axis.empty() || llvm::is_contained(plan.dataAxes, row.axis) ||
            llvm::is_contained(plan.sequenceAxes, row.axis) || llvm::is_contained(plan.modelAxes, row.axis) ||
            (row.axis == dist::kPipeAxis && plan.pipeRanks > 1));
  };
  std::vector<const PlanOption *> told;
  for (const PlanOption &row : getPlanOptions())
    if (llvm::is_contained(given, &row) || (row.isTold && acts(row)))
      told.push_back(&row);
  std::vector<std::string> words = spellFlags(plan, told);
  for (std::string &word : words)
    word.erase(0, 2); // "--"
  if (plan.dtype.empty())
    words.push_back("dtype as in the model");
  return llvm::join(words, ", ");
}

std::string findPlanFault(const PlanOptions &plan, llvm::ArrayRef<const PlanOption *> given,
                          llvm::function_ref<std::string(const PlanOption &)> spell) {
  auto find = [](llvm::StringRef name) -> const PlanOption & {
    return *llvm::find_if(getPlanOptions(), [&](const PlanOption &option) { return option.name == name; });
  };
  for (const PlanOption *option : given)
    if (std::string fault = option->findFault(plan); !fault.empty())
      return spell(*option) + " " + fault;
  if (plan.mode == "infer")
    for (const PlanOption *option : given)
      if (option->isOfTraining)
        return spell(*option) + " belongs to " + spell(find("mode")) + " train, got: infer";
  if (plan.keepGathered && !plan.sequenceParallel && plan.contextParallel != "allgather")
    return spell(find("keep-gathered")) + " acts on what " + spell(find("sequence-parallel")) + " or " +
           spell(find("context-parallel")) + " allgather gathers, which are off";
  if (!plan.gradDtype.empty() && plan.dtype != "bf16")
    return spell(find("grad-dtype")) + " acts on " + spell(find("dtype")) + " bf16, got: " +
           (plan.dtype.empty() ? "none" : plan.dtype);
  if (!plan.scheduleFile.empty())
    for (llvm::StringRef name : {"pipeline-schedule", "pipeline-chunks"})
      if (llvm::is_contained(given, &find(name)))
        return spell(find("schedule-file")) + " has an order and chunks of its own: " + spell(find(name)) +
               " must not be said, got: " + find(name).show(plan);
  return nn::findOptimizerFault(
      plan.optimize,
      [&](llvm::StringRef name) {
        return llvm::any_of(given, [&](const PlanOption *option) { return option->name == name; });
      },
      [&](llvm::StringRef name) { return spell(find(name)); });
}

PipelineOptions::PipelineOptions(unsigned stages) {
  PlanOptions defaults;
  for (const PlanOption &row : getPlanOptions())
    if (row.stages & stages)
      std::visit(
          [&](const auto &access) {
            using T = std::decay_t<decltype(access(defaults))>;
            if constexpr (std::is_same_v<T, std::vector<std::string>>)
              values.emplace_back(
                  &row, std::make_unique<ListOption<std::string>>(*this, row.name, llvm::cl::desc(row.help)));
            else
              values.emplace_back(&row,
                                  std::make_unique<Option<T>>(*this, row.name, llvm::cl::desc(row.help),
                                                              llvm::cl::init(access(defaults))));
          },
          row.member);
}

PlanOptions PipelineOptions::get(std::string &fault) const {
  PlanOptions plan;
  std::vector<const PlanOption *> given;
  for (const auto &[row, value] : values)
    std::visit(
        [&](const auto &access, const auto &option) {
          using T = std::decay_t<decltype(access(plan))>;
          using Held = std::decay_t<decltype(*option)>;
          if constexpr (std::is_same_v<T, std::vector<std::string>> &&
                        std::is_same_v<Held, ListOption<std::string>>)
            access(plan).assign(option->begin(), option->end());
          else if constexpr (std::is_same_v<Held, Option<T>>)
            access(plan) = option->getValue();
          if (option->hasValue())
            given.push_back(row);
        },
        row->member, value);
  fault = findPlanFault(plan, given, [](const PlanOption &option) { return option.name.str(); });
  return plan;
}

} // namespace shoal
