// Finds mpirun's boxes in a stream of bytes.
#include "box_filter.h"

#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kRule = 74; // dashes of a line that opens or closes a box
// mpirun writes a box at once, and its log soon before or after a job ends.
constexpr auto kMostHeld = std::chrono::seconds(2);
constexpr size_t kMostHeldBytes = 1 << 16;

} // namespace

void BoxFilter::feed(const char *bytes, size_t size) {
  for (size_t i = 0; i < size; ++i)
    feed(bytes[i]);
  tick();
  std::fflush(stderr);
}

void BoxFilter::finish() {
  if (!ending_)
    letGo();
  std::fflush(stderr);
  log_.clear();
  box_.clear();
  line_.clear();
}

void BoxFilter::tick() {
  size_t held = log_.size() + box_.size() + line_.size();
  Clock::time_point now = Clock::now();
  if (held == 0)
    heldSince_ = now;
  else if (now - heldSince_ > kMostHeld || held > kMostHeldBytes)
    letGo();
}

void BoxFilter::letGo() {
  std::string text = log_ + box_ + line_;
  if (text.empty())
    return;
  std::fputs(text.c_str(), stderr);
  std::fflush(stderr);
  atStart_ = text.back() == '\n';
  inBox_ = false;
  log_.clear();
  box_.clear();
  line_.clear();
}

void BoxFilter::feed(char c) {
  // Only a line that may open or lies in a box, or may be mpirun's log, has to be complete to be
  // judged.
  bool mayBeLog = c == '[' || c == 'm' || (c == 'T' && refusal_);
  if (!inBox_ && line_.empty() && ((c != '-' && !mayBeLog) || !atStart_)) {
    std::fputc(c, stderr);
    atStart_ = c == '\n';
    return;
  }
  line_ += c;
  if (c != '\n') {
    if (!inBox_ && line_[0] == '-' && c != '-')
      release();
    return;
  }
  bool isRule = line_.size() == kRule + 1 && line_.find_first_not_of('-') == kRule;
  if (!inBox_ && !isRule)
    return release();
  box_ += line_;
  line_.clear();
  if (isRule && inBox_)
    endBox();
  else
    inBox_ = true;
}

void BoxFilter::release() {
  auto starts = [&](const char *text) { return line_.rfind(text, 0) == 0; };
  auto has = [&](const char *text) { return line_.find(text) != std::string::npos; };
  bool isLog = starts("mpirun: ") || starts("mpirun noticed") || (refusal_ && starts("Type 'mpirun")) ||
               (starts("[") && (has("ORTE_ERROR_LOG") || has("PMIX ERROR") || has("help message") ||
                                has("orte_base_help_aggregate")));
  if (constexpr std::string_view refused = "mpirun: Error: "; starts(refused.data()) && !refusal_)
    refusal_ = line_.substr(refused.size(), line_.find('\n') - refused.size());
  if (!isLog)
    std::fputs(line_.c_str(), stderr);
  else if (!ending_)
    log_ += line_;
  atStart_ = line_.back() == '\n';
  line_.clear();
}

void BoxFilter::endBox() {
  auto has = [&](const char *text) { return box_.find(text) != std::string::npos; };
  size_t code = box_.find("with errorcode ");
  if (has("MPI_ABORT was invoked") && code != std::string::npos)
    abortCode_ = std::atoi(box_.c_str() + code + 15);
  size_t rank = box_.find("process rank "), signal = box_.find("exited on signal ");
  if (rank != std::string::npos && signal != std::string::npos) {
    if (!death_)
      death_ = Death{unsigned(std::strtoul(box_.c_str() + rank + 13, nullptr, 10)),
                     box_.substr(signal + 10, box_.find('.', signal) - signal - 10)};
  } else if (!ending_ && !has("Primary job  terminated normally") &&
             !has("exited with non-zero status") && !has("MPI_ABORT was invoked")) {
    std::fputs(box_.c_str(), stderr);
  }
  box_.clear();
  inBox_ = false;
  atStart_ = true;
}
