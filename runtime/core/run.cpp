// A run: load, check the command line, prepare memory and data, step, write results.
#include "core/run.h"
#include "core/arena.h"
#include "core/checkpoint_load.h"
#include "core/checkpoint_writer.h"
#include "core/evaluation.h"
#include "core/footprint.h"
#include "core/generation.h"
#include "core/options.h"
#include "core/outputs.h"
#include "core/parameters.h"
#include "core/payload.h"
#include "core/progress.h"
#include "core/session.h"
#include "core/standard_output.h"
#include "core/step_plan.h"
#include "core/timeline.h"
#include "shoal-rt/report.h"
#include "shoal-rt/timeline_page.h"
#include "shoal-rt/traffic.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
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
        training_(program_.header().mode == Mode::Train), seed_(options.seed.value_or(0)),
        shuffled_(options.shuffle) {}

  void openCheckpoint(); // collective: where --resume goes on
  // Local parts: every rank may fail on its own, and the caller makes them agree.
  void openData();
  bool isDataInParts() const; // of which each rank has opened its own, so that agreeOnRows() comes before prepare()
  void prepare(); // arena, first values, output files
  void resolve(); // rows to calls
  // Collective parts: a rank that fails must stop the others.
  void agreeOnRows();
  void connect(); // communicators
  void execute(); // all steps, and what they leave
  void disconnect(); // the end of communicators

private:
  void goOn();
  void openEvaluation();
  LoadSummary firstValues();
  void openFiles();
  void step(uint64_t index);
  void fillInputs(uint64_t index, StepRecord &record);
  bool isEvaluatedAfter(uint64_t step) const;
  void evaluate(uint64_t step);
  bool isSavedAfter(uint64_t step) const;
  void save(uint64_t step);
  void writeParams();
  void writeReport();
  void writeTrace();
  void writeTimeline();
  bool isTraced(uint64_t step) const;
  void delayStep();
  void checkLoss(const StepRecord &record);

  World &world_;
  const Program &program_;
  LoadedPayload &payload_;
  const Options &options_;
  uint32_t position_;
  bool training_;
  uint64_t seed_;
  bool shuffled_;
  StepPlan plan_;

  std::unique_ptr<Arena> arena_;
  std::unique_ptr<Session> session_;
  std::unique_ptr<Evaluation> evaluation_; // null: none asked for
  std::unique_ptr<Generation> generation_; // null: none asked for
  std::unique_ptr<Checkpoint> checkpoint_;   // of --resume; until its tensors are read
  std::unique_ptr<CheckpointWriter> writer_; // null: nothing is saved
  std::unique_ptr<Outputs> outputs_;
  std::unique_ptr<Progress> progress_; // of rank 0
  std::unique_ptr<OutputFile> paramsFile_, reportFile_, traceFile_, timelineFile_;
  std::unique_ptr<Trace> trace_; // null: none asked for
  int64_t traceZero_ = 0;
  uint64_t traceEnd_ = 0, timelineStep_ = 0; // the last step of --trace; 0: none asked for
  bool hasWarned_ = false; // of a loss that is no number
};

// Rank 0 says which checkpoint it is, for others may see a folder that is not up to date. Each file is read once to the
// end, by one of the ranks.
void Run::openCheckpoint() {
  if (options_.resume.empty())
    return;
  std::string path;
  uint32_t crc = 0;
  world_.agreeAfter([&] {
    if (world_.rank() != 0)
      return;
    checkpoint_ = std::make_unique<Checkpoint>(findCheckpoint(options_.resume));
    path = checkpoint_->path();
    crc = checkpoint_->indexCrc();
  });
  path = world_.broadcastText(path);
  world_.broadcast(reinterpret_cast<char *>(&crc), sizeof crc);
  world_.agreeAfter([&] {
    world_.beacon().alone("the check of the checkpoint");
    if (!checkpoint_)
      checkpoint_ = std::make_unique<Checkpoint>(path);
    if (checkpoint_->indexCrc() != crc)
      badInput(path, ": its index is another one here than where rank 0 runs");
    int turn = 0;
    for (const auto &[name, file] : checkpoint_->index().files)
      if (turn++ % world_.size() == world_.rank())
        checkpoint_->checkFile(name);
  });
}

// Where the checkpoint's run would have gone on.
void Run::goOn() {
  const CheckpointIndex &index = checkpoint_->index();
  plan_.begin = resumedPosition(index, checkpoint_->path(), session_->data(), options_);
  seed_ = index.seed;
  shuffled_ = index.shuffled;
}

void Run::openEvaluation() {
  if (options_.evalData.empty())
    return;
  // Inputs that are no batch are the same for both unless said otherwise.
  std::map<std::string, std::string> files = options_.evalData;
  for (const Arg &arg : payload_.evaluation->args())
    if (auto name = std::string(payload_.evaluation->str(arg.name));
        arg.kind == ArgKind::Input && arg.batchDim < 0 && options_.data.count(name))
      files.try_emplace(name, options_.data.at(name));
  evaluation_ = std::make_unique<Evaluation>(world_, *payload_.evaluation, payload_.kernels, position_, files);
}

void Run::openFiles() {
  outputs_ = std::make_unique<Outputs>(world_, *session_, options_, plan_.total);
  if (world_.rank() != 0)
    return;
  auto open = [](const std::string &path) {
    return path.empty() ? nullptr : std::make_unique<OutputFile>(path);
  };
  paramsFile_ = open(options_.dumpParams);
  reportFile_ = open(options_.report);
  traceFile_ = open(options_.trace);
  timelineFile_ = open(options_.timeline);
  bool line = onTerminal() && !options_.noProgress;
  // The log goes where printed outputs and text go, which somebody may read by program.
  bool printsOutputs = (options_.print && !training_) || (generation_ && !line);
  if (printsOutputs && !options_.logEvery && options_.metrics.empty())
    return;
  progress_ = std::make_unique<Progress>(plan_.begin.step, plan_.total, plan_.epochs,
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

void Run::openData() {
  world_.beacon().alone("the opening of data");
  if (options_.generation) {
    session_ = std::make_unique<Session>(program_, payload_.kernels, position_);
    generation_ = std::make_unique<Generation>(world_, *session_, *options_.generation, seed_);
    return;
  }
  session_ = std::make_unique<Session>(program_, payload_.kernels, position_, options_.data, "--data");
  openEvaluation();
}

bool Run::isDataInParts() const {
  return !options_.generation &&
         (Dataset::isHeldInParts(program_) ||
          (!options_.evalData.empty() && Dataset::isHeldInParts(*payload_.evaluation)));
}

void Run::agreeOnRows() {
  auto agree = [&](Session &session) {
    if (!Dataset::isHeldInParts(session.program()))
      return;
    std::vector<uint64_t> most = world_.maxima(session.data().rowsHere());
    world_.agreeAfter([&] { session.data().agreeOnRows(most); });
  };
  agree(*session_);
  if (evaluation_)
    agree(evaluation_->session());
}

void Run::prepare() {
  world_.beacon().alone("the preparation of data and parameters");
  if (evaluation_)
    evaluation_->checkRows();
  if (checkpoint_)
    goOn();
  if (shuffled_)
    session_->data().shuffle(seed_);
  if (generation_)
    plan_.total = generation_->steps();
  else
    plan_ = planSteps(program_, session_->data(), options_, plan_.begin);
  if (!options_.dumpGrads.empty() && plan_.steps() == 0)
    badInput("--dump-grads needs at least 1 step, got: 0");
  if (!options_.timeline.empty() && plan_.steps() == 0)
    badInput("--timeline is of a step and needs at least 1, got: 0");
  if (auto step = options_.timelineStep; step && (*step <= plan_.begin.step || *step > plan_.total))
    badInput("--timeline-step must be one of the steps of this run, ", plan_.begin.step + 1, " to ", plan_.total,
             ", got: ", *step);
  if (!options_.report.empty() && plan_.steps() == 0)
    badInput("--report counts per step and needs at least 1, got: 0");
  arena_ = std::make_unique<Arena>(program_.header().arenaBytes);
  session_->setArena(*arena_);
  LoadSummary loaded = firstValues();
  if (!options_.save.empty())
    writer_ =
        std::make_unique<CheckpointWriter>(world_, program_, position_, options_.save, plan_.begin.step, options_.keep);
  openFiles();
  if (world_.rank() == 0)
    tellLoaded(checkpoint_ ? checkpoint_->path() : options_.load, loaded);
  checkpoint_.reset();
  setHostThreads(options_.threads);
}

LoadSummary Run::firstValues() {
  if (checkpoint_)
    return loadCheckpoint(program_, position_, *checkpoint_, arena_->base());
  std::unique_ptr<ParameterFiles> files;
  if (!options_.load.empty())
    files = std::make_unique<ParameterFiles>(options_.load);
  else if (world_.rank() == 0 && program_.header().mode == Mode::Infer &&
           std::any_of(program_.args().begin(), program_.args().end(),
                       [](const Arg &arg) { return arg.kind == ArgKind::Param; }))
    std::fprintf(stderr, "note: no --load: the parameters are the initial ones of --seed %llu\n",
                 static_cast<unsigned long long>(seed_));
  return initializeArguments(program_, position_, seed_, files.get(), arena_->base());
}

void Run::fillInputs(uint64_t index, StepRecord &record) {
  if (generation_)
    return generation_->fill(arena_->base());
  TrainingPosition at = plan_.after(index);
  record.epoch = plan_.perEpoch != 0 ? at.epoch + 1 : 0;
  record.rows = session_->fill(at.epoch, at.batch);
}

void Run::step(uint64_t index) {
  StepRecord record;
  record.step = index + 1;
  record.isFirst = index == plan_.begin.step;
  world_.beacon().beginStep(record.step, false);
  fillInputs(index, record);
  if (trace_) {
    session_->executor().observer().setTrace(isTraced(record.step) ? trace_.get() : nullptr);
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
  if (step == plan_.total)
    return true;
  return options_.evalEvery ? step % *options_.evalEvery == 0 : plan_.perEpoch != 0 && plan_.after(step).batch == 0;
}

void Run::evaluate(uint64_t step) {
  EvaluationRecord record = evaluation_->run(step);
  TrainingPosition at = plan_.after(step);
  if (progress_)
    progress_->evaluation(step, at.epoch + (at.batch != 0 ? 1 : 0), record);
}

bool Run::isSavedAfter(uint64_t step) const {
  return writer_ && (step == plan_.total || (options_.saveEvery && step % *options_.saveEvery == 0));
}

void Run::save(uint64_t step) {
  auto begin = std::chrono::steady_clock::now();
  CheckpointIndex head;
  head.program = program_.name();
  head.plan = meshText(program_);
  head.ranks = program_.numPositions();
  head.position = plan_.after(step);
  head.seed = seed_;
  head.shuffled = shuffled_;
  head.rows = session_->data().rows();
  head.batchRows = session_->data().batchRows();
  std::optional<SavedCheckpoint> saved = writer_->save(std::move(head), arena_->base(), [&](double part) {
    if (progress_)
      progress_->saving(step, part);
  });
  if (saved && progress_)
    progress_->saved(step, *saved,
                     std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
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
  report.plan = program_.plan();
  for (uint32_t axis = 0; axis < program_.axes().size(); ++axis) {
    std::string name(program_.str(program_.axes()[axis].name));
    report.addAxis(name, program_.axes()[axis].size);
    mine.addCoordinate(name, program_.axes()[axis].size, program_.coordinate(position_, axis));
  }
  mine.bytes = countBytes(program_, position_);
  mine.bytes.peak = arena_->size();
  session_->fabric().report(plan_.steps(), mine);
  mine.measured["waiting_ms"] = session_->executor().observer().waitingSeconds() * 1000 / double(plan_.steps());
  if (uint64_t tiles = session_->executor().attentionTiles())
    mine.measured["attention_tiles"] = double(tiles) / double(plan_.steps());
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
  std::string text = trace_->text(uint32_t(world_.rank()), traceZero_, traceEnd_);
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
  if (plan_.total > traceEnd_)
    std::fprintf(stderr, "note: %s holds the first %llu of %llu steps; --trace-steps says how many\n",
                 options_.trace.c_str(), static_cast<unsigned long long>(options_.traceSteps),
                 static_cast<unsigned long long>(plan_.steps()));
}

bool Run::isTraced(uint64_t step) const { return step <= traceEnd_ || step == timelineStep_; }

void Run::writeTimeline() {
  Beacon::Together together(world_.beacon(), "the collection of the timeline");
  std::vector<std::string> texts = world_.gather(tellRank(program_, position_, *trace_, timelineStep_, traceZero_));
  if (!timelineFile_)
    return;
  MeasuredTimeline measured = joinTimeline(texts, countStages(program_.stages()));
  measured.timeline.title = program_.name();
  measured.timeline.note = cat("Measured in step ", timelineStep_, " of ", plan_.total, ".");
  measured.timeline.facts = {meshText(program_), std::string(program_.plan())};
  if (options_.timeline.ends_with(".html")) {
    timelineFile_->append(writeTimelinePage(measured.timeline));
  } else {
    ReportJson json = toChromeTrace(measured.timeline);
    ReportJson &costs = json["pipelineCosts"] = ReportJson::object();
    if (!program_.stages().empty()) // not of a program by hand
      costs["of"] = program_.stages();
    costs.update(measured.costs);
    timelineFile_->append(toText(json, -1) + "\n");
  }
  timelineFile_->commit();
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
      std::fprintf(stderr, "note: reductions and gathers between ranks of this machine go through MPI: %s\n",
                   problem.c_str());
  }
  session_->resolve(world_.crowded(), world_.beacon());
  if (evaluation_)
    evaluation_->resolve(world_.crowded(), world_.beacon());
}

void Run::execute() {
  if (!options_.trace.empty())
    traceEnd_ = plan_.begin.step + std::min(options_.traceSteps, plan_.steps());
  if (!options_.timeline.empty())
    timelineStep_ = options_.timelineStep.value_or(plan_.total);
  if (uint64_t steps = traceEnd_ - (traceEnd_ ? plan_.begin.step : 0) + (timelineStep_ > traceEnd_ ? 1 : 0)) {
    trace_ = std::make_unique<Trace>(program_, position_, steps);
    traceZero_ = world_.commonMoment();
  }
  if (progress_)
    progress_->start();
  auto between = [&](uint64_t done) {
    if (isSavedAfter(done))
      save(done);
    if (isEvaluatedAfter(done))
      evaluate(done);
  };
  if (plan_.steps() == 0)
    between(plan_.total);
  for (uint64_t index = plan_.begin.step; index < plan_.total; ++index) {
    step(index);
    between(index + 1);
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
  if (traceEnd_)
    writeTrace();
  if (timelineStep_)
    writeTimeline();
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
    try {
      world.agreeAfter([&] {
        if (world.rank() == 0)
          std::fputs(options.text->c_str(), stdout);
        finishOutput();
      });
    } catch (const ToldError &told) {
      return told.code;
    }
    return 0;
  }

  Run run(world, payload, options);
  auto together = [&](void (Run::*part)()) {
    try {
      (run.*part)();
    } catch (const Error &caught) {
      world.abort(caught);
    } catch (const std::exception &caught) {
      world.abort(Error(kExitWorkFailed, caught.what()));
    }
  };
  int code = 0;
  try {
    run.openCheckpoint();
    world.agreeAfter([&] {
      run.openData();
      if (!run.isDataInParts())
        run.prepare();
    });
    if (run.isDataInParts()) {
      run.agreeOnRows();
      world.agreeAfter([&] { run.prepare(); });
    }
    together(&Run::connect);
    world.agreeAfter([&] { run.resolve(); });
    together(&Run::execute);
  } catch (const ToldError &told) {
    code = told.code;
  }
  if (code == 0)
    together(&Run::disconnect);
  return code;
}

} // namespace shoal::rt
