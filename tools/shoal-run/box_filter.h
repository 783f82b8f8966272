// What mpirun says on stderr, without its boxes (text between two lines of dashes) that repeat
// that a rank failed: the rank has said why. What they tell about signals and aborts is kept, and so
// is an option that mpirun does not know.
#ifndef SHOAL_RUN_BOX_FILTER_H
#define SHOAL_RUN_BOX_FILTER_H

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>

class BoxFilter {
public:
  void feed(const char *bytes, size_t size);
  void finish();
  // Lets go what has been held back for long: a line of dashes may be a rank's own.
  void tick();

  // The job is being ended: mpirun's log of that is dropped, too.
  void expectEnd() {
    ending_ = true;
    log_.clear();
  }

  // The code with which a rank stopped all others, once mpirun has said so.
  std::optional<int> abortCode() const { return abortCode_; }
  // The first rank that mpirun saw die by a signal.
  struct Death {
    unsigned rank;
    std::string signal; // "signal 9 (Killed)"
  };
  const std::optional<Death> &death() const { return death_; }
  // Why mpirun has not started anything: "unknown option "--bogus"".
  const std::optional<std::string> &refusal() const { return refusal_; }

private:
  void feed(char c);
  void release();
  void endBox();
  void letGo();

  std::string line_, box_;
  std::string log_; // mpirun's, until it is known whether the job is being ended
  std::chrono::steady_clock::time_point heldSince_ = std::chrono::steady_clock::now();
  bool inBox_ = false, atStart_ = true, ending_ = false;
  std::optional<int> abortCode_;
  std::optional<Death> death_;
  std::optional<std::string> refusal_;
};

#endif // SHOAL_RUN_BOX_FILTER_H
