// One pass over the characters of a model: depth of brackets, also through aliases of types and
// attributes, the length of sums, for which the parser recurses, too, and operands that are defined
// inside of their own op, which MLIR 19's parser reads after it has freed them.
#include "shoal/Support/ModelText.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

#include <algorithm>

namespace shoal {
namespace {

// Models nest a dozen levels. MLIR's parser takes a few thousand on a stack of 8 MiB, a tenth of
// that under the sanitizers.
constexpr unsigned kMaxDepth = 256;
constexpr unsigned kMaxTerms = 1000;

class Scanner {
public:
  explicit Scanner(llvm::StringRef text) : text_(text) {}

  std::optional<ModelTextProblem> run() {
    while (at_ < text_.size() && !problem_)
      step();
    return problem_;
  }

private:
  char peek(size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }

  void step() {
    char c = peek();
    switch (c) {
    case '"':
      return skipString();
    case '/':
      if (peek(1) == '/') {
        at_ = std::min(text_.find('\n', at_), text_.size());
        return;
      }
      break;
    case '-':
    case '+':
      if (peek(1) == '>') { // an arrow
        at_ += 2;
        return;
      }
      if (++terms_.back() > kMaxTerms)
        fail("a sum must have at most " + std::to_string(kMaxTerms) + " terms");
      break;
    case ',':
    case ':':
    case '=':
      terms_.back() = 0;
      break;
    case '<':
    case '>':
      if (peek(1) == '=') { // a comparison
        at_ += 2;
        return;
      }
      [[fallthrough]];
    case '(':
    case ')':
    case '[':
    case ']':
    case '{':
    case '}':
      if (c == '{')
        scopes_.emplace_back();
      else if (c == '}' && scopes_.size() > 1)
        scopes_.pop_back();
      bracket(llvm::is_contained({'<', '(', '[', '{'}, c));
      break;
    case '%':
      return value();
    case '!':
    case '#':
      return alias();
    }
    ++at_;
  }

  void skipString() {
    for (++at_; at_ < text_.size() && text_[at_] != '"' && text_[at_] != '\n'; ++at_)
      if (text_[at_] == '\\')
        ++at_;
    ++at_;
  }

  void bracket(bool opens) {
    if (opens) {
      terms_.push_back(0);
      reach(depth());
    } else if (terms_.size() > 1) {
      terms_.pop_back();
    }
  }

  // `#name` or `!name`: the start of a definition, or a use, which is as deep as what it stands for.
  void alias() {
    size_t begin = at_++;
    while (llvm::isAlnum(peek()) || llvm::is_contained({'_', '$', '.'}, peek()))
      ++at_;
    llvm::StringRef name = text_.slice(begin, at_);
    llvm::StringRef rest = text_.drop_front(at_).ltrim();
    if (depth() == 0 && rest.starts_with("=") && !rest.starts_with("==")) {
      defined_ = name;
      aliasDepths_[name] = 0;
      return;
    }
    auto known = aliasDepths_.find(name);
    if (known == aliasDepths_.end())
      return;
    if (name == defined_) // so its definition has ended
      defined_ = {};
    reach(depth() + known->second + 1);
  }

  // `%name`: a definition in front of an equals sign or as an argument, else a use. An operand that is
  // defined later, in a region inside of the one that uses it, can only be wrong.
  void value() {
    size_t begin = at_++;
    while (llvm::isAlnum(peek()) || llvm::is_contained({'_', '$', '.', '-'}, peek()))
      ++at_;
    llvm::StringRef name = text_.slice(begin, at_);
    llvm::StringRef rest = text_.drop_front(at_).ltrim();
    llvm::StringRef before = text_.take_front(begin).rtrim();
    bool isArgument = rest.starts_with(":") && (before.ends_with("(") || before.ends_with(","));
    bool isResult = rest.starts_with("=") && !rest.starts_with("==");
    bool isDefined = llvm::any_of(scopes_, [&](const Scope &scope) { return scope.defined.contains(name); });
    if (isArgument || isResult) {
      for (const Scope &outer : llvm::ArrayRef(scopes_).drop_back())
        if (!isArgument && !isDefined && outer.used.contains(name))
          return fail(("value '" + name + "' is used outside of the region that defines it").str());
      scopes_.back().defined.insert(name);
    } else if (!isDefined) {
      scopes_.back().used.insert(name);
    }
  }

  void reach(unsigned depth) {
    if (depth > kMaxDepth)
      return fail("nesting must be at most " + std::to_string(kMaxDepth) + " levels deep");
    if (!defined_.empty()) {
      unsigned &known = aliasDepths_[defined_];
      known = std::max(known, depth);
    }
  }

  unsigned depth() const { return unsigned(terms_.size()) - 1; }

  void fail(std::string rule) {
    llvm::StringRef before = text_.take_front(at_);
    size_t lineStart = before.rfind('\n') + 1; // 0 on the first line
    problem_ = {unsigned(before.count('\n')) + 1, unsigned(at_ - lineStart) + 1, std::move(rule)};
  }

  // The values of an open brace: what it defines, and what it uses before or without a definition.
  struct Scope {
    llvm::StringSet<> defined, used;
  };

  llvm::StringRef text_;
  size_t at_ = 0;
  llvm::SmallVector<Scope> scopes_ = llvm::SmallVector<Scope>(1);
  llvm::SmallVector<unsigned> terms_ = {0}; // per open bracket: signs of the current sum
  llvm::StringMap<unsigned> aliasDepths_;
  llvm::StringRef defined_; // the alias whose definition this is
  std::optional<ModelTextProblem> problem_;
};

} // namespace

std::optional<ModelTextProblem> checkModelText(llvm::StringRef text) {
  if (text.starts_with("ML\xefR"))
    return std::nullopt;
  return Scanner(text).run();
}

} // namespace shoal
