// A thin front of mpirun for one machine or many: it passes every option through and adds
// what Open MPI wants to be told before it starts ranks as root, more ranks than cores, or
// ranks with threads of their own. Job watches what comes of it. `mpirun -n N ./OUT` and
// `srun ./OUT` work without shoal-run.
#include "core/error.h"
#include "job.h"
#include "shoal-rt/standard_streams.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

namespace {

using shoal::rt::kExitBadInput;

constexpr const char *kHelp =
    R"(usage: shoal-run -n N [options of mpirun] ./OUT [options of the program]

Starts a program compiled by shoalc on N ranks. N is the product of its mesh axes; the
program says so when it is another.

  -n, -np N     ranks to start
  -h, --help    print this help
  -V, --version print the version (that of MPI: mpirun --version)

All other options before the program are mpirun's own (--hostfile, --host, -x, --bind-to,
...), and those after it the program's: ./OUT --help lists them. What shoal-run adds:
  as root                  OMPI_ALLOW_RUN_AS_ROOT=1 and OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
  more ranks than cores    --oversubscribe, and says so
  without --bind-to        --bind-to none, so that a rank's two threads may use two cores
  on a terminal            SHOAL_TERMINAL=1, so that rank 0 shows a progress line
  which rank died where    it watches the ranks on a progress board (SHOAL_BOARD), tells in one
                           line which rank died or that none moves any more, and ends the job
  on this machine alone    OMPI_MCA_orte_tmpdir_base, a folder of this launch that is gone with it,
                           unless an option or the environment says
                           where Open MPI keeps its session
The exit code is the program's: 0 success, 1 the work failed (also: a rank died or none moved for
--timeout), 2 wrong command line or input; 128 + the number of a signal that shoal-run got.
)";

[[noreturn]] void fail(const std::string &line) {
  std::fprintf(stderr, "error: %s\n", line.c_str());
  std::exit(kExitBadInput);
}

int availableCores() {
  cpu_set_t set;
  return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
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

// Whether the user, here or in an option, says where Open MPI keeps its session: it refuses to be told twice.
bool namesSessionBase(int count, char **options) {
  for (const char *name : {"orte_tmpdir_base", "orte_local_tmpdir_base", "orte_remote_tmpdir_base"})
    if (std::getenv((std::string("OMPI_MCA_") + name).c_str()))
      return true;
  for (int i = 0; i < count; ++i)
    if (std::string_view(options[i]).ends_with("tmpdir_base"))
      return true;
  return false;
}

// Whether a batch system says on which machines mpirun starts ranks.
bool isInAllocation() {
  for (const char *name : {"SLURM_JOB_ID", "PBS_NODEFILE", "LSB_DJOB_HOSTFILE", "PE_HOSTFILE"})
    if (std::getenv(name))
      return true;
  return false;
}

} // namespace

int main(int argc, char **argv) {
  shoal::rt::openStandardStreams();
  long ranks = 0;
  bool binds = false, manyHosts = false, oversubscribes = false;
  int at = 1;
  for (; at < argc && argv[at][0] == '-'; ++at) {
    std::string_view option = argv[at];
    if (option == "-h" || option == "--help") {
      std::fputs(kHelp, stdout);
      return 0;
    }
    if (option == "-V" || option == "--version") {
      std::puts("shoal-run " SHOAL_VERSION);
      return 0;
    }
    int values = valuesOf(option);
    if (at + values >= argc)
      fail("option '" + std::string(option) + "' expects a value");
    if (option == "-n" || option == "-np" || option == "--np" || option == "-c") {
      char *end = nullptr;
      ranks = std::strtol(argv[at + 1], &end, 10);
      if (*end != '\0' || end == argv[at + 1] || ranks < 1 || ranks > long(shoal::rt::kBoardMostRanks))
        fail(shoal::rt::cat(option, " expects a number of ranks of at least 1 and at most ",
                            shoal::rt::kBoardMostRanks, ", got: '", argv[at + 1], "'"));
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
  // Open MPI would print a stack of its own before our line tells which rank died by which signal.
  setenv("OMPI_MCA_opal_signal", "", 0);
  // The board has as many places as ranks; `:` starts further programs on ranks of their own.
  bool severalPrograms = false;
  for (int i = 1; i < argc; ++i)
    severalPrograms |= std::string_view(argv[i]) == ":";
  if (!severalPrograms)
    command.insert(command.end(), {"-x", shoal::rt::kBoardVariable});
  command.insert(command.end(), argv + 1, argv + argc);
  std::vector<char *> pointers;
  for (std::string &word : command)
    pointers.push_back(word.data());
  pointers.push_back(nullptr);
  try {
    Job job(severalPrograms ? 0 : unsigned(ranks));
    // Other machines would make the folder, and keep it.
    if (!manyHosts && !isInAllocation() && !namesSessionBase(at, argv))
      setenv("OMPI_MCA_orte_tmpdir_base", job.folder().c_str(), 1);
    return job.run(pointers);
  } catch (const shoal::rt::Error &error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return error.code;
  }
}
