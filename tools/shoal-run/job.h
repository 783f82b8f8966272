// One run of mpirun: watches the ranks on the progress board, tells in one line which of them died
// or that none moves, and sees that nothing of the job is left in the end: no process, no file.
#ifndef SHOAL_RUN_JOB_H
#define SHOAL_RUN_JOB_H

#include "box_filter.h"
#include "core/board.h"
#include "launch_folder.h"

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

class Job {
public:
  // `ranks` is 0 where several programs or machines keep us from knowing them.
  explicit Job(unsigned ranks);
  ~Job();
  Job(const Job &) = delete;
  Job &operator=(const Job &) = delete;

  // Runs mpirun and returns the exit code: the program's, or 128 + the number of a signal that
  // ended shoal-run.
  int run(const std::vector<char *> &command);

  const std::string &folder() const { return folder_.path(); }

private:
  using Clock = std::chrono::steady_clock;

  void start(const std::vector<char *> &command);
  void loop();
  void readErrors();
  void readOutput();
  void writeOutput();
  void lookAtSignals();
  void lookAtRanks();
  void lookForHang(double passed);
  void tellDeath();
  void beginEnd();
  void pressOn();
  void killRanks() const;
  void killOrphans() const;
  bool isOurs(pid_t pid) const;

  LaunchFolder folder_;
  shoal::rt::Board board_;
  std::vector<int> handles_; // per rank: a pidfd, -1: not yet seen, -2: ended
  pid_t mpirun_ = -1;
  int errors_ = -1; // mpirun's stderr, or -1 at its end
  int output_ = -1; // mpirun's stdout, or -1 at its end
  std::string unwritten_; // of what was read there
  bool isRead_ = true, outputFailed_ = false; // whether anybody takes it; whether it has been lost otherwise
  std::optional<int> status_;
  BoxFilter filter_;

  struct Death {
    unsigned rank;
    std::string where, others;
  };
  std::optional<Death> death_;
  bool isTold_ = false, ranksKilled_ = false, mpirunKilled_ = false;
  std::optional<Clock::time_point> endBegan_, mpirunEnded_;
  int signal_ = 0;
  uint64_t changes_ = 0;
  double still_ = 0; // seconds in which no rank has moved
};

#endif // SHOAL_RUN_JOB_H
