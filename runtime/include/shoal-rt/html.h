// Writes HTML whose elements are closed by construction and whose text is always escaped, and numbers as people
// read them. The compiler's pages and the run's are written with it.
#ifndef SHOAL_RT_HTML_H
#define SHOAL_RT_HTML_H

#include <concepts>
#include <cstdint>
#include <cstdio>
#include <initializer_list>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>

namespace shoal::rt {

// Bytes of the UTF-8 character that begins at `at`; 0 where none does.
inline size_t utf8Length(std::string_view text, size_t at) {
  auto byte = [&](size_t i) { return at + i < text.size() ? static_cast<unsigned char>(text[at + i]) : 0u; };
  unsigned first = byte(0);
  if (first < 0x80)
    return 1;
  size_t length = first >= 0xc2 && first < 0xe0 ? 2 : first >= 0xe0 && first < 0xf0 ? 3 : first >= 0xf0 && first < 0xf5 ? 4 : 0;
  for (size_t i = 1; i < length; ++i)
    if ((byte(i) & 0xc0) != 0x80)
      return 0;
  // Longer than needed, halves of UTF-16, and past the last one.
  if ((first == 0xe0 && byte(1) < 0xa0) || (first == 0xed && byte(1) >= 0xa0) || (first == 0xf0 && byte(1) < 0x90) ||
      (first == 0xf4 && byte(1) >= 0x90))
    return 0;
  return length;
}

// Text that is the same anywhere in HTML: in an element and in a quoted attribute. Bytes that are no UTF-8 and
// control characters are replaced by U+FFFD.
inline std::string escapeHtml(std::string_view text) {
  std::string escaped;
  escaped.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    size_t length = utf8Length(text, at);
    unsigned char c = static_cast<unsigned char>(text[at]);
    if (c == '&')
      escaped += "&amp;";
    else if (c == '<')
      escaped += "&lt;";
    else if (c == '>')
      escaped += "&gt;";
    else if (c == '"')
      escaped += "&quot;";
    else if (c == '\'')
      escaped += "&#39;";
    else if (length == 0 || (c < 0x20 && c != '\n' && c != '\t') || c == 0x7f)
      escaped += "\xEF\xBF\xBD";
    else
      escaped += text.substr(at, length);
    at += length ? length : 1;
  }
  return escaped;
}

class Html {
public:
  using Attributes = std::initializer_list<std::pair<std::string_view, std::string>>;

  // An element, and in it what `body` writes.
  template <std::invocable Body> void tag(std::string_view name, Attributes attributes, Body &&body) {
    open(name, attributes);
    out_ += '>';
    body();
    out_ += "</";
    out_ += name;
    out_ += '>';
  }
  // An element that holds text.
  void tag(std::string_view name, Attributes attributes, std::string_view contents) {
    tag(name, attributes, [&] { text(contents); });
  }
  // An element without an end: <meta>, and the shapes of SVG.
  void leaf(std::string_view name, Attributes attributes) {
    open(name, attributes);
    out_ += "/>";
  }
  void text(std::string_view text) { out_ += escapeHtml(text); }
  // A constant of the writer's own, as it is: its style and script.
  void raw(std::string_view constant) { out_ += constant; }
  // Many elements may be long lists: keeps lines short for people who read the source.
  void newline() { out_ += '\n'; }

  std::string take() { return std::move(out_); }

private:
  void open(std::string_view name, Attributes attributes) {
    out_ += '<';
    out_ += name;
    for (const auto &[attribute, value] : attributes) {
      out_ += ' ';
      out_ += attribute;
      out_ += "=\"";
      out_ += escapeHtml(value);
      out_ += '"';
    }
  }
  std::string out_;
};

// "%.4g" and the like.
inline std::string showNumber(double value, const char *form = "%.4g") {
  char text[64];
  std::snprintf(text, sizeof text, form, value);
  return text;
}

// Three digits that count, without zeros behind the point.
inline std::string showDigits(double value) {
  std::string text = showNumber(value, value < 9.995 ? "%.2f" : value < 99.95 ? "%.1f" : "%.0f");
  if (text.find('.') != std::string::npos) {
    text.erase(text.find_last_not_of('0') + 1);
    if (text.back() == '.')
      text.pop_back();
  }
  return text;
}

// "1.5 KiB", "0 B"; three digits that count.
inline std::string showBytes(uint64_t bytes) {
  constexpr const char *units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  double value = double(bytes);
  unsigned unit = 0;
  for (; value >= 1000 && unit + 1 < std::size(units); ++unit)
    value /= 1024;
  return showDigits(value) + " " + units[unit];
}

// "1,234,567".
inline std::string showCount(uint64_t count) {
  std::string text = std::to_string(count);
  for (int64_t at = int64_t(text.size()) - 3; at > 0; at -= 3)
    text.insert(size_t(at), ",");
  return text;
}

// "124M", "7.21B"; below 10,000 as it is.
inline std::string showAmount(uint64_t count) {
  if (count < 10000)
    return showCount(count);
  constexpr const char *units[] = {"", "K", "M", "B", "T", "P", "E"};
  double value = double(count);
  unsigned unit = 0;
  for (; value >= 999.5 && unit + 1 < std::size(units); ++unit)
    value /= 1000;
  return showDigits(value) + units[unit];
}

// A coordinate of SVG: at most one digit behind the point.
inline std::string showPoint(double value) {
  std::string text = showNumber(value, "%.1f");
  if (text.ends_with(".0"))
    text.resize(text.size() - 2);
  return text == "-0" ? "0" : text;
}

// "1 tensor", "3 tensors".
inline std::string showNumberOf(uint64_t count, std::string_view noun) {
  return showCount(count) + " " + std::string(noun) + (count == 1 ? "" : "s");
}

// Bytes for people, with all digits in the title.
inline void writeBytes(Html &html, std::string_view tag, uint64_t bytes) {
  html.tag(tag, {{"class", "num"}, {"title", showCount(bytes) + " B"}}, showBytes(bytes));
}

} // namespace shoal::rt

#endif // SHOAL_RT_HTML_H
