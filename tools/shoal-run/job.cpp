// The life of a job, from mpirun's start to the last orphan.
#include "job.h"
#include "core/error.h"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace shoal::rt;

namespace {

using std::chrono::duration;
using std::chrono::milliseconds;

// A job that ends badly is left to mpirun for a while, which knows why ranks ended and reaches
// other machines; then its ranks are killed, and then mpirun: that of Open MPI 4.1 sometimes
// never ends after an MPI_Abort, since PMIx deadlocks while it is shut down.
constexpr auto kRanksPatience = milliseconds(2000), kMpirunPatience = milliseconds(3500);
constexpr auto kTick = milliseconds(100);
constexpr auto kDrain = milliseconds(300);   // for the last words of a dead mpirun
constexpr double kHangGrace = 2;             // seconds beyond the ranks' own watchdogs
constexpr int kSeen = -2;

volatile std::sig_atomic_t received = 0;
volatile std::sig_atomic_t forwards = 0;

// A terminal sends its signals to mpirun, too.
void onSignal(int signal, siginfo_t *info, void *) {
  received = signal;
  forwards = info->si_code != SI_KERNEL;
}

// Parent of a process, 0 when there is none.
pid_t parentOf(pid_t pid) {
  std::FILE *file = std::fopen(cat("/proc/", pid, "/stat").c_str(), "re");
  if (!file)
    return 0;
  char line[512] = "";
  if (!std::fgets(line, sizeof line, file))
    line[0] = '\0';
  std::fclose(file);
  const char *name = std::strrchr(line, ')');
  int parent = 0;
  return name && std::sscanf(name + 1, " %*c %d", &parent) == 1 ? parent : 0;
}

int openProcess(pid_t pid) { return int(syscall(SYS_pidfd_open, pid, 0)); }
void sendSignal(int handle, int signal) {
  syscall(SYS_pidfd_send_signal, handle, signal, nullptr, 0);
}

} // namespace

Job::Job(unsigned ranks) {
  if (ranks == 0)
    return;
  std::string path = folder_.path() + "/board";
  board_ = Board::create(path, ranks);
  handles_.assign(ranks, -1);
  setenv(kBoardVariable, cat(hostName(), ":", path).c_str(), 1);
}

Job::~Job() {
  for (int handle : handles_)
    if (handle >= 0)
      close(handle);
}

void Job::start(const std::vector<char *> &command) {
  // mpirun loses what it cannot write and tells nobody, so its output goes through here, too.
  int ends[2], outputEnds[2];
  if (pipe2(ends, O_CLOEXEC) != 0 || pipe2(outputEnds, O_CLOEXEC) != 0)
    workFailed("no pipe for mpirun: ", std::strerror(errno));
  struct sigaction action {};
  action.sa_sigaction = onSignal;
  action.sa_flags = SA_SIGINFO;
  for (int signal : {SIGINT, SIGTERM, SIGHUP})
    sigaction(signal, &action, nullptr);
  prctl(PR_SET_CHILD_SUBREAPER, 1); // ranks whose mpirun dies become our children
  mpirun_ = fork();
  if (mpirun_ < 0)
    workFailed("mpirun cannot be started: ", std::strerror(errno));
  if (mpirun_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGTERM); // when we are killed, mpirun ends the job
    dup2(ends[1], STDERR_FILENO);
    dup2(outputEnds[1], STDOUT_FILENO);
    execvp("mpirun", command.data());
    std::fprintf(stderr, "error: mpirun cannot be started: %s\n", std::strerror(errno));
    _exit(kExitBadInput);
  }
  close(ends[1]);
  close(outputEnds[1]);
  errors_ = ends[0];
  output_ = outputEnds[0];
  std::signal(SIGPIPE, SIG_IGN); // a job goes on when nobody reads what it prints
}

int Job::run(const std::vector<char *> &command) {
  start(command);
  loop();
  if (bool started = std::any_of(handles_.begin(), handles_.end(), [](int handle) { return handle != -1; });
      filter_.refusal() && !started && *status_ != 0) {
    filter_.expectEnd();
    filter_.finish();
    std::fprintf(stderr, "error: mpirun: %s; see mpirun --help\n", filter_.refusal()->c_str());
    return kExitBadInput;
  }
  filter_.finish();
  if (death_ || filter_.death())
    tellDeath();
  int code = WIFEXITED(*status_) ? WEXITSTATUS(*status_) : filter_.abortCode().value_or(kExitWorkFailed);
  if (endBegan_ || code != 0)
    killOrphans();
  if (outputFailed_)
    return kExitWorkFailed;
  if (signal_ != 0) {
    std::fprintf(stderr, "error: ended by signal %d (%s)\n", signal_, strsignal(signal_));
    return 128 + signal_;
  }
  if (death_ || (ranksKilled_ && code == 0))
    return kExitWorkFailed;
  if (mpirunKilled_ || ranksKilled_)
    code = filter_.abortCode().value_or(kExitWorkFailed);
  return code <= kExitBadInput ? code : kExitWorkFailed;
}

void Job::loop() {
  Clock::time_point last = Clock::now();
  while (true) {
    std::vector<pollfd> ready;
    if (errors_ >= 0)
      ready.push_back({errors_, POLLIN, 0});
    for (int handle : handles_)
      if (handle >= 0)
        ready.push_back({handle, POLLIN, 0});
    // No more is read than is written.
    bool writes = !unwritten_.empty();
    if (writes || output_ >= 0)
      ready.push_back({writes ? STDOUT_FILENO : output_, short(writes ? POLLOUT : POLLIN), 0});
    poll(ready.data(), ready.size(), int(kTick.count()));
    bool isQuiet = ready.empty() || ready.back().revents == 0;
    if (writes && !isQuiet)
      writeOutput();
    else if (output_ >= 0 && !isQuiet)
      readOutput();
    if (errors_ >= 0 && (ready[0].revents & (POLLIN | POLLHUP | POLLERR)))
      readErrors();
    filter_.tick();
    Clock::time_point now = Clock::now();
    // Time counts only while we run ourselves, see Watchdog::watch().
    double passed = std::min(duration<double>(now - last).count(), 5 * duration<double>(kTick).count());
    last = now;
    lookAtSignals();
    lookAtRanks();
    lookForHang(passed);
    if (filter_.abortCode() || filter_.death())
      beginEnd();
    if (death_ && filter_.death())
      tellDeath();
    pressOn();
    int status = 0;
    if (!status_ && waitpid(mpirun_, &status, WNOHANG) == mpirun_) {
      status_ = status;
      mpirunEnded_ = now;
    }
    // Something that mpirun left behind may hold its stderr and stdout open.
    bool isAtEnd = errors_ < 0 && output_ < 0, isDrained = unwritten_.empty() && (output_ < 0 || isQuiet);
    if (status_ && (isDrained || signal_ != 0) && (isAtEnd || now - *mpirunEnded_ > kDrain))
      break;
  }
  lookAtRanks(); // those that ended just before mpirun
  for (int end : {errors_, output_})
    if (end >= 0)
      close(end);
}

void Job::readOutput() {
  char buffer[1 << 16];
  ssize_t got = read(output_, buffer, sizeof buffer);
  if (got < 0 && errno == EINTR)
    return;
  if (got <= 0) {
    close(output_);
    output_ = -1;
  } else if (isRead_ && !outputFailed_) {
    unwritten_.assign(buffer, size_t(got));
    writeOutput();
  }
}

// As much as a pipe takes at once, so that nobody who reads slowly keeps us from looking after the ranks.
void Job::writeOutput() {
  pollfd out{STDOUT_FILENO, POLLOUT, 0};
  while (!unwritten_.empty() && poll(&out, 1, 0) > 0) {
    ssize_t written = write(STDOUT_FILENO, unwritten_.data(), std::min<size_t>(unwritten_.size(), PIPE_BUF));
    if (written >= 0) {
      unwritten_.erase(0, size_t(written));
      continue;
    }
    if (errno == EINTR || errno == EAGAIN)
      return;
    isRead_ = errno != EPIPE;
    unwritten_.clear();
    if (!isRead_)
      return;
    outputFailed_ = isTold_ = true;
    if (board_.ranks() != 0)
      board_.claimReport(board_.ranks());
    std::fprintf(stderr, "error: stdout: write failed: %s\n", std::strerror(errno));
    beginEnd();
    endBegan_ = Clock::now() - kRanksPatience;
  }
}

void Job::readErrors() {
  char buffer[4096];
  ssize_t got = read(errors_, buffer, sizeof buffer);
  if (got > 0)
    return filter_.feed(buffer, size_t(got));
  if (got < 0 && errno == EINTR)
    return;
  close(errors_);
  errors_ = -1;
}

void Job::lookAtSignals() {
  int signal = received;
  if (signal == 0)
    return;
  received = 0;
  bool isSecond = signal_ != 0;
  signal_ = isSecond ? signal_ : signal;
  if (board_.ranks() != 0)
    board_.claimReport(board_.ranks());
  beginEnd();
  if (isSecond)
    endBegan_ = Clock::now() - kRanksPatience;
  else if (forwards && !status_)
    kill(mpirun_, signal);
}

// Whether a process that the board names belongs to this job: others of this user could write
// there.
bool Job::isOurs(pid_t pid) const {
  for (int generation = 0; generation < 16 && pid > 1; ++generation) {
    pid = parentOf(pid);
    if (pid == mpirun_ || pid == getpid())
      return true;
  }
  return false;
}

void Job::lookAtRanks() {
  for (unsigned rank = 0; rank < handles_.size(); ++rank) {
    int &handle = handles_[rank];
    if (handle == kSeen)
      continue;
    RankPlace place = board_.read(rank);
    if (handle < 0) {
      if (place.pid <= 0)
        continue;
      handle = openProcess(place.pid);
      if (handle >= 0 && !isOurs(place.pid)) {
        close(handle);
        handle = -1;
        continue;
      }
    }
    pollfd ended{handle, POLLIN, 0};
    if (handle >= 0 && poll(&ended, 1, 0) == 0)
      continue;
    if (handle >= 0)
      close(handle);
    handle = kSeen;
    place = board_.read(rank);
    if (place.state == RankState::Failed)
      filter_.expectEnd(); // it has said why
    if (place.ended() || death_ || signal_ != 0)
      continue;
    if (board_.claimReport(board_.ranks()))
      death_ = Death{rank, whereText(place), placesText(board_, rank)};
    beginEnd();
  }
}

// All at once: that no watchdog of a rank sees.
void Job::lookForHang(double passed) {
  uint64_t changes = 0;
  uint32_t timeout = 0;
  bool running = !handles_.empty() && !endBegan_ && !status_;
  for (unsigned rank = 0; running && rank < handles_.size(); ++rank) {
    RankPlace place = board_.read(rank);
    running &= place.state == RankState::Running || place.state == RankState::Starting;
    changes += place.changes;
    timeout = std::max(timeout, place.timeoutMs);
  }
  still_ = running && changes == changes_ ? still_ + passed : 0;
  changes_ = changes;
  if (timeout == 0 || still_ < timeout / 1000.0 + kHangGrace)
    return;
  beginEnd();
  if (!board_.claimReport(board_.ranks()))
    return; // a rank has just told it
  std::fprintf(stderr, "error: no rank has moved for %.1f s: %s\n", still_,
               placesText(board_, board_.ranks()).c_str());
  isTold_ = true;
  endBegan_ = Clock::now() - kRanksPatience;
}

// What mpirun says about the first to die is right; what the board says is where everybody was.
void Job::tellDeath() {
  const auto &named = filter_.death();
  if (isTold_ || signal_ != 0 || (!death_ && board_.ranks() != 0 && board_.isReported()))
    return;
  isTold_ = true;
  std::string line;
  if (!death_) {
    line = cat("rank ", named->rank, " ended by ", named->signal);
  } else {
    if (named && named->rank != death_->rank && named->rank < board_.ranks())
      death_ = Death{named->rank, whereText(board_.read(named->rank)), placesText(board_, named->rank)};
    line = cat("rank ", death_->rank, " ended by ", named ? named->signal : "itself", " ",
               death_->where, death_->others.empty() ? "" : "; ", death_->others);
  }
  std::fprintf(stderr, "error: %s\n", line.c_str());
}

void Job::beginEnd() {
  filter_.expectEnd();
  if (!endBegan_)
    endBegan_ = Clock::now();
}

void Job::pressOn() {
  if (!endBegan_ || status_)
    return;
  auto passed = Clock::now() - *endBegan_;
  if (passed > kRanksPatience && !ranksKilled_) {
    ranksKilled_ = true;
    killRanks();
  }
  if (passed > kMpirunPatience && !mpirunKilled_) {
    mpirunKilled_ = true;
    kill(mpirun_, SIGKILL);
  }
}

void Job::killRanks() const {
  for (int handle : handles_)
    if (handle >= 0)
      sendSignal(handle, SIGKILL);
}

// Ends what mpirun has left: our children, since we are their reaper.
void Job::killOrphans() const {
  for (int round = 0; round < 50; ++round) {
    std::error_code error;
    for (const auto &entry : std::filesystem::directory_iterator("/proc", error)) {
      std::string name = entry.path().filename();
      if (!std::all_of(name.begin(), name.end(), [](unsigned char c) { return std::isdigit(c); }))
        continue;
      if (pid_t pid = pid_t(std::atol(name.c_str())); parentOf(pid) == getpid())
        kill(pid, SIGKILL);
    }
    pid_t reaped = 0;
    while ((reaped = waitpid(-1, nullptr, WNOHANG)) > 0)
      ;
    if (reaped < 0 && errno == ECHILD)
      return;
    usleep(20'000);
  }
}
