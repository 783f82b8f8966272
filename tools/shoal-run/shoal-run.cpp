// A thin front of mpirun for one machine or many: it passes every option through and adds
// what Open MPI wants to be told before it starts ranks as root, more ranks than cores, or
// ranks with threads of their own, and puts mpirun's boxes of text about a failed rank into one
// line. `mpirun -n N ./OUT` and `srun ./OUT` work without it.
#include "shoal-rt/exit_codes.h"

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <poll.h>
#include <sched.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

using shoal::rt::kExitBadInput, shoal::rt::kExitWorkFailed;

// mpirun of Open MPI 4.1 sometimes never ends after a rank has called MPI_Abort: PMIx deadlocks
// while it is shut down, when all ranks are gone already. Seen in 1 of 30 runs on a busy machine.
constexpr auto kAbortPatience = std::chrono::seconds(10);

constexpr const char *kHelp =
    R"(usage: shoal-run -n N [options of mpirun] ./OUT [options of the program]

Starts a program compiled by shoalc on N ranks. N is the product of its mesh axes; the
program says so when it is another.

  -n, -np N     ranks to start
  -h, --help    print this help

All other options before the program are mpirun's own (--hostfile, --host, -x, --bind-to,
...), and those after it the program's: ./OUT --help lists them. What shoal-run adds:
  as root                  OMPI_ALLOW_RUN_AS_ROOT=1 and OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
  more ranks than cores    --oversubscribe, and says so
  without --bind-to        --bind-to none, so that a rank's two threads may use two cores
  on a terminal            SHOAL_TERMINAL=1, so that rank 0 shows a progress line
The exit code is the program's: 0 success, 1 the work failed (also: a rank died), 2 wrong command
line or input.
)";

[[noreturn]] void fail(const std::string &line) {
  std::fprintf(stderr, "error: %s\n", line.c_str());
  std::exit(kExitBadInput);
}

int availableCores() {
  cpu_set_t set;
  return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

// Passes stderr on as it comes, but for mpirun's boxes (text between two lines of dashes): those
// that only repeat that a rank failed are dropped, since the rank has said why; the one about a
// rank that died by a signal becomes one line.
class BoxFilter {
public:
  void feed(const char *bytes, size_t size) {
    for (size_t i = 0; i < size; ++i)
      feed(bytes[i]);
    std::fflush(stderr);
  }
  // The code with which a rank stopped all others, once mpirun has said so.
  std::optional<int> abortCode() const { return abortCode_; }
  void finish() {
    std::fputs((box_ + line_).c_str(), stderr);
    box_.clear();
    line_.clear();
  }

private:
  void feed(char c) {
    // Only a line that may open or lies in a box has to be complete to be judged.
    if (!inBox_ && line_.empty() && (c != '-' || !atStart_)) {
      std::fputc(c, stderr);
      atStart_ = c == '\n';
      return;
    }
    line_ += c;
    if (c != '\n') {
      if (!inBox_ && c != '-')
        release();
      return;
    }
    bool isRule = line_.size() > 60 && line_.find_first_not_of("-\n") == std::string::npos;
    if (!inBox_ && !isRule)
      return release();
    box_ += line_;
    line_.clear();
    if (isRule && inBox_)
      endBox();
    else
      inBox_ = true;
  }
  void release() {
    std::fputs(line_.c_str(), stderr);
    atStart_ = line_.back() == '\n';
    line_.clear();
  }
  void endBox() {
    auto has = [&](const char *text) { return box_.find(text) != std::string::npos; };
    size_t code = box_.find("with errorcode ");
    if (has("MPI_ABORT was invoked") && code != std::string::npos)
      abortCode_ = std::atoi(box_.c_str() + code + 15);
    size_t rank = box_.find("process rank "), signal = box_.find("exited on signal ");
    if (rank != std::string::npos && signal != std::string::npos) {
      std::string which = box_.substr(rank + 13, box_.find(' ', rank + 13) - rank - 13);
      std::string what = box_.substr(signal + 10, box_.find('.', signal) - signal - 10);
      std::fprintf(stderr, "error: rank %s ended by %s\n", which.c_str(), what.c_str());
    } else if (!has("Primary job  terminated normally") && !has("exited with non-zero status") &&
               !has("MPI_ABORT was invoked")) {
      std::fputs(box_.c_str(), stderr);
    }
    box_.clear();
    inBox_ = false;
    atStart_ = true;
  }

  std::string line_, box_;
  bool inBox_ = false, atStart_ = true;
  std::optional<int> abortCode_;
};

pid_t child = 0;
void forwardSignal(int signal) {
  if (child > 0)
    kill(child, signal);
}

// Runs mpirun and returns the exit code of its program.
int runMpirun(const std::vector<char *> &command) {
  int ends[2];
  if (pipe(ends) != 0)
    fail(std::string("no pipe for mpirun: ") + std::strerror(errno));
  child = fork();
  if (child < 0)
    fail(std::string("mpirun cannot be started: ") + std::strerror(errno));
  if (child == 0) {
    dup2(ends[1], STDERR_FILENO);
    close(ends[0]);
    close(ends[1]);
    execvp("mpirun", command.data());
    std::fprintf(stderr, "error: mpirun cannot be started: %s\n", std::strerror(errno));
    _exit(kExitBadInput);
  }
  close(ends[1]);
  for (int signal : {SIGINT, SIGTERM, SIGHUP})
    std::signal(signal, forwardSignal);
  BoxFilter filter;
  char buffer[4096];
  std::optional<std::chrono::steady_clock::time_point> giveUp;
  for (;;) {
    if (filter.abortCode() && !giveUp)
      giveUp = std::chrono::steady_clock::now() + kAbortPatience;
    pollfd ready{ends[0], POLLIN, 0};
    int events = poll(&ready, 1, giveUp ? 200 : -1);
    if (events <= 0 && giveUp && std::chrono::steady_clock::now() > *giveUp) {
      kill(child, SIGKILL);
      break;
    }
    if (events <= 0)
      continue;
    ssize_t got = read(ends[0], buffer, sizeof buffer);
    if (got < 0 && errno == EINTR)
      continue;
    if (got <= 0)
      break;
    filter.feed(buffer, size_t(got));
  }
  filter.finish();
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR)
    ;
  if (!WIFEXITED(status) && !filter.abortCode())
    return kExitWorkFailed;
  int code = WIFEXITED(status) ? WEXITSTATUS(status) : *filter.abortCode();
  return code <= kExitBadInput ? code : kExitWorkFailed;
}

// Options of mpirun that take their value as separate arguments, as far as programs are
// commonly started with them; what follows the first other word is the program.
int valuesOf(std::string_view option) {
  static constexpr std::string_view one[] = {
      "-n",        "-np",        "-c",          "--np",        "-H",        "-host",
      "--host",    "-hostfile",  "--hostfile",  "-machinefile", "--machinefile", "-x",
      "--bind-to", "-bind-to",   "--map-by",    "-map-by",     "--rank-by", "-rank-by",
      "-N",        "-npernode",  "--npernode",  "--wdir",      "-wdir",     "--timeout",
      "-timeout",  "--prefix",   "--output-filename", "-output-filename", "--cpu-set",
      "--cpu-list", "--rankfile", "-rf",        "--stdin",     "--report-events"};
  static constexpr std::string_view two[] = {"--mca", "-mca", "--gmca", "-gmca"};
  for (std::string_view name : one)
    if (option == name)
      return 1;
  for (std::string_view name : two)
    if (option == name)
      return 2;
  return 0;
}

} // namespace

int main(int argc, char **argv) {
  long ranks = 0;
  bool binds = false, manyHosts = false, oversubscribes = false;
  int at = 1;
  for (; at < argc && argv[at][0] == '-'; ++at) {
    std::string_view option = argv[at];
    if (option == "-h" || option == "--help") {
      std::fputs(kHelp, stdout);
      return 0;
    }
    int values = valuesOf(option);
    if (at + values >= argc)
      fail("option '" + std::string(option) + "' expects a value");
    if (option == "-n" || option == "-np" || option == "--np" || option == "-c") {
      char *end = nullptr;
      ranks = std::strtol(argv[at + 1], &end, 10);
      if (*end != '\0' || end == argv[at + 1] || ranks < 1)
        fail(std::string(option) + " expects a number of ranks of at least 1, got: '" +
             argv[at + 1] + "'");
    }
    binds |= option.find("bind-to") != std::string_view::npos;
    oversubscribes |= option.find("oversubscribe") != std::string_view::npos;
    manyHosts |= option.find("host") != std::string_view::npos || option == "-H" ||
                 option.find("machinefile") != std::string_view::npos;
    at += values;
  }
  if (ranks == 0)
    fail("expected -n N before the program; see shoal-run --help");
  if (at >= argc)
    fail("expected a program after the options; see shoal-run --help");
  if (std::strchr(argv[at], '/')) {
    struct stat info;
    bool isFolder = stat(argv[at], &info) == 0 && S_ISDIR(info.st_mode);
    if (isFolder || access(argv[at], X_OK) != 0)
      fail(std::string(argv[at]) + ": cannot be executed: " + std::strerror(isFolder ? EISDIR : errno));
  }

  std::vector<std::string> command = {"mpirun"};
  if (!oversubscribes && !manyHosts && ranks > availableCores()) {
    std::fprintf(stderr, "note: %ld ranks on %d cores, adding --oversubscribe\n", ranks,
                 availableCores());
    command.push_back("--oversubscribe");
  }
  if (!binds)
    command.insert(command.end(), {"--bind-to", "none"});
  if (isatty(STDERR_FILENO)) {
    setenv("SHOAL_TERMINAL", "1", 1);
    command.insert(command.end(), {"-x", "SHOAL_TERMINAL"});
  }
  if (geteuid() == 0) {
    setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
    setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
  }
  command.insert(command.end(), argv + 1, argv + argc);
  std::vector<char *> pointers;
  for (std::string &word : command)
    pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return runMpirun(pointers);
}
