// Names cut into numbers and what is between them.
#include "shoal/Support/FoldedNames.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

namespace shoal {

namespace {
struct Piece {
  llvm::StringRef text;
  bool isNumber;
};
} // namespace

static std::vector<Piece> cut(llvm::StringRef name) {
  std::vector<Piece> pieces;
  while (!name.empty()) {
    bool isNumber = llvm::isDigit(name.front());
    llvm::StringRef text = name.take_while([&](char c) { return llvm::isDigit(c) == isNumber; });
    pieces.push_back({text, isNumber});
    name = name.drop_front(text.size());
  }
  return pieces;
}

std::string maskNumbers(llvm::StringRef name) {
  std::string masked;
  for (const Piece &piece : cut(name))
    masked += piece.isNumber ? "\1" : piece.text;
  return masked;
}

/// "3", "0…11", "0,2,7", or "*" when there are many without an order.
static std::string joinNumbers(llvm::ArrayRef<llvm::StringRef> numbers) {
  std::vector<llvm::StringRef> distinct;
  for (llvm::StringRef number : numbers)
    if (!llvm::is_contained(llvm::ArrayRef(distinct).take_back(1), number) && !llvm::is_contained(distinct, number))
      distinct.push_back(number);
  if (distinct.size() == 1)
    return distinct.front().str();
  auto valueOf = [](llvm::StringRef number) {
    uint64_t value = ~uint64_t(0);
    (void)number.getAsInteger(10, value);
    return value;
  };
  llvm::sort(distinct, [&](llvm::StringRef a, llvm::StringRef b) {
    return std::pair(valueOf(a), a) < std::pair(valueOf(b), b);
  });
  if (distinct.size() > 2 && valueOf(distinct.back()) - valueOf(distinct.front()) == distinct.size() - 1)
    return ("{" + distinct.front() + "…" + distinct.back() + "}").str();
  return distinct.size() > 4 ? "*" : "{" + llvm::join(distinct, ",") + "}";
}

static std::string foldNames(llvm::ArrayRef<std::string> names, bool withStars) {
  std::vector<std::vector<Piece>> all;
  for (const std::string &name : names)
    all.push_back(cut(name));
  std::string folded;
  for (size_t at = 0; at < all.front().size(); ++at) {
    if (!all.front()[at].isNumber) {
      folded += all.front()[at].text;
      continue;
    }
    std::vector<llvm::StringRef> numbers;
    for (const std::vector<Piece> &pieces : all)
      numbers.push_back(pieces[at].text);
    folded += withStars && !llvm::all_equal(numbers) ? "*" : joinNumbers(numbers);
  }
  return folded;
}

std::string foldNames(llvm::ArrayRef<std::string> names) { return foldNames(names, /*withStars=*/false); }
std::string starNames(llvm::ArrayRef<std::string> names) { return foldNames(names, /*withStars=*/true); }

std::string spanNames(llvm::ArrayRef<std::string> names) {
  if (names.empty())
    return "";
  if (names.size() == 1)
    return names.front();
  return names.front() + (names.size() == 2 ? " and " : " … ") + names.back();
}

} // namespace shoal
