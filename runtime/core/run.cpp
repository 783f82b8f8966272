// A run: load, check the command line, prepare memory and data, step, write results.
#include "core/run.h"
#include "core/arena.h"
#include "core/dataset.h"
#include "core/evaluation.h"
#include "core/executor.h"
#include "core/footprint.h"
#include "core/gather.h"
#include "core/options.h"
#include "core/parameters.h"
#include "core/payload.h"
#include "core/print.h"
#include "core/progress.h"
#include "mpi/fabric.h"
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

// What a person may want to read, and well inside the size of one message of text.
constexpr uint64_t kMaxPrinted = 1 << 20;

// An output file that grows batch by batch, on every rank; the file is rank 0's.
struct Output {
  const Result *result;
  std::string path;
  std::unique_ptr<OutputFile> file;
  uint64_t dataStart = 0;
};

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
  void openOutputs();
  void step(uint64_t index);
  bool isEvaluatedAfter(uint64_t step) const;
  void evaluate(uint64_t step);
  void onProbe(uint32_t index, StepRecord &record, bool firstStep);
  void writeOutputs(uint64_t batch, uint64_t valid);
  void printOutputs(uint64_t batch, uint64_t valid);
  void writeGrads();
  void writeParams();
  void writeReport();
  void writeTrace();
  void delayStep();
  void checkLoss(const StepRecord &record);
  const char *local(uint32_t view) const { return arena_->base() + program_.views()[view].offset; }

  World &world_;
  const Program &program_;
  LoadedPayload &payload_;
  const Options &options_;
  uint32_t position_;
  bool training_;
  uint64_t totalSteps_ = 0, totalEpochs_ = 0;

  std::unique_ptr<Dataset> dataset_;
  std::unique_ptr<Arena> arena_;
  std::unique_ptr<Fabric> fabric_;
  std::unique_ptr<Executor> executor_;
  std::unique_ptr<Evaluation> evaluation_; // null: none asked for
  std::unique_ptr<Progress> progress_;
  std::vector<Output> outputs_;
  std::unique_ptr<OutputFile> paramsFile_, gradsFile_, reportFile_, traceFile_;
  std::unique_ptr<Trace> trace_; // null: none asked for
  int64_t traceZero_ = 0;
  bool hasWarned_ = false; // of a loss that is no number
  std::map<uint32_t, std::vector<char>> held_; // results copied at their probe
};

void Run::planSteps() {
  if (!dataset_->batched()) {
    totalSteps_ = options_.steps.value_or(1);
    return;
  }
  uint64_t perEpoch = dataset_->batchesPerEpoch();
  if (options_.steps) {
    totalSteps_ = *options_.steps;
    if (perEpoch == 0 && totalSteps_ != 0)
      badInput("--steps ", totalSteps_, " needs data, but the input files have 0 rows");
    totalEpochs_ = perEpoch == 0 ? 0 : (totalSteps_ + perEpoch - 1) / perEpoch;
    return;
  }
  totalEpochs_ = options_.epochs.value_or(1);
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

void Run::openOutputs() {
  if (options_.print)
    for (const Result &result : program_.results())
      if (uint64_t count = program_.views()[result.view].elements;
          result.kind == ResultKind::Output && count > kMaxPrinted)
        badInput("--print prints outputs of up to ", kMaxPrinted, " elements per rank, got: ", count,
                 " in '", program_.str(result.name), "'; --output writes them to a file");
  for (const auto &[name, path] : options_.outputs)
    for (const Result &result : program_.results()) {
      if (result.kind != ResultKind::Output || program_.str(result.name) != name)
        continue;
      if (result.batchDim < 0 && totalSteps_ != 1)
        badInput("--output ", name, " has no rows, and the data make ", totalSteps_,
                 " batches, expected: 1");
      outputs_.push_back({&result, path, nullptr, 0});
      std::vector<uint64_t> shape;
      for (const Dim &dim : program_.dims(result))
        shape.push_back(dim.global);
      if (result.batchDim >= 0)
        shape[size_t(result.batchDim)] = dataset_->rows();
      DType type = program_.views()[result.view].dtype;
      if (type == DType::BF16)
        badInput("--output ", name, " is bf16, which .npy files lack; cast it to f32");
      std::string header = npyHeader(fileTypeOf(type), shape);
      outputs_.back().dataStart = header.size();
      if (world_.rank() != 0)
        continue;
      outputs_.back().file = std::make_unique<OutputFile>(path);
      outputs_.back().file->write(header.data(), header.size(), 0);
    }
  if (world_.rank() != 0)
    return;
  auto open = [](const std::string &path) {
    return path.empty() ? nullptr : std::make_unique<OutputFile>(path);
  };
  paramsFile_ = open(options_.dumpParams);
  gradsFile_ = open(options_.dumpGrads);
  reportFile_ = open(options_.report);
  traceFile_ = open(options_.trace);
  // The log goes where --print does, which somebody may read by program.
  if (options_.print && !training_ && !options_.logEvery && options_.metrics.empty())
    return;
  bool line = onTerminal() && !options_.noProgress;
  progress_ = std::make_unique<Progress>(totalSteps_, totalEpochs_,
                                         options_.logEvery.value_or(line ? 1 : 10), line,
                                         options_.metrics);
}

void Run::prepare() {
  world_.beacon().alone("the preparation of data and parameters");
  dataset_ = std::make_unique<Dataset>(program_, position_, options_.data);
  if (options_.shuffle)
    dataset_->shuffle(options_.seed);
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
  std::vector<std::string> unused =
      initializeArguments(program_, position_, options_.seed, files.get(), arena_->base());
  openOutputs();
  if (!unused.empty() && world_.rank() == 0)
    std::fprintf(stderr, "note: %s holds %zu tensors that this program has no use for: %s\n",
                 options_.load.c_str(), unused.size(), oneLine(namePatterns(unused)).c_str());
  setHostThreads(options_.threads);
}

void Run::onProbe(uint32_t index, StepRecord &record, bool firstStep) {
  const Result &result = program_.results()[index];
  const View &view = program_.views()[result.view];
  const char *at = local(result.view);
  auto hold = [&] { held_[index].assign(at, at + view.elements * elementBytes(view.dtype)); };
  switch (result.kind) {
  case ResultKind::Loss:
    record.loss = loadElement(at, view.dtype, 0);
    break;
  case ResultKind::Metric:
    record.metrics.emplace_back(program_.str(result.name), loadElement(at, view.dtype, 0));
    break;
  case ResultKind::Output:
    if (!outputs_.empty() || options_.print)
      hold();
    break;
  case ResultKind::Grad:
    if (firstStep && !options_.dumpGrads.empty())
      hold();
    break;
  }
}

void Run::step(uint64_t index) {
  uint64_t perEpoch = dataset_->batched() ? dataset_->batchesPerEpoch() : totalSteps_;
  StepRecord record;
  record.step = index + 1;
  record.epoch = dataset_->batched() ? index / perEpoch + 1 : 0;
  world_.beacon().beginStep(record.step, false);
  record.rows = dataset_->fill(index / perEpoch, index % perEpoch, arena_->base());
  if (trace_) {
    executor_->observer().setTrace(index < trace_->steps() ? trace_.get() : nullptr);
    trace_->beginStep(record.step);
  }
  delayStep();
  executor_->step([&](uint32_t result) { onProbe(result, record, index == 0); });
  if (!outputs_.empty())
    writeOutputs(index, record.rows);
  if (options_.print)
    printOutputs(index, record.rows);
  if (index == 0 && !options_.dumpGrads.empty())
    writeGrads();
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
  executor_->observer().delayed(begin);
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
                   : dataset_->batched() && step != 0 ? dataset_->batchesPerEpoch()
                                                      : UINT64_MAX;
  return step == totalSteps_ || (step != 0 && step % every == 0);
}

void Run::evaluate(uint64_t step) {
  EvaluationRecord record = evaluation_->run(step);
  uint64_t perEpoch = dataset_->batched() ? dataset_->batchesPerEpoch() : 0;
  if (progress_)
    progress_->evaluation(step, perEpoch == 0 ? 0 : (step + perEpoch - 1) / perEpoch, record);
}

void Run::writeOutputs(uint64_t batch, uint64_t valid) {
  for (Output &output : outputs_) {
    const Result &result = *output.result;
    uint32_t index = uint32_t(output.result - program_.results().data());
    uint64_t size = elementBytes(program_.views()[result.view].dtype);
    auto take = [&](Box box, const char *data) {
      if (result.batchDim >= 0) { // the batch's box becomes a box of the file
        BoxDim &rows = box.dims[size_t(result.batchDim)];
        rows.valid = valid > rows.start ? std::min(rows.local, valid - rows.start) : 0;
        rows.start += batch * dataset_->batchRows();
        rows.global = dataset_->rows();
      }
      box.forEachRun([&](uint64_t global, uint64_t local, uint64_t count) {
        output.file->write(data + local * size, count * size, output.dataStart + global * size);
      });
    };
    gatherBoxes(world_, program_, program_.dims(result), size, position_, held_[index].data(),
                take);
  }
}

// Every output as each rank holds it, in rank order.
void Run::printOutputs(uint64_t batch, uint64_t valid) {
  std::string text, head;
  if (totalSteps_ > 1)
    head = "batch " + std::to_string(batch) + " ";
  for (uint32_t index = 0; index < program_.results().size(); ++index) {
    const Result &result = program_.results()[index];
    if (result.kind != ResultKind::Output)
      continue;
    Box box = boxOf(program_, program_.dims(result), position_);
    if (result.batchDim >= 0) {
      BoxDim &rows = box.dims[size_t(result.batchDim)];
      rows.valid = valid > rows.start ? std::min(rows.valid, valid - rows.start) : 0;
    }
    text += head + "rank " + std::to_string(world_.rank()) + " " +
            std::string(program_.str(result.name)) + ": " +
            boxText(box, program_.views()[result.view].dtype, held_[index].data()) + "\n";
  }
  for (const std::string &lines : world_.gather(text))
    std::fputs(lines.c_str(), stdout);
  std::fflush(stdout);
}

void Run::writeGrads() {
  std::vector<DumpTensor> tensors;
  for (uint32_t i = 0; i < program_.results().size(); ++i) {
    const Result &result = program_.results()[i];
    if (result.kind == ResultKind::Grad)
      tensors.push_back({std::string(program_.str(result.name)), program_.dims(result),
                         program_.views()[result.view].dtype, held_[i].data()});
  }
  dumpTensors(world_, program_, position_, tensors, gradsFile_.get());
  held_.clear();
}

void Run::writeParams() {
  std::vector<DumpTensor> tensors;
  for (const Arg &arg : program_.args())
    if (isModelState(arg.kind))
      tensors.push_back({std::string(program_.str(arg.name)), program_.dims(arg),
                         program_.views()[arg.view].dtype, local(arg.view)});
  dumpTensors(world_, program_, position_, tensors, paramsFile_.get());
}

void Run::writeReport() {
  RankReport mine;
  mine.rank = uint64_t(world_.rank());
  Report report;
  report.program = program_.name();
  for (uint32_t axis = 0; axis < program_.axes().size(); ++axis) {
    std::string name(program_.str(program_.axes()[axis].name));
    report.axes.emplace_back(name, program_.axes()[axis].size);
    mine.coords.emplace_back(name, program_.coordinate(position_, axis));
  }
  mine.bytes = countBytes(program_);
  mine.bytes.peak = arena_->size();
  fabric_->report(totalSteps_, mine);
  mine.measured["waiting_ms"] = executor_->observer().waitingSeconds() * 1000 / double(totalSteps_);
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
  fabric_ = std::make_unique<Fabric>(program_, position_, *arena_, options_.localComm);
  if (evaluation_)
    evaluation_->connect(*arena_);
}

void Run::resolve() {
  world_.beacon().alone("the preparation of kernels");
  if (const std::string &problem = fabric_->windowProblem(); !problem.empty()) {
    if (options_.localComm == LocalComm::Windows)
      workFailed("--local-comm windows cannot be had: ", problem);
    if (fabric_->isFirstOfMachine())
      std::fprintf(stderr, "note: all-reduces between ranks of this machine go through MPI: %s\n",
                   problem.c_str());
  }
  executor_ = std::make_unique<Executor>(program_, position_, payload_.kernels, arena_->base(),
                                         *fabric_, world_.crowded(), world_.beacon());
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
  for (Output &output : outputs_)
    if (output.file)
      output.file->commit();
  if (!options_.dumpParams.empty())
    writeParams();
  if (!options_.report.empty())
    writeReport();
  if (trace_)
    writeTrace();
}

// Executors show where the rank is until they go; windows wait for all their ranks.
void Run::disconnect() {
  executor_.reset();
  if (evaluation_)
    evaluation_->endSteps();
  Beacon::Together together(world_.beacon(), "the freeing of communicators");
  evaluation_.reset();
  fabric_.reset();
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
