// Progress line, log lines and metrics.
#include "core/progress.h"
#include "core/checkpoint_writer.h"
#include "core/error.h"
#include "core/evaluation.h"
#include "core/print.h"
#include "core/standard_output.h"

#include <cerrno>
#include <cmath>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

#include <nlohmann/json.hpp>

namespace shoal::rt {
namespace {

constexpr double kRedrawSeconds = 0.1;

std::string duration(double seconds) {
  uint64_t whole = uint64_t(std::min(std::max(seconds, 0.0), 1e9));
  char text[48];
  if (whole >= 3600)
    std::snprintf(text, sizeof text, "%llu:%02u:%02u", (unsigned long long)whole / 3600,
                  unsigned(whole / 60 % 60), unsigned(whole % 60));
  else
    std::snprintf(text, sizeof text, "%u:%02u", unsigned(whole / 60), unsigned(whole % 60));
  return text;
}

std::string number(double value) { return numberText(value, 6); }

} // namespace

Progress::Progress(uint64_t doneSteps, uint64_t totalSteps, uint64_t totalEpochs, uint64_t logEvery, bool terminal,
                   const std::string &metricsPath)
    : doneSteps_(doneSteps), totalSteps_(totalSteps), totalEpochs_(totalEpochs), logEvery_(logEvery),
      terminal_(terminal), metricsPath_(metricsPath) {
  if (metricsPath.empty())
    return;
  // An older file is emptied when the first step starts, not before the run is known to be right.
  int fd = open(metricsPath.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  madeMetrics_ = fd >= 0;
  if (!madeMetrics_)
    fd = open(metricsPath.c_str(), O_WRONLY | O_CLOEXEC);
  metrics_ = fd < 0 ? nullptr : fdopen(fd, "w");
  if (!metrics_)
    badInput(metricsPath, ": cannot be written: ", std::strerror(errno));
}

Progress::~Progress() {
  if (metrics_)
    std::fclose(metrics_);
  if (madeMetrics_ && !started_)
    unlink(metricsPath_.c_str());
}

void Progress::start() {
  begin_ = std::chrono::steady_clock::now();
  started_ = true;
  struct stat info;
  if (metrics_ && fstat(fileno(metrics_), &info) == 0 && S_ISREG(info.st_mode) &&
      ftruncate(fileno(metrics_), 0) != 0)
    workFailed(metricsPath_, ": cannot be emptied: ", std::strerror(errno));
}

double Progress::seconds() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
}

void Progress::writeMetrics(const StepRecord &record) {
  // JSON has no NaN or infinity; they are written as null.
  nlohmann::ordered_json line{{"step", record.step}, {"epoch", record.epoch}};
  if (record.loss)
    line["loss"] = *record.loss;
  for (const auto &[name, value] : record.metrics)
    line[name] = value;
  line["wall_s"] = std::round(seconds() * 1e6) / 1e6;
  writeLine(line.dump());
}

// Line by line: whoever follows the file sees whole lines, and a full disk is seen at once.
void Progress::writeLine(const std::string &line) {
  if (std::fprintf(metrics_, "%s\n", line.c_str()) < 0 || std::fflush(metrics_) != 0)
    workFailed(metricsPath_, ": write failed: ", std::strerror(errno));
}

void Progress::step(const StepRecord &record) {
  rows_ += record.rows;
  if (metrics_)
    writeMetrics(record);
  bool last = record.step == totalSteps_;
  bool due = record.step % logEvery_ == 0 || record.isFirst || last;
  double now = 0;
  if (terminal_) {
    now = seconds();
    due &= last || now - lastDrawn_ >= kRedrawSeconds;
  }
  if (!due)
    return;
  now = seconds() - apart_;
  std::string line = cat("step ", record.step, "/", totalSteps_);
  if (record.epoch != 0)
    line += cat("  epoch ", record.epoch, "/", totalEpochs_);
  if (record.loss)
    line += "  loss " + number(*record.loss);
  for (const auto &[name, value] : record.metrics)
    line += "  " + name + " " + number(value);
  if (rows_ != 0 && now > 0)
    line += "  " + number(std::round(double(rows_) / now)) + " rows/s";
  if (!terminal_)
    return log(line);
  line += "  ETA " + duration(now / double(record.step - doneSteps_) * double(totalSteps_ - record.step));
  std::fprintf(stderr, "\r\x1b[K%s%s", line.c_str(), last ? "\n" : "");
  std::fflush(stderr);
  lastDrawn_ = seconds();
}

void Progress::evaluation(uint64_t step, uint64_t epoch, const EvaluationRecord &record) {
  apart_ += record.seconds;
  if (metrics_) {
    nlohmann::ordered_json line{{"step", step}, {"epoch", epoch}, {"eval_loss", record.loss}};
    for (const auto &[name, value] : record.metrics)
      line["eval_" + name] = value;
    line["wall_s"] = std::round(seconds() * 1e6) / 1e6;
    writeLine(line.dump());
  }
  std::string line = cat("step ", step, "/", totalSteps_);
  if (epoch != 0)
    line += cat("  epoch ", epoch, "/", totalEpochs_);
  line += "  eval_loss " + number(record.loss);
  for (const auto &[name, value] : record.metrics)
    line += "  eval_" + name + " " + number(value);
  if (record.rows != 0)
    line += cat("  on ", record.rows, " rows");
  tell(line);
}

// A log that is lost is work that failed, at once.
void Progress::log(const std::string &line) {
  std::printf("%s\n", line.c_str());
  finishOutput();
}

void Progress::saving(uint64_t step, double part) {
  if (!terminal_)
    return;
  double now = seconds();
  if (now - lastDrawn_ < kRedrawSeconds)
    return;
  std::fprintf(stderr, "\r\x1b[Kstep %llu/%llu  saving %d%%", (unsigned long long)step,
               (unsigned long long)totalSteps_, int(part * 100));
  std::fflush(stderr);
  lastDrawn_ = now;
}

void Progress::saved(uint64_t step, const SavedCheckpoint &saved, double seconds) {
  apart_ += seconds;
  tell(cat("step ", step, "/", totalSteps_, "  saved ", oneLine(saved.path), "  ", number(double(saved.bytes) / 1e6),
           " MB in ", numberText(seconds, 3), " s"));
}

void Progress::tell(const std::string &line) {
  if (!terminal_)
    return log(line);
  // A line of its own above the one that is rewritten.
  std::fprintf(stderr, "\r\x1b[K%s\n", line.c_str());
  std::fflush(stderr);
  lastDrawn_ = -1;
}

void Progress::finish() {
  if (metrics_ && std::fclose(std::exchange(metrics_, nullptr)) != 0)
    workFailed(metricsPath_, ": write failed: ", std::strerror(errno));
}

} // namespace shoal::rt
