// Schedules in JSON. The parser's events make a tree that knows its lines, so that every complaint names one.
#include "Text.h"

#include "llvm/ADT/STLExtras.h"

#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

namespace shoal::pipe {

namespace {

struct Node {
  enum Kind { String, Number, Array, Object, Other } kind = Other;
  int64_t line = 1;
  std::string text = {}; // of a string, or of a number as it is shown
  int64_t number = -1;
  std::string key = {}; // in an object
  std::vector<Node> children = {};
};

constexpr const char *kindNames[] = {"a string", "a number", "an array", "an object", "something else"};

/// Counts the lines before the character that was read last.
class Reader {
public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char *;
  using reference = const char &;

  Reader(const char *at, int64_t *line) : at(at), line(line) {}
  reference operator*() const { return *at; }
  Reader &operator++() {
    *line += std::exchange(pending, *at == '\n');
    ++at;
    return *this;
  }
  Reader operator++(int) {
    Reader old = *this;
    ++*this;
    return old;
  }
  bool operator==(const Reader &other) const { return at == other.at; }

private:
  const char *at;
  int64_t *line;
  bool pending = false;
};

class TreeBuilder : public nlohmann::json_sax<nlohmann::json> {
public:
  TreeBuilder(const int64_t &line, TextError &error) : line(line), error(error) {}
  Node root;

  bool null() override { return add({Node::Other, line, "null"}); }
  bool boolean(bool value) override { return add({Node::Other, line, value ? "true" : "false"}); }
  bool number_integer(number_integer_t value) override { return add({Node::Number, line, std::to_string(value), -1}); }
  bool number_unsigned(number_unsigned_t value) override {
    int64_t number = value <= uint64_t(kMostWork) ? int64_t(value) : -1;
    return add({Node::Number, line, std::to_string(value), number});
  }
  bool number_float(number_float_t, const string_t &text) override { return add({Node::Number, line, text, -1}); }
  bool string(string_t &value) override { return add({Node::String, line, value}); }
  bool binary(binary_t &) override { return false; }
  bool start_object(size_t) override { return open(Node::Object); }
  bool start_array(size_t) override { return open(Node::Array); }
  bool key(string_t &name) override {
    constexpr size_t kMostKeys = 8; // more than any object here has
    nextKey = name;
    if (stack.back()->children.size() == kMostKeys)
      return fail("an object has more keys than there are: " + quote(name));
    if (llvm::any_of(stack.back()->children, [&](const Node &child) { return child.key == name; }))
      return fail("a key stands twice: " + quote(name));
    return true;
  }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool parse_error(size_t, const std::string &, const nlohmann::detail::exception &) override {
    return fail("the text must be JSON (it begins with a bracket), and is broken here");
  }

private:
  /// Lists of ranks, of actions, of groups, and an action.
  static constexpr size_t kDeepest = 5;

  bool fail(const std::string &message) {
    error = {line, message};
    return false;
  }
  bool add(Node node) {
    if (stack.empty())
      root = std::move(node);
    else
      stack.back()->children.emplace_back(std::move(node)).key = std::exchange(nextKey, "");
    return true;
  }
  bool open(Node::Kind kind) {
    if (stack.size() == kDeepest)
      return fail("arrays and objects must be at most " + std::to_string(kDeepest) + " deep");
    add({kind, line});
    // Children are only added to the innermost, so that the others stay where they are.
    stack.push_back(stack.empty() ? &root : &stack.back()->children.back());
    return true;
  }
  bool close() {
    stack.pop_back();
    return true;
  }

  const int64_t &line;
  TextError &error;
  std::vector<Node *> stack;
  std::string nextKey;
};

class Converter {
public:
  Converter(WrittenSchedule &written, TextError &error) : written(written), error(error) {}

  bool convert(const Node &root) {
    if (root.kind == Node::Array)
      return convertRanks(root);
    if (root.kind != Node::Object)
      return fail(root, std::string("a schedule must be an array or an object, got: ") + kindNames[root.kind]);
    written.headLine = root.line;
    for (const Node &node : root.children)
      if (!convertKey(node.key, node))
        return false;
    return true;
  }

private:
  bool fail(const Node &node, const std::string &message) {
    error = {node.line, message};
    return false;
  }

  bool expect(const Node &node, Node::Kind kind, llvm::StringRef what) {
    return node.kind == kind ||
           fail(node, what.str() + " must be " + kindNames[kind] + ", got: " + kindNames[node.kind]);
  }

  bool convertNumber(const Node &node, llvm::StringRef what, int64_t &number) {
    number = node.number;
    return node.number >= 0 ||
           fail(node, describeRange(what, node.kind == Node::Number ? node.text : kindNames[node.kind]));
  }

  bool convertKey(const std::string &key, const Node &node) {
    if (key == "ranks")
      return expect(node, Node::Array, "ranks") && convertRanks(node);
    if (key == "placement") {
      std::string problem;
      return expect(node, Node::String, "placement") &&
             (readPlacement(node.text, written.placement, problem) || fail(node, problem));
    }
    if (key == "microbatches")
      return convertNumber(node, key, written.microbatches.emplace());
    if (key == "chunks")
      return convertNumber(node, key, written.chunks.emplace());
    if (key == "peak") {
      if (!expect(node, Node::Array, "peak"))
        return false;
      for (const Node &number : node.children)
        if (!convertNumber(number, "a peak", written.peak.emplace_back()))
          return false;
      return true;
    }
    return fail(node, "unknown key " + quote(key) + ", expected ranks, placement, microbatches, chunks or peak");
  }

  bool convertRanks(const Node &array) {
    for (const Node &node : array.children) {
      WrittenRank &rank = written.ranks.emplace_back();
      rank.line = node.line;
      if (node.kind == Node::String ? !convertLine(node, rank) : !convertActions(node, rank, true))
        return false;
    }
    return true;
  }

  bool convertLine(const Node &node, WrittenRank &rank) {
    std::string problem;
    return readActions(node.text, rank.actions, problem) || fail(node, problem);
  }

  /// The actions of a rank; `mayNest`: an array among them is messages that progress together.
  bool convertActions(const Node &array, WrittenRank &rank, bool mayNest) {
    if (!expect(array, Node::Array, mayNest ? "a rank, or messages that progress together," : "an action"))
      return false;
    for (const Node &node : array.children) {
      if (node.kind == Node::String   ? !convertLine(node, rank)
          : node.kind == Node::Object ? !convertAction(node, rank)
          : mayNest                   ? !convertGroup(node, rank)
                                      : !expect(node, Node::Object, "an action"))
        return false;
    }
    return true;
  }

  bool convertGroup(const Node &array, WrittenRank &rank) {
    size_t first = rank.actions.size();
    if (!convertActions(array, rank, false))
      return false;
    for (size_t index = first; index < rank.actions.size(); ++index) {
      Action &action = rank.actions[index].action;
      if (!action.isMessage())
        return fail(array, "only messages progress together");
      action.joined = index > first;
    }
    return true;
  }

  bool convertAction(const Node &object, WrittenRank &rank) {
    std::string letters, problem;
    int64_t microbatch = -1, chunk = -1, stage = -1, peer = -1;
    for (const Node &node : object.children) {
      const std::string &key = node.key;
      int64_t *number = key == "microbatch" ? &microbatch
                        : key == "chunk"    ? &chunk
                        : key == "stage"    ? &stage
                        : key == "peer"     ? &peer
                                            : nullptr;
      if (key == "action") {
        if (!expect(node, Node::String, "action"))
          return false;
        letters = node.text;
      } else if (!number) {
        return fail(node, "unknown key " + quote(key) + ", expected action, microbatch, chunk, stage or peer");
      } else if (!convertNumber(node, key, *number)) {
        return false;
      }
    }
    return readAction(letters, microbatch, chunk, stage, peer, rank.actions, problem) || fail(object, problem);
  }

  WrittenSchedule &written;
  TextError &error;
};

} // namespace

bool readJson(llvm::StringRef text, WrittenSchedule &written, TextError &error) {
  int64_t line = 1;
  error.line = 1;
  TreeBuilder builder(line, error);
  return nlohmann::json::sax_parse(Reader(text.begin(), &line), Reader(text.end(), &line), &builder) &&
         Converter(written, error).convert(builder.root);
}

std::string writeJson(const Schedule &schedule) {
  // Ordered, and a rank on a line each: a file for people.
  auto show = [](const auto &value) { return nlohmann::json(value).dump(); };
  std::string text = "{\n  \"placement\": " + show(stringifyPlacement(schedule.shape.placement).str()) +
                     ",\n  \"microbatches\": " + show(schedule.shape.microbatches) +
                     ",\n  \"chunks\": " + show(schedule.shape.chunks);
  if (!schedule.peak.empty())
    text += ",\n  \"peak\": " + show(schedule.peak);
  text += ",\n  \"ranks\": [";
  for (int64_t rank = 0; rank < schedule.shape.ranks; ++rank)
    text += (rank ? ",\n    " : "\n    ") + show(writeRank(schedule, rank));
  return text + "\n  ]\n}\n";
}

} // namespace shoal::pipe
