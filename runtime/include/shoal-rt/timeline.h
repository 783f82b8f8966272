// What each rank of a pipeline did when, simulated by the compiler or measured by a run: plain data, and its files, a
// page (shoal-rt/timeline_page.h) and a Chrome trace (here).
#ifndef SHOAL_RT_TIMELINE_H
#define SHOAL_RT_TIMELINE_H

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

namespace shoal::rt {

// What a row belongs to: "F3@5" is the forward pass of micro-batch 3 in stage 5; B the backward pass, I and W its parts
// for the input and for the weights. "SF3@5" sends what F3@5 makes, "RB3@5" receives what B3@5 or I3@5 reads. "N" is
// the exchange of the global norm, "U" what follows the micro-batches: the update. Any other text is itself.
struct ActionLabel {
  char kind = 0; // F B I W N U, S and R of messages; 0: none
  bool backward = false; // of a message
  int64_t microbatch = -1, stage = -1;

  bool isPass() const { return kind == 'F' || kind == 'B' || kind == 'I' || kind == 'W'; }
};

inline ActionLabel parseActionLabel(std::string_view text) {
  ActionLabel label;
  auto number = [&](int64_t &value) {
    size_t digits = 0;
    int64_t read = 0;
    for (; digits < text.size() && digits < 10 && text[digits] >= '0' && text[digits] <= '9'; ++digits)
      read = 10 * read + (text[digits] - '0');
    text.remove_prefix(digits);
    if (digits)
      value = read;
    return digits != 0;
  };
  if (text == "N" || text == "U") {
    label.kind = text[0];
    return label;
  }
  bool isMessage = text.starts_with('S') || text.starts_with('R');
  if (isMessage && text.size() > 1 && (text[1] == 'F' || text[1] == 'B')) {
    label.kind = text[0];
    label.backward = text[1] == 'B';
    text.remove_prefix(2);
  } else if (!isMessage && !text.empty() && std::string_view("FBIW").find(text[0]) != std::string_view::npos) {
    label.kind = text[0];
    text.remove_prefix(1);
  } else {
    return {};
  }
  if (!number(label.microbatch) || !text.starts_with('@'))
    return {};
  text.remove_prefix(1);
  return number(label.stage) && text.empty() ? label : ActionLabel();
}

// How many stages a program says that its costs are of, "NAME, 3 stages (...)": also those that compute nothing. 0
// where it does not say.
inline int64_t countStages(std::string_view text) {
  constexpr size_t kMostDigits = 7;
  size_t end = text.rfind(" stages ("), begin = end == text.npos ? 0 : end;
  int64_t count = 0;
  for (int64_t value = 1; begin > 0 && end - begin < kMostDigits && text[begin - 1] >= '0' && text[begin - 1] <= '9';
       value *= 10)
    count += value * (text[--begin] - '0');
  return count;
}

struct TimelineSpan {
  char kind = 'O'; // F B I W N U; O: any other work
  int64_t microbatch = -1, stage = -1;
  double begin = 0, end = 0;

  // "F3", "N".
  std::string name() const {
    return kind == 'O' ? "other work" : microbatch < 0 ? std::string(1, kind) : kind + std::to_string(microbatch);
  }
  bool isPass() const { return stage >= 0; }
  bool isBackward() const { return isPass() && kind != 'F'; }
};

// A time in which a rank did nothing.
struct TimelineWait {
  std::string what; // it waited for
  double begin = 0, end = 0;
};

struct TimelineTransfer {
  int64_t from = 0, to = 0; // ranks
  bool backward = false;
  int64_t stage = -1, microbatch = -1; // the stage that sends
  uint64_t bytes = 0;
  double begin = 0, end = 0;

  bool isOfSchedule() const { return stage >= 0; } // else a term of a sum over stages, behind the micro-batches
  // "activations of micro-batch 3 from stage 5".
  std::string name() const {
    return !isOfSchedule() ? "a sum over stages"
                           : std::string(backward ? "cotangents" : "activations") + " of micro-batch " +
                                 std::to_string(microbatch) + " from stage " + std::to_string(stage);
  }
};

// Idle time of a rank that is busy for part of a period, without what rounding makes of none.
inline double idleTime(double period, double busy) {
  constexpr double kRounding = 1e-9;
  return period - busy > kRounding * period ? period - busy : 0;
}

struct TimelineRank {
  std::string name; // "rank 0"
  std::vector<TimelineSpan> spans; // in order
  std::vector<TimelineWait> waits; // measured: also inside of spans
  double busy = 0;
  int64_t peakStash = 0; // micro-batches times chunks
  uint64_t peakBytes = 0; // of stashes; 0 where nobody counted

  double begin() const { return spans.empty() ? 0 : spans.front().begin; }
  double end() const { return spans.empty() ? 0 : spans.back().end; }
  // Between its own first start and last end: what a step costs where the next one follows without a barrier.
  double ownIdle() const { return idleTime(end() - begin(), busy); }
  // What the update waits for the slowest rank, until when the norm is exchanged; none without a global norm.
  std::optional<double> normWait() const {
    double ended = begin();
    std::optional<double> wait;
    for (const TimelineSpan &span : spans) {
      if (span.kind == 'N')
        wait = wait.value_or(0) + std::max(0.0, span.begin - ended);
      ended = span.end;
    }
    return wait;
  }
};

// What each span adds to the stash: a micro-batch is in it from the forward pass of a stage to the last of its backward
// passes there, in whatever parts, and without a backward pass never.
inline std::vector<int64_t> getStashSteps(const std::vector<TimelineSpan> &spans) {
  struct Held {
    std::optional<size_t> first, last;
  };
  std::map<std::pair<int64_t, int64_t>, Held> held; // stage, micro-batch
  for (size_t i = 0; i < spans.size(); ++i) {
    if (!spans[i].isPass())
      continue;
    Held &it = held[{spans[i].stage, spans[i].microbatch}];
    if (spans[i].isBackward())
      it.last = i;
    else if (!it.first)
      it.first = i;
  }
  std::vector<int64_t> steps(spans.size(), 0);
  for (const auto &[key, it] : held)
    if (it.first && it.last) {
      ++steps[*it.first];
      --steps[*it.last];
    }
  return steps;
}

// The most micro-batches (times chunks) that are in the stash at once.
inline int64_t countPeakStash(const std::vector<TimelineSpan> &spans) {
  int64_t count = 0, peak = 0;
  for (int64_t step : getStashSteps(spans))
    peak = std::max(peak, count += step);
  return peak;
}

struct Timeline {
  std::string title;
  std::string note;  // one sentence: where the times come from
  std::string unit;  // "ms", or empty where durations have none
  double microseconds = 1000; // of one unit
  std::vector<std::string> facts; // "2 ranks", "4 micro-batches"
  std::vector<TimelineRank> ranks;
  std::vector<TimelineTransfer> transfers;

  // The first start and the last end of all ranks.
  std::pair<double, double> limits() const {
    double begin = 0, end = 0;
    bool isFirst = true;
    for (const TimelineRank &rank : ranks) {
      if (rank.spans.empty())
        continue;
      begin = isFirst ? rank.begin() : std::min(begin, rank.begin());
      end = isFirst ? rank.end() : std::max(end, rank.end());
      isFirst = false;
    }
    return {begin, end};
  }
  double makespan() const { return limits().second - limits().first; }
  // What of the ranks' time in the makespan is idle, 0 to 1.
  double bubble() const {
    double busy = 0, all = makespan() * double(ranks.size());
    for (const TimelineRank &rank : ranks)
      busy += rank.busy;
    return all > 0 ? std::max(0.0, 1 - busy / all) : 0;
  }
  // Messages of the schedule, activations and cotangents, and their bytes; not what else is sent behind it.
  uint64_t numMessages() const {
    auto isOfSchedule = [](const TimelineTransfer &it) { return it.isOfSchedule(); };
    return uint64_t(std::count_if(transfers.begin(), transfers.end(), isOfSchedule));
  }
  uint64_t messageBytes() const {
    uint64_t bytes = 0;
    for (const TimelineTransfer &transfer : transfers)
      bytes += transfer.isOfSchedule() ? transfer.bytes : 0;
    return bytes;
  }
};

// How times of one timeline are written: in a unit in which its makespan has a few digits, and all with as many digits
// behind the point as tell four of the makespan.
class TimeScale {
public:
  explicit TimeScale(const Timeline &timeline) : unit_(timeline.unit) {
    double makespan = timeline.makespan();
    if (unit_ == "ms" && makespan >= 1e4) {
      factor_ = 1e-3;
      unit_ = "s";
    } else if (unit_ == "ms" && makespan > 0 && makespan < 1) {
      factor_ = 1e3;
      unit_ = "µs";
    }
    if (makespan > 0)
      decimals_ = std::clamp(3 - int(std::floor(std::log10(makespan * factor_))), 0, 9);
  }

  double factor() const { return factor_; }
  // "8.17 µs", "27".
  std::string show(double time) const {
    char text[400]; // of the largest double
    std::snprintf(text, sizeof text, "%.*f", decimals_, time * factor_);
    std::string number = text;
    if (decimals_ > 0) {
      number.erase(number.find_last_not_of('0') + 1);
      if (number.back() == '.')
        number.pop_back();
    }
    return (number == "-0" ? "0" : number) + (unit_.empty() ? "" : " " + unit_);
  }

private:
  std::string unit_;
  double factor_ = 1; // of the timeline's unit
  int decimals_ = 3;
};

// The numbers of the page, for reports.
inline nlohmann::ordered_json toReport(const Timeline &timeline) {
  using Json = nlohmann::ordered_json;
  Json ranks = Json::array();
  double makespan = timeline.makespan();
  for (const TimelineRank &rank : timeline.ranks) {
    ranks.push_back({{"busy", rank.busy},
                     {"idle", idleTime(makespan, rank.busy)},
                     {"own_idle", rank.ownIdle()},
                     {"peak_stash", rank.peakStash},
                     {"stash_bytes", rank.peakBytes}});
    if (std::optional<double> wait = rank.normWait())
      ranks.back()["norm_wait"] = *wait;
  }
  return {{"times", timeline.note},
          {"unit", timeline.unit},
          {"makespan", makespan},
          {"bubble", timeline.bubble()},
          {"messages", timeline.numMessages()},
          {"bytes", timeline.messageBytes()},
          {"ranks", ranks}};
}

// The Trace Event Format: a process per rank with its computations, its waits, its sends, and the stash as a counter;
// for chrome://tracing and Perfetto, which read no more of the object than "traceEvents".
inline nlohmann::ordered_json toChromeTrace(const Timeline &timeline) {
  using Json = nlohmann::ordered_json;
  constexpr int kComputes = 0, kSends = 1, kWaits = 2;
  Json events = Json::array();
  auto name = [&](const char *what, size_t rank, int thread, const std::string &text) {
    events.push_back({{"ph", "M"}, {"name", what}, {"pid", rank}, {"tid", thread}, {"args", {{"name", text}}}});
  };
  auto complete = [&](const std::string &text, const std::string &category, size_t rank, int thread, double begin,
                      double end) {
    events.push_back({{"ph", "X"},
                      {"name", text},
                      {"cat", category},
                      {"pid", rank},
                      {"tid", thread},
                      {"ts", begin * timeline.microseconds},
                      {"dur", (end - begin) * timeline.microseconds}});
  };
  auto count = [&](size_t rank, double at, int64_t stash) {
    events.push_back({{"ph", "C"},
                      {"name", "stash"},
                      {"pid", rank},
                      {"tid", kComputes},
                      {"ts", at * timeline.microseconds},
                      {"args", {{"micro-batches", stash}}}});
  };
  for (size_t rank = 0; rank < timeline.ranks.size(); ++rank) {
    const TimelineRank &line = timeline.ranks[rank];
    name("process_name", rank, kComputes, line.name);
    name("thread_name", rank, kComputes, "computes");
    name("thread_name", rank, kSends, "sends");
    if (!line.waits.empty())
      name("thread_name", rank, kWaits, "waits");
    int64_t stash = 0;
    std::vector<int64_t> steps = getStashSteps(line.spans);
    for (size_t i = 0; i < steps.size(); ++i) {
      const TimelineSpan &span = line.spans[i];
      std::string text = span.name() + (span.isPass() ? " of stage " + std::to_string(span.stage) : "");
      complete(text, std::string(1, span.kind), rank, kComputes, span.begin, span.end);
      if (steps[i])
        count(rank, steps[i] > 0 ? span.begin : span.end, stash += steps[i]);
    }
    for (const TimelineWait &wait : line.waits)
      complete(wait.what, "waiting", rank, kWaits, wait.begin, wait.end);
  }
  for (const TimelineTransfer &it : timeline.transfers)
    complete(it.name() + " to rank " + std::to_string(it.to), "S", size_t(it.from), kSends, it.begin, it.end);
  return {{"displayTimeUnit", "ms"}, {"traceEvents", events}};
}

} // namespace shoal::rt

#endif // SHOAL_RT_TIMELINE_H
