// Finds mpirun's boxes in a stream of bytes.
#include "box_filter.h"

#include <cstdio>
#include <cstdlib>

void BoxFilter::feed(const char *bytes, size_t size) {
  for (size_t i = 0; i < size; ++i)
    feed(bytes[i]);
  std::fflush(stderr);
}

void BoxFilter::finish() {
  if (!ending_)
    std::fputs((box_ + line_).c_str(), stderr);
  box_.clear();
  line_.clear();
}

void BoxFilter::feed(char c) {
  // Only a line that may open or lies in a box, or may be mpirun's log, has to be complete to be
  // judged.
  if (!inBox_ && line_.empty() && ((c != '-' && c != '[' && c != 'm') || !atStart_)) {
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

void BoxFilter::release() {
  auto starts = [&](const char *text) { return line_.rfind(text, 0) == 0; };
  auto has = [&](const char *text) { return line_.find(text) != std::string::npos; };
  bool isLog = starts("mpirun: ") || starts("mpirun noticed") ||
               (starts("[") && (has("ORTE_ERROR_LOG") || has("PMIX ERROR") || has("help message")));
  if (!ending_ || !isLog)
    std::fputs(line_.c_str(), stderr);
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
