// From the rows of a step to actions: rows of one action that follow each other are one span, with the waits in it.
#include "core/timeline.h"
#include "core/error.h"
#include "shoal-rt/traffic.h"

#include <algorithm>
#include <deque>
#include <map>
#include <set>

namespace shoal::rt {

namespace {

constexpr double kMilliseconds = 1e-6; // of a nanosecond

std::vector<std::string> words(std::string_view text) {
  std::vector<std::string> found;
  while (!text.empty()) {
    size_t end = std::min(text.find(' '), text.size());
    found.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return found;
}

// Rows of one action in turn.
struct Piece {
  std::string label;
  int64_t begin, end, busy;
};

class RankTeller {
public:
  RankTeller(const Program &program, uint32_t position, const Trace &trace, uint64_t step, int64_t zero)
      : program_(program), position_(position), trace_(trace), step_(step), zero_(zero) {
    for (uint32_t row = 0; row < program.instrs().size(); ++row)
      if (uint32_t event = program.instrs()[row].event; event != kNone)
        signals_[event] = row;
  }

  ReportJson tell() {
    addCompute();
    for (const std::vector<Trace::Event> &stream : trace_.events())
      for (const Trace::Event &event : stream)
        if (event.step == step_ && event.row < program_.instrs().size())
          addMessages(event);
    // Streams run beside each other; messages between two ranks match in the order of rows.
    std::stable_sort(messages_.begin(), messages_.end(),
                     [](const auto &a, const auto &b) { return a.first < b.first; });
    ReportJson spans = ReportJson::array(), messages = ReportJson::array();
    for (const Piece &piece : mergeOtherWork())
      spans.push_back({piece.label, at(piece.begin), at(piece.end), double(piece.busy) * kMilliseconds});
    for (const auto &[row, message] : messages_)
      messages.push_back(message);
    return {{"name", name()}, {"spans", spans}, {"waits", waits_}, {"messages", messages}};
  }

private:
  double at(int64_t nanoseconds) const { return double(nanoseconds - zero_) * kMilliseconds; }

  // "rank 3 (data 1, pipe 0)"; without an axis of one, and where there is one axis only, without it.
  std::string name() const {
    std::string places;
    int axes = 0;
    for (uint32_t axis = 0; axis < program_.axes().size(); ++axis) {
      if (program_.axes()[axis].size == 1)
        continue;
      ++axes;
      places += cat(places.empty() ? "" : ", ", program_.str(program_.axes()[axis].name), " ",
                    program_.coordinate(position_, axis));
    }
    return cat("rank ", program_.deviceIds()[position_], axes > 1 ? " (" + places + ")" : "");
  }

  std::string tellRow(uint32_t row) const {
    const Instr &instr = program_.instrs()[row];
    std::string_view name = instr.name.size ? program_.str(instr.name) : std::string_view(rowKind(instr));
    return instr.scope.size ? cat(name, " ", program_.str(instr.scope)) : std::string(name);
  }

  void addCompute() {
    for (const Trace::Event &event : trace_.events()[0]) {
      if (event.step != step_)
        continue;
      if (event.row == kTraceEnd || event.row == kTraceDelay) {
        addWait(event, event.row == kTraceEnd ? "the end of the step" : "the injected delay");
        continue;
      }
      const Instr &instr = program_.instrs()[event.row];
      if (instr.op == Opcode::Wait) {
        auto signal = signals_.find(uint32_t(program_.params(instr)[0]));
        signal == signals_.end() ? addWait(event, "a row") : addWaitFor(event, signal->second);
      } else if (isCommunication(instr.op)) {
        addWaitFor(event, event.row);
      } else {
        extend(std::string(program_.str(instr.scope)), event);
        pieces_.back().busy += event.end - event.begin;
      }
    }
  }

  void extend(const std::string &label, const Trace::Event &event) {
    if (pieces_.empty() || pieces_.back().label != label || (label.empty() && hasWaited_))
      pieces_.push_back({label, event.begin, event.end, 0});
    hasWaited_ = false;
    pieces_.back().end = event.end;
  }

  // The exchange of the norm is a span, in which the rank computes nothing.
  void addWaitFor(const Trace::Event &event, uint32_t row) {
    std::string label(program_.str(program_.instrs()[row].scope));
    if (parseActionLabel(label).kind == 'N')
      extend(label, event);
    addWait(event, tellRow(row));
  }

  void addWait(const Trace::Event &event, const std::string &what) {
    waits_.push_back({what, at(event.begin), at(event.end)});
    hasWaited_ = true;
  }

  // Work of no action in the midst of one is its.
  std::vector<Piece> mergeOtherWork() const {
    std::vector<Piece> merged;
    for (const Piece &piece : pieces_) {
      auto last = std::find_if(merged.rbegin(), merged.rend(), [](const Piece &it) { return !it.label.empty(); });
      if (piece.label.empty() || last == merged.rend() || last->label != piece.label) {
        merged.push_back(piece);
        continue;
      }
      last->end = piece.end;
      last->busy += piece.busy;
      for (auto other = merged.rbegin(); other != last; ++other)
        last->busy += other->busy;
      merged.erase(last.base(), merged.end());
    }
    return merged;
  }

  void addMessages(const Trace::Event &event) {
    const Instr &instr = program_.instrs()[event.row];
    if (instr.op != Opcode::PointToPoint)
      return;
    std::map<char, std::deque<std::string>> labels; // of sends and of receives
    for (std::string &word : words(program_.str(instr.scope)))
      if (char kind = parseActionLabel(word).kind)
        labels[kind].push_back(std::move(word));
    for (const Peer &peer : program_.peers(instr)) {
      std::deque<std::string> &own = labels[peer.isSend ? 'S' : 'R'];
      std::string label;
      if (!own.empty()) {
        label = own.front();
        own.pop_front();
      }
      uint32_t other = program_.peerOf(peer, position_);
      if (other == kNone)
        continue;
      const View &view = program_.views()[peer.view];
      messages_.push_back({event.row,
                           {bool(peer.isSend), program_.deviceIds()[other], label,
                            view.elements * elementBytes(view.dtype), at(event.begin), at(event.end)}});
    }
  }

  const Program &program_;
  uint32_t position_;
  const Trace &trace_;
  uint64_t step_;
  int64_t zero_;
  std::map<uint32_t, uint32_t> signals_; // event to row
  std::vector<Piece> pieces_;
  bool hasWaited_ = false; // behind the last piece
  ReportJson waits_ = ReportJson::array();
  std::vector<std::pair<uint32_t, ReportJson>> messages_; // by row
};

// Sums of what was measured of the passes of a stage.
struct PassTimes {
  double milliseconds = 0;
  std::set<std::pair<size_t, int64_t>> runs; // rank, micro-batch

  ReportJson mean() const { return milliseconds / 1000 / double(std::max<size_t>(runs.size(), 1)); }
};

class Joiner {
public:
  explicit Joiner(int64_t stages) : stages_(stages) {}

  MeasuredTimeline join(const std::vector<std::string> &texts) {
    Timeline &timeline = measured_.timeline;
    timeline.unit = "ms";
    timeline.microseconds = 1000;
    for (size_t rank = 0; rank < texts.size(); ++rank)
      addRank(rank, ReportJson::parse(texts[rank]));
    alignNorm();
    for (TimelineTransfer &transfer : timeline.transfers) {
      auto &channel = arrivals_[{transfer.from, transfer.to}];
      if (!channel.empty()) {
        transfer.end = std::max(transfer.begin, channel.front());
        channel.pop_front();
      }
    }
    measured_.costs = costs();
    return std::move(measured_);
  }

private:
  // Each exchange begins when the last rank has come, as in a simulation; until then the others are idle.
  void alignNorm() {
    std::vector<double> begins; // of the exchanges of a step, in order
    auto visit = [&](auto act) {
      for (TimelineRank &rank : measured_.timeline.ranks) {
        size_t number = 0;
        for (TimelineSpan &span : rank.spans)
          if (span.kind == 'N')
            act(span, number++);
      }
    };
    visit([&](const TimelineSpan &span, size_t number) {
      begins.resize(std::max(begins.size(), number + 1), span.begin);
      begins[number] = std::max(begins[number], span.begin);
    });
    visit([&](TimelineSpan &span, size_t number) { span.begin = std::clamp(begins[number], span.begin, span.end); });
  }

  void addRank(size_t number, const ReportJson &told) {
    TimelineRank &rank = measured_.timeline.ranks.emplace_back();
    rank.name = told["name"];
    for (const ReportJson &span : told["spans"]) {
      ActionLabel label = parseActionLabel(span[0].get<std::string>());
      bool isAction = label.isPass() || label.kind == 'N' || label.kind == 'U';
      double busy = span[3];
      rank.spans.push_back({isAction ? label.kind : 'O', label.microbatch, label.stage, span[1], span[2]});
      rank.busy += busy;
      if (label.isPass()) {
        PassTimes &times = passes_[{label.stage, label.kind}];
        times.milliseconds += busy;
        times.runs.insert({number, label.microbatch});
      } else if (label.kind == 'U') {
        updates_[number] += busy;
      }
    }
    for (const ReportJson &wait : told["waits"])
      rank.waits.push_back({wait[0], wait[1], wait[2]});
    rank.peakStash = countPeakStash(rank.spans);
    for (const ReportJson &message : told["messages"]) {
      int64_t other = message[1];
      if (!message[0].get<bool>()) {
        arrivals_[{other, int64_t(number)}].push_back(message[5]);
        continue;
      }
      ActionLabel label = parseActionLabel(message[2].get<std::string>());
      measured_.timeline.transfers.push_back({int64_t(number), other, label.backward, label.stage, label.microbatch,
                                              message[3], message[4], message[5]});
    }
  }

  ReportJson costs() const {
    ReportJson stages = ReportJson::array();
    int64_t count = stages_;
    bool hasBackward = false;
    for (const auto &[key, times] : passes_) {
      count += !stages_ && key.first == count; // what a program by hand calls its actions may have any number
      hasBackward |= key.second != 'F';
    }
    for (int64_t stage = 0; stage < count; ++stage) {
      // A stage without ops takes no time, and says so.
      ReportJson parts = {{"forward", 0.0}};
      bool isHandedBack = std::any_of(passes_.lower_bound({stage, 0}), passes_.lower_bound({stage + 1, 0}),
                                      [](const auto &it) { return it.first.second != 'F'; });
      if (hasBackward && !isHandedBack)
        parts["backward"] = 0.0;
      for (auto [kind, name] : {std::pair('F', "forward"), {'B', "backward"}, {'I', "backward_input"},
                                {'W', "backward_weight"}})
        if (auto found = passes_.find({stage, kind}); found != passes_.end())
          parts[name] = found->second.mean();
      stages.push_back(parts);
    }
    double update = 0;
    for (const auto &[rank, milliseconds] : updates_)
      update = std::max(update, milliseconds / 1000);
    return {{"unit", "s"}, {"stages", stages}, {"update", update}};
  }

  int64_t stages_;
  MeasuredTimeline measured_;
  std::map<std::pair<int64_t, char>, PassTimes> passes_; // of a stage
  std::map<size_t, double> updates_;                     // per rank, milliseconds
  std::map<std::pair<int64_t, int64_t>, std::deque<double>> arrivals_; // from, to
};

} // namespace

bool hasScopes(const Program &program) {
  return std::any_of(program.instrs().begin(), program.instrs().end(),
                     [](const Instr &instr) { return instr.scope.size != 0; });
}

std::string tellRank(const Program &program, uint32_t position, const Trace &trace, uint64_t step, int64_t zero) {
  return toText(RankTeller(program, position, trace, step, zero).tell(), -1);
}

MeasuredTimeline joinTimeline(const std::vector<std::string> &ranks, int64_t stages) {
  return Joiner(stages).join(ranks);
}

} // namespace shoal::rt
