// A mutator that knows words, numbers, strings and brackets of MLIR. What occurs often in a module, such
// as a size or an element type, is also changed everywhere at once, so that types still agree.
#include "MlirMutator.h"

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

namespace shoal::fuzz {
namespace {

using Random = std::minstd_rand;
using Tokens = std::vector<std::string>;

size_t below(Random &random, size_t count) { return count == 0 ? 0 : random() % count; }

bool isWord(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.' || c == '$';
}

// `4x8xf32` becomes 4, x, 8, x, f32, so that a size is a token of its own.
Tokens tokenize(const std::string &text) {
  Tokens tokens;
  for (size_t at = 0; at < text.size();) {
    size_t end = at + 1;
    char c = text[at];
    if (c == '"') {
      end = text.find('"', end);
      end = end == std::string::npos ? text.size() : end + 1;
    } else if (std::isdigit(static_cast<unsigned char>(c))) {
      while (end < text.size() && std::isdigit(static_cast<unsigned char>(text[end])))
        ++end;
    } else if (c == 'x' && end < text.size() && at > 0 &&
               (std::isdigit(static_cast<unsigned char>(text[at - 1])) || text[at - 1] == '?')) {
      // the x between sizes
    } else if (isWord(c) || c == '%' || c == '@' || c == '#' || c == '!') {
      while (end < text.size() && isWord(text[end]))
        ++end;
    } else if (c == ' ') {
      while (end < text.size() && text[end] == ' ')
        ++end;
    }
    tokens.push_back(text.substr(at, end - at));
    at = end;
  }
  return tokens;
}

std::string join(const Tokens &tokens) {
  std::string text;
  for (const std::string &token : tokens)
    text += token;
  return text;
}

bool isNumber(const std::string &token) {
  return !token.empty() && std::isdigit(static_cast<unsigned char>(token[0]));
}

// What a token may be replaced by: tokens of one kind stand in the same places.
int kindOf(const std::string &token) {
  if (isNumber(token))
    return 1;
  if (token[0] == '%' || token[0] == '@' || token[0] == '#' || token[0] == '!' || token[0] == '"')
    return token[0];
  return isWord(token[0]) ? 2 : 0;
}

const char *const kNumbers[] = {"0",  "1",  "2",   "3",          "4",          "5",
                                "7",  "8",  "16",  "1000000",    "2147483647", "4294967296",
                                "-1", "-2", "0.0", "1000000000", "9223372036854775807"};
const char *const kElements[] = {"f32", "f64", "bf16", "f16", "i1", "i8", "i32", "i64", "index", "ui32"};

std::string newNumber(Random &random) { return kNumbers[below(random, std::size(kNumbers))]; }

void replaceAll(Tokens &tokens, const std::string &from, const std::string &to) {
  for (std::string &token : tokens)
    if (token == from)
      token = to;
}

// The token behind the bracket that closes the one at `open`.
size_t closing(const Tokens &tokens, size_t open) {
  int depth = 0;
  for (size_t at = open; at < tokens.size(); ++at) {
    if (tokens[at].size() != 1)
      continue;
    char c = tokens[at][0];
    depth += c == '(' || c == '[' || c == '{' || c == '<';
    depth -= c == ')' || c == ']' || c == '}' || (c == '>' && at > 0 && tokens[at - 1] != "-");
    if (depth == 0)
      return at + 1;
  }
  return tokens.size();
}

std::vector<size_t> placesOf(const Tokens &tokens, bool (*is)(const std::string &)) {
  std::vector<size_t> places;
  for (size_t at = 0; at < tokens.size(); ++at)
    if (is(tokens[at]))
      places.push_back(at);
  return places;
}

// Cuts out a bracket with all it holds, or one entry of it.
void dropBracket(Tokens &tokens, Random &random) {
  std::vector<size_t> places = placesOf(tokens, [](const std::string &token) {
    return token == "{" || token == "[" || token == "<" || token == "(";
  });
  if (places.empty())
    return;
  size_t open = places[below(random, places.size())], end = closing(tokens, open);
  if (below(random, 2) == 0) {
    std::vector<size_t> commas;
    for (size_t at = open + 1; at + 1 < end; ++at)
      if (tokens[at] == ",")
        commas.push_back(at);
    if (!commas.empty()) {
      size_t comma = below(random, commas.size());
      size_t last = comma + 1 < commas.size() ? commas[comma + 1] : end - 1;
      tokens.erase(tokens.begin() + commas[comma], tokens.begin() + last);
      return;
    }
  }
  tokens.erase(tokens.begin() + open, tokens.begin() + end);
}

std::vector<std::string> linesOf(const std::string &text) {
  std::vector<std::string> lines;
  for (size_t at = 0; at < text.size();) {
    size_t end = text.find('\n', at);
    end = end == std::string::npos ? text.size() : end + 1;
    lines.push_back(text.substr(at, end - at));
    at = end;
  }
  return lines;
}

void changeLines(std::string &text, Random &random) {
  std::vector<std::string> lines = linesOf(text);
  if (lines.empty())
    return;
  size_t at = below(random, lines.size()), other = below(random, lines.size());
  switch (below(random, 3)) {
  case 0:
    lines.erase(lines.begin() + at);
    break;
  case 1:
    lines.insert(lines.begin() + other, std::string(lines[at]));
    break;
  case 2:
    std::swap(lines[at], lines[other]);
    break;
  }
  text = join(lines);
}

void change(std::string &text, Random &random) {
  if (below(random, 5) == 0)
    return changeLines(text, random);
  Tokens tokens = tokenize(text);
  std::vector<size_t> words = placesOf(tokens, [](const std::string &token) { return kindOf(token) != 0; });
  std::vector<size_t> numbers = placesOf(tokens, isNumber);
  if (words.empty())
    return;
  size_t at = words[below(random, words.size())];
  switch (below(random, 9)) {
  case 0: // one number
    if (!numbers.empty())
      tokens[numbers[below(random, numbers.size())]] = newNumber(random);
    break;
  case 1: // a size, everywhere
    if (!numbers.empty())
      replaceAll(tokens, std::string(tokens[numbers[below(random, numbers.size())]]), newNumber(random));
    break;
  case 2: // an element type, everywhere
    replaceAll(tokens, kElements[below(random, std::size(kElements))],
               kElements[below(random, std::size(kElements))]);
    break;
  case 3: // a token by another of its kind
  case 4: {
    std::vector<size_t> same;
    for (size_t place : words)
      if (kindOf(tokens[place]) == kindOf(tokens[at]))
        same.push_back(place);
    tokens[at] = std::string(tokens[same[below(random, same.size())]]);
    break;
  }
  case 5: // a name or word, everywhere
    replaceAll(tokens, std::string(tokens[at]), std::string(tokens[words[below(random, words.size())]]));
    break;
  case 6:
    tokens.erase(tokens.begin() + at);
    break;
  case 7:
    dropBracket(tokens, random);
    break;
  case 8: // one token more
    tokens.insert(tokens.begin() + at, tokens[words[below(random, words.size())]]);
    break;
  }
  text = join(tokens);
}

} // namespace

std::string mutate(const std::string &text, unsigned seed) {
  Random random(seed);
  random.discard(3);
  std::string changed = text;
  for (size_t rounds = 1 + below(random, 4); rounds != 0; --rounds)
    change(changed, random);
  return changed;
}

std::string mix(const std::string &text, const std::string &other, unsigned seed) {
  Random random(seed);
  random.discard(3);
  std::vector<std::string> lines = linesOf(text), more = linesOf(other);
  if (lines.empty() || more.empty())
    return text;
  size_t first = below(random, more.size()), count = 1 + below(random, 3);
  lines.insert(lines.begin() + below(random, lines.size()), more.begin() + first,
               more.begin() + std::min(first + count, more.size()));
  return join(lines);
}

} // namespace shoal::fuzz

// libFuzzer calls these by name.
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t maxSize, unsigned seed);
extern "C" size_t LLVMFuzzerCustomCrossOver(const uint8_t *first, size_t firstSize, const uint8_t *second,
                                            size_t secondSize, uint8_t *out, size_t maxSize,
                                            unsigned seed);

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t maxSize, unsigned seed) {
  std::string text(reinterpret_cast<const char *>(data), size);
  std::string changed = shoal::fuzz::mutate(text, seed);
  size = std::min(changed.size(), maxSize);
  std::memcpy(data, changed.data(), size);
  return size;
}

extern "C" size_t LLVMFuzzerCustomCrossOver(const uint8_t *first, size_t firstSize, const uint8_t *second,
                                            size_t secondSize, uint8_t *out, size_t maxSize,
                                            unsigned seed) {
  std::string text(reinterpret_cast<const char *>(first), firstSize);
  std::string other(reinterpret_cast<const char *>(second), secondSize);
  std::string mixed = shoal::fuzz::mix(text, other, seed);
  size_t size = std::min(mixed.size(), maxSize);
  std::memcpy(out, mixed.data(), size);
  return size;
}
