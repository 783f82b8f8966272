// Actions and lines of text.
#include "Text.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <algorithm>

namespace shoal::pipe {

std::string quote(llvm::StringRef text) {
  constexpr size_t kMost = 24;
  std::string quoted = "'";
  for (char c : text.take_front(kMost))
    quoted += c >= 0x20 && c < 0x7f ? c : '?';
  return quoted + (text.size() > kMost ? "...'" : "'");
}

std::string describeRange(llvm::StringRef what, llvm::StringRef got) {
  return what.str() + " must be a number from 0 to " + std::to_string(kMostWork) + ", got: " + got.str();
}

bool readPlacement(llvm::StringRef name, Placement &placement, std::string &error) {
  std::optional<Placement> known = symbolizePlacement(name);
  if (known)
    placement = *known;
  else
    error = "placement must be loop or vee, got: " + quote(name);
  return known.has_value();
}

namespace {

std::optional<int64_t> toNumber(llvm::StringRef digits) {
  int64_t value;
  if (digits.getAsInteger(10, value) || value < 0 || value > kMostWork)
    return std::nullopt;
  return value;
}

/// Takes digits from the front of `text`.
std::optional<int64_t> takeNumber(llvm::StringRef &text, llvm::StringRef what, std::string &error) {
  llvm::StringRef digits = text.take_while(llvm::isDigit);
  std::optional<int64_t> value = toNumber(digits);
  if (!value)
    error = describeRange(what, quote(digits.empty() ? text.take_until(llvm::isSpace) : digits));
  text = text.drop_front(digits.size());
  return value;
}

constexpr llvm::StringLiteral kExpected =
    "expected F, B, I or W and a micro-batch (in lower case of chunk 1), SF, SB, RF, RB, N or U";

struct Letters {
  ActionKind kind;
  bool backward = false, secondChunk = false;
};

std::optional<Letters> symbolizeLetters(llvm::StringRef letters) {
  constexpr std::pair<llvm::StringLiteral, Letters> known[] = {
      {"F", {ActionKind::Forward}},
      {"B", {ActionKind::Backward}},
      {"I", {ActionKind::BackwardInput}},
      {"W", {ActionKind::BackwardWeight}},
      {"f", {ActionKind::Forward, false, true}},
      {"b", {ActionKind::Backward, false, true}},
      {"i", {ActionKind::BackwardInput, false, true}},
      {"w", {ActionKind::BackwardWeight, false, true}},
      {"SF", {ActionKind::Send}},
      {"SB", {ActionKind::Send, true}},
      {"SI", {ActionKind::Send, true}},
      {"RF", {ActionKind::Recv}},
      {"RB", {ActionKind::Recv, true}},
      {"RI", {ActionKind::Recv, true}},
      {"N", {ActionKind::Norm}},
      {"U", {ActionKind::Update}},
  };
  for (const auto &[name, value] : known)
    if (name == letters)
      return value;
  return std::nullopt;
}

bool isOfRank(ActionKind kind) { return kind == ActionKind::Norm || kind == ActionKind::Update; }

} // namespace

bool readAction(llvm::StringRef letters, int64_t microbatch, int64_t chunk, int64_t stage, int64_t peer,
                std::vector<WrittenAction> &actions, std::string &error) {
  std::optional<Letters> known = symbolizeLetters(letters);
  if (!known) {
    error = "unknown action " + quote(letters) + ", " + kExpected.str();
    return false;
  }
  Action action{known->kind, known->backward};
  if (isOfRank(action.kind) ? microbatch >= 0 || chunk >= 0 || stage >= 0 : microbatch < 0) {
    error = (isOfRank(action.kind) ? "there is one of a rank, without numbers: " : "a micro-batch must follow: ") +
            quote(letters);
    return false;
  }
  if (peer >= 0 && !action.isMessage()) {
    error = "only S and R name another rank, got: " + quote(letters);
    return false;
  }
  if ((chunk >= 0 || known->secondChunk) && stage >= 0) {
    error = "either a chunk or a stage is named, got: " + quote(letters) + " with both";
    return false;
  }
  if (known->secondChunk && chunk >= 0) {
    error = "a letter in lower case is of chunk 1 and names no other, got: " + quote(letters);
    return false;
  }
  action.microbatch = microbatch;
  action.stage = stage;
  action.peer = peer;
  if (!isOfRank(action.kind) && stage < 0)
    chunk = known->secondChunk ? 1 : std::max<int64_t>(chunk, 0);
  actions.push_back({action, chunk});
  return true;
}

bool readActions(llvm::StringRef text, std::vector<WrittenAction> &actions, std::string &error) {
  int64_t grouped = -1; // messages since the brace that is open
  while (!(text = text.ltrim(" \t\r")).empty()) {
    if (text.consume_front("{")) {
      if (grouped >= 0) {
        error = "messages that progress together are in one pair of braces, got: a brace within braces";
        return false;
      }
      grouped = 0;
      continue;
    }
    if (text.consume_front("}")) {
      if (grouped < 0) {
        error = "a brace is closed that is not open";
        return false;
      }
      grouped = -1;
      continue;
    }
    llvm::StringRef rest = text;
    size_t length = text.starts_with("S") || text.starts_with("R") ? 2 : 1;
    llvm::StringRef letters = text.take_front(length);
    if (!symbolizeLetters(letters)) {
      error = "unknown action " + quote(text.take_until([](char c) { return c == ' ' || c == '\t'; })) + ", " +
              kExpected.str();
      return false;
    }
    text = text.drop_front(length);
    int64_t numbers[4] = {-1, -1, -1, -1}; // micro-batch, chunk, stage, peer
    auto take = [&](unsigned index, llvm::StringRef what) {
      std::optional<int64_t> number = takeNumber(text, what, error);
      numbers[index] = number.value_or(-1);
      return number.has_value();
    };
    if (!text.empty() && llvm::isDigit(text.front()) && !take(0, "a micro-batch"))
      return false;
    if (text.consume_front(".") && !take(1, "a chunk"))
      return false;
    if (text.consume_front("@") && !take(2, "a stage"))
      return false;
    if (text.consume_front(letters[0] == 'R' ? "<" : ">") && !take(3, "a rank"))
      return false;
    if (!readAction(letters, numbers[0], numbers[1], numbers[2], numbers[3], actions, error))
      return false;
    if (grouped >= 0) {
      if (!actions.back().action.isMessage()) {
        error = "only S and R stand in braces, got: " + quote(rest.drop_back(text.size()));
        return false;
      }
      actions.back().action.joined = grouped++ > 0;
    }
  }
  if (grouped >= 0)
    error = "a brace is open at the end of the line";
  return grouped < 0;
}

namespace {

/// Reads "key = value" of the head.
bool readHead(llvm::StringRef key, llvm::StringRef value, WrittenSchedule &written, std::string &error) {
  if (key == "placement")
    return readPlacement(value, written.placement, error);
  if (key == "microbatches" || key == "chunks") {
    std::optional<int64_t> number = takeNumber(value, key, error);
    if (number && !value.empty())
      error = key.str() + " must be one number, got more: " + quote(value);
    (key == "chunks" ? written.chunks : written.microbatches) = number;
    return error.empty();
  }
  if (key == "peak") {
    written.peak.clear();
    // As pipe.schedule prints it.
    if (value.consume_front("[") && !value.consume_back("]")) {
      error = "a bracket is open at the end of the peak";
      return false;
    }
    while (!(value = value.ltrim(" \t,")).empty()) {
      std::optional<int64_t> number = takeNumber(value, "a peak", error);
      if (!number)
        return false;
      written.peak.push_back(*number);
    }
    return true;
  }
  error = "unknown key " + quote(key) + ", expected placement, microbatches, chunks or peak";
  return false;
}

/// Takes "0:" or "rank 0:" off a line, which must be that of the next rank.
bool takeLabel(llvm::StringRef &line, size_t rank, std::string &error) {
  if (!line.contains(':'))
    return true;
  auto [label, rest] = line.split(':');
  label.consume_front("rank");
  label = label.trim();
  if (toNumber(label) != int64_t(rank)) {
    error = "the line of rank " + std::to_string(rank) + " is expected here, got: " + quote(label);
    return false;
  }
  line = rest;
  return true;
}

} // namespace

bool readText(llvm::StringRef text, WrittenSchedule &written, TextError &error) {
  for (int64_t number = 1; !text.empty(); ++number) {
    llvm::StringRef line;
    std::tie(line, text) = text.split('\n');
    line = line.split('#').first.trim(" \t\r");
    if (line.empty())
      continue;
    error.line = number;
    if (line.contains('=')) {
      auto [key, value] = line.split('=');
      written.headLine = number;
      if (!readHead(key.trim(), value.trim(), written, error.message))
        return false;
      continue;
    }
    WrittenRank &rank = written.ranks.emplace_back();
    rank.line = number;
    if (!takeLabel(line, written.ranks.size() - 1, error.message) || !readActions(line, rank.actions, error.message))
      return false;
  }
  return true;
}

namespace {

/// Gives an action of `rank` its stage and its peer.
bool resolve(const WrittenAction &written, const Shape &shape, int64_t rank, Action &action, std::string &error) {
  action = written.action;
  if (isOfRank(action.kind))
    return true;
  auto fail = [&](llvm::StringRef what, int64_t got, int64_t end) {
    error = what.str() + " must be below " + std::to_string(end) + ", got: " + std::to_string(got);
    return false;
  };
  if (action.microbatch >= shape.microbatches)
    return fail("a micro-batch", action.microbatch, shape.microbatches);
  if (written.chunk >= shape.chunks)
    return fail("a chunk", written.chunk, shape.chunks);
  if (action.stage < 0)
    action.stage = shape.getStage(rank, written.chunk);
  if (!shape.hasStage(action.stage))
    return fail("a stage", action.stage, shape.getStages());
  if (!action.isMessage())
    return true;
  int64_t other = action.getOtherStage();
  if (action.peer < 0 && !shape.hasStage(other)) {
    error = "there is no stage " + std::string(other < 0 ? "before the first" : "behind the last") +
            " one to exchange a message with, got: " + (action.kind == ActionKind::Send ? "S" : "R") +
            (action.backward ? "B" : "F") + std::to_string(action.microbatch) + " of stage " +
            std::to_string(action.stage);
    return false;
  }
  if (action.peer < 0)
    action.peer = shape.getRank(other);
  return action.peer < shape.ranks || fail("a rank", action.peer, shape.ranks);
}

/// The smallest shape that holds all that is named.
Shape inferShape(const WrittenSchedule &written) {
  Shape shape{int64_t(written.ranks.size()), 1, 1, written.placement};
  for (const WrittenRank &rank : written.ranks)
    for (const WrittenAction &it : rank.actions) {
      shape.microbatches = std::max<int64_t>(shape.microbatches, it.action.microbatch + 1);
      shape.chunks = std::max({shape.chunks, it.chunk + 1, int64_t(it.action.stage) / shape.ranks + 1});
    }
  shape.microbatches = written.microbatches.value_or(shape.microbatches);
  shape.chunks = written.chunks.value_or(shape.chunks);
  return shape;
}

/// In JSON a schedule is an array, or an object whose first key is quoted; in text a brace is followed by a message.
bool isJson(llvm::StringRef text) {
  text = text.ltrim();
  return text.starts_with("[") ||
         (text.consume_front("{") && (text.ltrim().starts_with("\"") || text.ltrim().starts_with("}")));
}

} // namespace

std::optional<Schedule> readSchedule(llvm::StringRef text, llvm::StringRef name, std::string &error,
                                     std::vector<int64_t> *ranksLines) {
  auto fail = [&](int64_t line, const std::string &message) {
    error = name.str() + ":" + std::to_string(line) + ": " + message;
    return std::nullopt;
  };
  WrittenSchedule written;
  TextError problem;
  if (!(isJson(text) ? readJson(text, written, problem) : readText(text, written, problem)))
    return fail(problem.line, problem.message);
  if (written.ranks.empty())
    return fail(1, "a schedule needs a line of actions per rank, got: none");
  Schedule schedule;
  schedule.shape = inferShape(written);
  if (std::string fault = findFault(schedule.shape); !fault.empty())
    return fail(written.headLine, fault);
  if (!written.peak.empty() && written.peak.size() != written.ranks.size())
    return fail(written.headLine, "the peak needs one number per rank (" + std::to_string(written.ranks.size()) +
                                      "), got: " + std::to_string(written.peak.size()));
  schedule.peak = std::move(written.peak);
  for (auto [rank, lines] : llvm::enumerate(written.ranks)) {
    std::vector<Action> &actions = schedule.ranks.emplace_back(lines.actions.size());
    if (ranksLines)
      ranksLines->push_back(lines.line);
    for (auto [from, to] : llvm::zip_equal(lines.actions, actions))
      if (!resolve(from, schedule.shape, rank, to, problem.message))
        return fail(lines.line, problem.message);
  }
  return schedule;
}

bool readRank(llvm::StringRef text, const Shape &shape, int64_t rank, std::vector<Action> &actions,
              std::string &error) {
  std::vector<WrittenAction> written;
  if (!readActions(text, written, error))
    return false;
  actions.resize(written.size());
  for (auto [from, to] : llvm::zip_equal(written, actions))
    if (!resolve(from, shape, rank, to, error))
      return false;
  return true;
}

std::string writeRank(const Schedule &schedule, int64_t rank) {
  const std::vector<Action> &actions = schedule.ranks[rank];
  std::string text;
  for (auto [index, action] : llvm::enumerate(actions)) {
    bool continues = index + 1 < actions.size() && actions[index + 1].joined;
    text += index ? " " : "";
    text += continues && !action.joined ? "{" : "";
    text += format(action, schedule.shape, rank);
    text += action.joined && !continues ? "}" : "";
  }
  return text;
}

std::string writeText(const Schedule &schedule) {
  const Shape &shape = schedule.shape;
  std::string text = "placement = " + stringifyPlacement(shape.placement).str() +
                     "\nmicrobatches = " + std::to_string(shape.microbatches) +
                     "\nchunks = " + std::to_string(shape.chunks) + "\n";
  if (!schedule.peak.empty()) {
    text += "peak =";
    for (int64_t peak : schedule.peak)
      text += " " + std::to_string(peak);
    text += "\n";
  }
  for (int64_t rank = 0; rank < shape.ranks; ++rank)
    text += std::to_string(rank) + ": " + writeRank(schedule, rank) + "\n";
  return text;
}

} // namespace shoal::pipe
