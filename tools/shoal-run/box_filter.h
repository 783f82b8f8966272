// What mpirun says on stderr, without its boxes (text between two lines of dashes) that repeat
// that a rank failed: the rank has said why. What they tell about signals and aborts is kept.
#ifndef SHOAL_RUN_BOX_FILTER_H
#define SHOAL_RUN_BOX_FILTER_H

#include <cstddef>
#include <optional>
#include <string>

class BoxFilter {
public:
  void feed(const char *bytes, size_t size);
  void finish();

  // From now on the job is being ended: mpirun's log of that is dropped, too.
  void expectEnd() { ending_ = true; }

  // The code with which a rank stopped all others, once mpirun has said so.
  std::optional<int> abortCode() const { return abortCode_; }
  // The first rank that mpirun saw die by a signal.
  struct Death {
    unsigned rank;
    std::string signal; // "signal 9 (Killed)"
  };
  const std::optional<Death> &death() const { return death_; }

private:
  void feed(char c);
  void release();
  void endBox();

  std::string line_, box_;
  bool inBox_ = false, atStart_ = true, ending_ = false;
  std::optional<int> abortCode_;
  std::optional<Death> death_;
};

#endif // SHOAL_RUN_BOX_FILTER_H
