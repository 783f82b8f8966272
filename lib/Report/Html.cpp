// Escaping, elements and numbers.
#include "Html.h"

#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"

namespace shoal::report {

std::string escapeHtml(llvm::StringRef text) {
  std::string escaped;
  std::string fixed;
  if (!llvm::json::isUTF8(text))
    text = fixed = llvm::json::fixUTF8(text);
  escaped.reserve(text.size());
  for (char c : text) {
    switch (c) {
    case '&':
      escaped += "&amp;";
      break;
    case '<':
      escaped += "&lt;";
      break;
    case '>':
      escaped += "&gt;";
      break;
    case '"':
      escaped += "&quot;";
      break;
    case '\'':
      escaped += "&#39;";
      break;
    default:
      if ((static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t') || c == 0x7f)
        escaped += "\xEF\xBF\xBD";
      else
        escaped += c;
    }
  }
  return escaped;
}

void Html::open(llvm::StringRef name, Attributes attributes) {
  out += '<';
  out += name;
  for (const auto &[attribute, value] : attributes) {
    out += ' ';
    out += attribute;
    out += "=\"";
    out += escapeHtml(value);
    out += '"';
  }
}

void Html::tag(llvm::StringRef name, Attributes attributes, llvm::function_ref<void()> body) {
  open(name, attributes);
  out += '>';
  body();
  out += "</";
  out += name;
  out += '>';
}

void Html::tag(llvm::StringRef name, Attributes attributes, llvm::StringRef contents) {
  tag(name, attributes, [&] { text(contents); });
}

void Html::leaf(llvm::StringRef name, Attributes attributes) {
  open(name, attributes);
  out += "/>";
}

/// Three digits that count, without zeros behind the point.
static std::string showDigits(double value) {
  int behind = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
  std::string text = llvm::formatv(behind == 2 ? "{0:F2}" : behind == 1 ? "{0:F1}" : "{0:F0}", value);
  if (llvm::StringRef(text).contains('.')) {
    text.erase(text.find_last_not_of('0') + 1);
    if (text.back() == '.')
      text.pop_back();
  }
  return text;
}

std::string showBytes(uint64_t bytes) {
  constexpr const char *units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  double value = bytes;
  unsigned unit = 0;
  for (; value >= 1000 && unit + 1 < std::size(units); ++unit)
    value /= 1024;
  return showDigits(value) + " " + units[unit];
}

std::string showCount(uint64_t count) {
  std::string text = std::to_string(count);
  for (int64_t at = int64_t(text.size()) - 3; at > 0; at -= 3)
    text.insert(at, ",");
  return text;
}

std::string showAmount(uint64_t count) {
  if (count < 10000)
    return showCount(count);
  constexpr const char *units[] = {"", "K", "M", "B", "T", "P", "E"};
  double value = count;
  unsigned unit = 0;
  for (; value >= 999.5 && unit + 1 < std::size(units); ++unit)
    value /= 1000;
  return showDigits(value) + units[unit];
}

std::string showPoint(double value) {
  std::string text = llvm::formatv("{0:F1}", value);
  if (llvm::StringRef(text).ends_with(".0"))
    text.resize(text.size() - 2);
  return text == "-0" ? "0" : text;
}

std::string showNumberOf(uint64_t count, llvm::StringRef noun) {
  return showCount(count) + " " + noun.str() + (count == 1 ? "" : "s");
}

} // namespace shoal::report
