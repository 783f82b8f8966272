// A run: load, check the command line, prepare memory and data, step, write results.
#include "core/run.h"
#include "core/arena.h"
#include "core/evaluation.h"
#include "core/footprint.h"
#include "core/generation.h"
#include "core/options.h"
#include "core/outputs.h"
#include "core/parameters.h"
#include "core/payload.h"
#include "core/progress.h"
#include "core/session.h"
#include "shoal-rt/report.h"
#include "shoal-rt/traffic.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <unistd.h>

namespace shoal::rt {
namespace {

// mpirun hands its ranks pipes, so the launcher says whether a person is watching.
bool onTerminal() {
  const char *launcher = std::getenv("SHOAL_TERMINAL");
  return launcher ? std::string_view(launcher) == "1" : isatty(STDERR_FILENO) == 1;
}

class Run {
public:
  Run(World &world, LoadedPayload &payload, const Options &options)
      : world_(world), program_(*payload.program), payload_(payload), options_(options),
        position_(program_.positionOfRank(uint32_t(world.rank()))),
        training_(program_.header().mode == Mode::Train) {}

  // Local parts: every rank may fail on its own, and the caller makes them agree.
  void prepare(); // data, arena, first values, output files
  void resolve(); // rows to calls
  // Collective parts: a rank that fails must stop the others.
  void connect(); // communicators
  void execute(); // all steps, and what they leave
  void disconnect(); // the end of communicators

private:
  void planSteps();
  void prepareEvaluation();
  void openFiles();
  void step(uint64_t index);
  void fillInputs(uint64_t index, StepRecord &record);
  bool isEvaluatedAfter(uint64_t step) const;
  void evaluate(uint64_t step);
  void writeParams();
  void writeReport();
  void writeTrace();
  void delayStep();
  void checkLoss(const StepRecord &record);

  World &world_;
  const Program &program_;
  LoadedPayload &payload_;
  const Options &options_;
  uint32_t position_;
  bool training_;
  uint64_t totalSteps_ = 0, totalEpochs_ = 0;

  std::unique_ptr<Arena> arena_;
  std::unique_ptr<Session> session_;
  std::unique_ptr<Evaluation> evaluation_; // null: none asked for
  std::unique_ptr<Generation> generation_; // null: none asked for
  std::unique_ptr<Outputs> outputs_;
  std::unique_ptr<Progress> progress_; // of rank 0
  std::unique_ptr<OutputFile> paramsFile_, reportFile_, traceFile_;
  std::unique_ptr<Trace> trace_; // null: none asked for
  int64_t traceZero_ = 0;
  bool hasWarned_ = false; // of a loss that is no number
};

void Run::planSteps() {
  if (generation_) {
    totalSteps_ = generation_->steps();
    return;
  }
  if (!session_->data().batched()) {
    totalSteps_ = options_.steps.value_or(1);
    return;
  }
  uint64_t perEpoch = session_->data().batchesPerEpoch();
  auto needRows = [&](const char *flag, uint64_t count) {
    if (perEpoch == 0 && count != 0)
      badInput(flag, " ", count, " needs data, but the input files have 0 rows");
  };
  if (options_.steps) {
    totalSteps_ = *options_.steps;
    needRows("--steps", totalSteps_);
    totalEpochs_ = perEpoch == 0 ? 0 : (totalSteps_ + perEpoch - 1) / perEpoch;
    return;
  }
  totalEpochs_ = options_.epochs.value_or(1);
  // Outputs of no rows are files of no rows, but nothing is learnt from them.
  if (program_.header().mode == Mode::Train)
    needRows("--epochs", totalEpochs_);
  if (__builtin_mul_overflow(totalEpochs_, perEpoch, &totalSteps_))
    badInput("--epochs ", totalEpochs_, " of ", perEpoch, " batches do not fit 64 bits");
}

void Run::prepareEvaluation() {
  if (options_.evalData.empty())
    return;
  // Inputs that are no batch are the same for both unless said otherwise.
  std::map<std::string, std::string> files = options_.evalData;
  for (const Arg &arg : payload_.evaluation->args())
    if (auto name = std::string(payload_.evaluation->str(arg.name));
        arg.kind == ArgKind::Input && arg.batchDim < 0 && options_.data.count(name))
      files.try_emplace(name, options_.data.at(name));
  evaluation_ =
      std::make_unique<Evaluation>(*payload_.evaluation, payload_.kernels, position_, files);
}

void Run::openFiles() {
  outputs_ = std::make_unique<Outputs>(world_, *session_, options_, totalSteps_);
  if (world_.rank() != 0)
    return;
  auto open = [](const std::string &path) {
    return path.empty() ? nullptr : std::make_unique<OutputFile>(path);
  };
  paramsFile_ = open(options_.dumpParams);
  reportFile_ = open(options_.report);
  traceFile_ = open(options_.trace);
  bool line = onTerminal() && !options_.noProgress;
  // The log goes where printed outputs and text go, which somebody may read by program.
  bool printsOutputs = (options_.print && !training_) || (generation_ && !line);
  if (printsOutputs && !options_.logEvery && options_.metrics.empty())
    return;
  progress_ = std::make_unique<Progress>(totalSteps_, totalEpochs_,
                                         options_.logEvery.value_or(line ? 1 : 10), line,
                                         options_.metrics);
}

// What a user of --load may not expect.
static void tellLoaded(const std::string &path, const LoadSummary &loaded) {
  auto tell = [&](const std::string &what) { std::fprintf(stderr, "note: %s %s\n", path.c_str(), what.c_str()); };
  size_t unused = loaded.unused.size();
  if (unused)
    tell(cat("holds ", unused, unused == 1 ? " tensor" : " tensors", " that this program has no use for: ",
             oneLine(namePatterns(loaded.unused))));
  if (!loaded.newState.empty())
    tell(cat("holds no state of the optimizer, which begins anew: ", oneLine(namePatterns(loaded.newState))));
}

void Run::prepare() {
  world_.beacon().alone("the preparation of data and parameters");
  if (options_.generation) {
    session_ = std::make_unique<Session>(program_, payload_.kernels, position_);
    generation_ = std::make_unique<Generation>(world_, *session_, *options_.generation, options_.seed);
  } else {
    session_ = std::make_unique<Session>(program_, payload_.kernels, position_, options_.data, "--data");
  }
  if (options_.shuffle)
    session_->data().shuffle(options_.seed);
  planSteps();
  prepareEvaluation();
  if (!options_.dumpGrads.empty() && totalSteps_ == 0)
    badInput("--dump-grads needs at least 1 step, got: 0");
  if (!options_.report.empty() && totalSteps_ == 0)
    badInput("--report counts per step and needs at least 1, got: 0");
  std::unique_ptr<ParameterFiles> files;
  if (!options_.load.empty())
    files = std::make_unique<ParameterFiles>(options_.load);
  else if (world_.rank() == 0 && program_.header().mode == Mode::Infer &&
           std::any_of(program_.args().begin(), program_.args().end(),
                       [](const Arg &arg) { return arg.kind == ArgKind::Param; }))
    std::fprintf(stderr, "note: no --load: the parameters are the initial ones of --seed %llu\n",
                 static_cast<unsigned long long>(options_.seed));
  arena_ = std::make_unique<Arena>(program_.header().arenaBytes);
  session_->setArena(*arena_);
  LoadSummary loaded = initializeArguments(program_, position_, options_.seed, files.get(), arena_->base());
  openFiles();
  if (world_.rank() == 0)
    tellLoaded(options_.load, loaded);
  setHostThreads(options_.threads);
}

void Run::fillInputs(uint64_t index, StepRecord &record) {
  if (generation_)
    return generation_->fill(arena_->base());
  uint64_t perEpoch = session_->data().batched() ? session_->data().batchesPerEpoch() : totalSteps_;
  record.epoch = session_->data().batched() ? index / perEpoch + 1 : 0;
  record.rows = session_->fill(index / perEpoch, index % perEpoch);
}

void Run::step(uint64_t index) {
  StepRecord record;
  record.step = index + 1;
  world_.beacon().beginStep(record.step, false);
  fillInputs(index, record);
  if (trace_) {
    session_->executor().observer().setTrace(index < trace_->steps() ? trace_.get() : nullptr);
    trace_->beginStep(record.step);
  }
  delayStep();
  session_->executor().step([&](uint32_t result) {
    outputs_->onProbe(result, record);
    if (generation_)
      generation_->onProbe(result);
  });
  outputs_->write(record);
  if (generation_)
    generation_->advance();
  if (progress_) {
    progress_->step(record);
    checkLoss(record);
  }
}

// --inject-delay.
void Run::delayStep() {
  auto delay = options_.delays.find(uint32_t(world_.rank()));
  if (delay == options_.delays.end())
    return;
  world_.beacon().alone("the injected delay");
  int64_t begin = nowNanoseconds();
  std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(delay->second));
  session_->executor().observer().delayed(begin);
}

// Told once, at once; only rank 0 looks, whose loss is the one that is told everywhere else.
void Run::checkLoss(const StepRecord &record) {
  if (!record.loss || std::isfinite(*record.loss))
    return;
  std::string what = cat("the loss is ", std::isnan(*record.loss) ? "nan" : "infinite", " in step ", record.step);
  if (options_.stopOnNan)
    workFailed(what, ", and --stop-on-nan ends the run");
  if (!hasWarned_)
    std::fprintf(stderr, "warning: %s\n", what.c_str());
  hasWarned_ = true;
}

bool Run::isEvaluatedAfter(uint64_t step) const {
  if (!evaluation_)
    return false;
  uint64_t every = options_.evalEvery ? *options_.evalEvery
                   : session_->data().batched() && step != 0 ? session_->data().batchesPerEpoch()
                                                      : UINT64_MAX;
  return step == totalSteps_ || (step != 0 && step % every == 0);
}

void Run::evaluate(uint64_t step) {
  EvaluationRecord record = evaluation_->run(step);
  uint64_t perEpoch = session_->data().batched() ? session_->data().batchesPerEpoch() : 0;
  if (progress_)
    progress_->evaluation(step, perEpoch == 0 ? 0 : (step + perEpoch - 1) / perEpoch, record);
}

void Run::writeParams() {
  std::vector<DumpTensor> tensors;
  for (const Tensor &tensor : program_.tensors())
    if (isModelState(tensor.kind))
      tensors.push_back({&tensor, session_->address(tensor.view)});
  dumpTensors(world_, program_, position_, tensors, paramsFile_.get());
}

void Run::writeReport() {
  RankReport mine;
  mine.rank = uint64_t(world_.rank());
  Report report;
  report.program = program_.name();
  for (uint32_t axis = 0; axis < program_.axes().size(); ++axis) {
    std::string name(program_.str(program_.axes()[axis].name));
    report.addAxis(name, program_.axes()[axis].size);
    mine.addCoordinate(name, program_.axes()[axis].size, program_.coordinate(position_, axis));
  }
  mine.bytes = countBytes(program_);
  mine.bytes.peak = arena_->size();
  session_->fabric().report(totalSteps_, mine);
  mine.measured["waiting_ms"] = session_->executor().observer().waitingSeconds() * 1000 / double(totalSteps_);
  std::vector<std::string> texts = world_.gather(toText(toJson(mine), -1));
  if (!reportFile_)
    return;
  ReportJson json = toJson(report);
  for (const std::string &text : texts)
    json["ranks"].push_back(ReportJson::parse(text));
  reportFile_->append(toText(json, 2) + "\n");
  reportFile_->commit();
}

// Rank by rank, so that rank 0 holds one text at a time.
void Run::writeTrace() {
  Beacon::Together together(world_.beacon(), "the collection of traces");
  std::string text = trace_->text(uint32_t(world_.rank()), traceZero_);
  uint64_t size = text.size();
  if (world_.rank() != 0) {
    world_.sendToFirst(reinterpret_cast<const char *>(&size), sizeof size);
    world_.sendToFirst(text.data(), size);
    return;
  }
  traceFile_->append("{\"displayTimeUnit\": \"ms\", \"traceEvents\": [\n" + text);
  for (int other = 1; other < world_.size(); ++other) {
    world_.receiveFrom(other, reinterpret_cast<char *>(&size), sizeof size);
    text.resize(size);
    world_.receiveFrom(other, text.data(), size);
    traceFile_->append(",\n" + text);
  }
  traceFile_->append("\n]}\n");
  traceFile_->commit();
  if (totalSteps_ > trace_->steps())
    std::fprintf(stderr, "note: %s holds the first %llu of %llu steps; --trace-steps says how many\n",
                 options_.trace.c_str(), static_cast<unsigned long long>(trace_->steps()),
                 static_cast<unsigned long long>(totalSteps_));
}

void Run::connect() {
  Beacon::Together together(world_.beacon(), "the making of communicators");
  session_->connect(options_.localComm);
  if (evaluation_)
    evaluation_->connect(*arena_);
}

void Run::resolve() {
  world_.beacon().alone("the preparation of kernels");
  const Fabric &fabric = session_->fabric();
  if (const std::string &problem = fabric.windowProblem(); !problem.empty()) {
    if (options_.localComm == LocalComm::Windows)
      workFailed("--local-comm windows cannot be had: ", problem);
    if (fabric.isFirstOfMachine())
      std::fprintf(stderr, "note: all-reduces between ranks of this machine go through MPI: %s\n",
                   problem.c_str());
  }
  session_->resolve(world_.crowded(), world_.beacon());
  if (evaluation_)
    evaluation_->resolve(world_.crowded(), world_.beacon());
}

void Run::execute() {
  if (!options_.trace.empty()) {
    trace_ = std::make_unique<Trace>(program_, std::min(options_.traceSteps, totalSteps_));
    traceZero_ = world_.commonMoment();
  }
  if (progress_)
    progress_->start();
  if (totalSteps_ == 0 && isEvaluatedAfter(0))
    evaluate(0);
  for (uint64_t index = 0; index < totalSteps_; ++index) {
    step(index);
    if (isEvaluatedAfter(index + 1))
      evaluate(index + 1);
  }
  if (progress_)
    progress_->finish();
  outputs_->commit();
  if (generation_)
    generation_->finish();
  if (!options_.dumpParams.empty())
    writeParams();
  if (!options_.report.empty())
    writeReport();
  if (trace_)
    writeTrace();
}

// Windows wait for all their ranks.
void Run::disconnect() {
  session_->endSteps();
  if (evaluation_)
    evaluation_->endSteps();
  Beacon::Together together(world_.beacon(), "the freeing of communicators");
  evaluation_.reset();
  session_.reset();
}

} // namespace

Invocation readInvocation(int argc, const char *const *argv) {
  Invocation invocation;
  invocation.executable = argv[0];
  try {
    invocation.payload = loadPayload("/proc/self/exe", invocation.note);
    invocation.options = parseOptions(argc, argv, *invocation.payload.program,
                                      invocation.payload.evaluation.get());
  } catch (const Error &caught) {
    invocation.error = caught;
  } catch (const std::exception &caught) {
    invocation.error = Error(kExitWorkFailed, caught.what());
  }
  return invocation;
}

int runExecutable(World &world, Invocation invocation) {
  LoadedPayload &payload = invocation.payload;
  const Options &options = invocation.options;
  std::optional<Error> error = invocation.error;
  if (!error && world.startError())
    error = world.startError();
  if (!error && !options.text && uint32_t(world.size()) != payload.program->numPositions())
    error = Error(kExitBadInput,
                  cat("this program runs on ", payload.program->numPositions(),
                      payload.program->numPositions() == 1 ? " rank (" : " ranks (",
                      meshText(*payload.program), "), got: ", world.size(),
                      "; start it with: shoal-run -n ", payload.program->numPositions(), " ",
                      invocation.executable));
  if (int code = world.agree(error))
    return code;
  if (!invocation.note.empty() && world.rank() == 0)
    std::fprintf(stderr, "note: %s\n", invocation.note.c_str());
  if (options.text) {
    if (world.rank() == 0)
      std::fputs(options.text->c_str(), stdout);
    return 0;
  }

  Run run(world, payload, options);
  auto locally = [&](void (Run::*part)()) {
    std::optional<Error> failed;
    try {
      (run.*part)();
    } catch (const Error &caught) {
      failed = caught;
    } catch (const std::exception &caught) {
      failed = Error(kExitWorkFailed, caught.what());
    }
    return world.agree(failed);
  };
  auto together = [&](void (Run::*part)()) {
    try {
      (run.*part)();
    } catch (const Error &caught) {
      world.abort(caught);
    } catch (const std::exception &caught) {
      world.abort(Error(kExitWorkFailed, caught.what()));
    }
  };
  if (int code = locally(&Run::prepare))
    return code;
  together(&Run::connect);
  if (int code = locally(&Run::resolve))
    return code;
  together(&Run::execute);
  together(&Run::disconnect);
  return 0;
}

} // namespace shoal::rt
