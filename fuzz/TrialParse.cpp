// The child, its report, and who is to blame for it.
#include "TrialParse.h"

#include "Target.h"

#include <csignal>
#include <sstream>

#include <sys/prctl.h>
#include <sys/wait.h>

#if defined(__SANITIZE_ADDRESS__)
#define SHOAL_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SHOAL_ASAN 1
#endif
#endif

#ifdef SHOAL_ASAN
#include <sanitizer/common_interface_defs.h>

// Clang's counters of covered branches, in this executable.
extern "C" __attribute__((weak, visibility("hidden"))) uint8_t __start___sancov_cntrs[];
extern "C" __attribute__((weak, visibility("hidden"))) uint8_t __stop___sancov_cntrs[];
#endif

namespace shoal::fuzz {
namespace {

enum : int { kValid = 10, kRefused = 11 };

// The name by which the stack of a report shows where MLIR's parser begins.
[[gnu::noinline]] bool trialParseEntry(bool (*parse)(const std::string &, void *), const std::string &text,
                                       void *context) {
  bool valid = parse(text, context);
  asm volatile("" ::: "memory"); // no tail call: the frame must be there
  return valid;
}

// Memory that parent and child share, for the counters.
struct Counters {
#ifdef SHOAL_ASAN
  size_t size = __start___sancov_cntrs ? size_t(__stop___sancov_cntrs - __start___sancov_cntrs) : 0;
  void *shared = size == 0 ? nullptr
                           : mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  void send() const {
    if (size != 0)
      std::memcpy(shared, __start___sancov_cntrs, size);
  }
  void receive() const {
    if (size != 0)
      std::memcpy(__start___sancov_cntrs, shared, size);
  }
#else
  void send() const {}
  void receive() const {}
#endif
};

void reportTo(int fd) {
#ifdef SHOAL_ASAN
  __sanitizer_set_report_fd(reinterpret_cast<void *>(uintptr_t(fd)));
  __sanitizer_set_death_callback([] {}); // libFuzzer's would write the input
  // Assertions and fatal errors of LLVM end in abort.
  std::signal(SIGABRT, [](int) {
    __sanitizer_print_stack_trace();
    _exit(1);
  });
#else
  (void)fd;
#endif
}

std::string contents(int fd) {
  std::string text;
  char buffer[4096];
  lseek(fd, 0, SEEK_SET);
  for (ssize_t got; (got = read(fd, buffer, sizeof buffer)) > 0;)
    text.append(buffer, size_t(got));
  return text;
}

} // namespace

// Frames of the allocator's
// interceptors are the sanitizer's; one frame of ours, such as a parser or verifier of an op, is enough
// to look at the fault as ours.
bool isUpstream(const std::string &report) {
  std::istringstream lines(report);
  bool inStack = false;
  for (std::string line; std::getline(lines, line);) {
    size_t at = line.find_first_not_of(' ');
    bool isFrame = at != std::string::npos && line[at] == '#';
    if (!isFrame) {
      if (inStack)
        return false; // never reached the entry
      continue;
    }
    auto has = [&](const char *part) { return line.find(part) != std::string::npos; };
    bool first = !inStack;
    inStack = true;
    if (has("trialParseEntry"))
      return !first;
    bool isInterceptor = has(" in free ") || has(" in operator delete") || has(" in operator new") ||
                         has(" in malloc ") || has(" in realloc ") || has("__asan_mem") || has("__interceptor_");
    if (!(first && isInterceptor) && !has("/libMLIR") && !has("/libLLVM") && !has("/libc.so") &&
        !has("/libstdc++") && !has(" in parseText("))
      return false;
  }
  return false;
}

Trial tryParse(bool (*parse)(const std::string &text, void *context), const std::string &text, void *context) {
  static const Counters counters;
  int report = memfd_create("report", MFD_CLOEXEC);
  require(report >= 0, "no memory for a report");
  pid_t child = fork();
  require(child >= 0, "no process for a trial");
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    reportTo(report);
    bool valid = trialParseEntry(parse, text, context);
    counters.send();
    _exit(valid ? kValid : kRefused);
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0)
    require(errno == EINTR, "a trial must end");
  Trial trial{Verdict::OurFault, contents(report)};
  close(report);
  if (WIFEXITED(status) && (WEXITSTATUS(status) == kValid || WEXITSTATUS(status) == kRefused)) {
    counters.receive();
    trial.verdict = WEXITSTATUS(status) == kValid ? Verdict::Valid : Verdict::Refused;
  } else if (isUpstream(trial.report)) {
    trial.verdict = Verdict::UpstreamFault;
  }
  return trial;
}

} // namespace shoal::fuzz
