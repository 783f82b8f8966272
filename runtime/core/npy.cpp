// The header of a .npy file is a Python dictionary with three keys; this reads that much
// Python and no more.
#include "core/npy.h"
#include "core/error.h"
#include "core/program.h"

#include <cctype>
#include <cstring>

namespace shoal::rt {
namespace {

constexpr std::string_view kMagic("\x93NUMPY", 6);

struct TypeCode {
  std::string_view code; // after the byte order
  FileType type;
};
constexpr TypeCode kTypeCodes[] = {
    {"b1", FileType::Bool}, {"u1", FileType::U8},  {"i1", FileType::I8},  {"u2", FileType::U16},
    {"i2", FileType::I16},  {"u4", FileType::U32}, {"i4", FileType::I32}, {"u8", FileType::U64},
    {"i8", FileType::I64},  {"f2", FileType::F16}, {"f4", FileType::F32}, {"f8", FileType::F64}};

// A cursor over the dictionary's text.
class Scanner {
public:
  Scanner(std::string_view text, const std::string &path) : text_(text), path_(path) {}

  void skipSpace() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_])))
      ++at_;
  }
  bool accept(char c) {
    skipSpace();
    if (at_ >= text_.size() || text_[at_] != c)
      return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!accept(c))
      fail(cat("expected '", c, "'"));
  }
  std::string_view quoted() {
    skipSpace();
    char quote = at_ < text_.size() ? text_[at_] : 0;
    if (quote != '\'' && quote != '"')
      fail("expected a string");
    size_t end = text_.find(quote, ++at_);
    if (end == std::string_view::npos)
      fail("expected the end of a string");
    std::string_view result = text_.substr(at_, end - at_);
    at_ = end + 1;
    return result;
  }
  bool boolean() {
    skipSpace();
    for (std::string_view word : {"True", "False"})
      if (text_.substr(at_, word.size()) == word) {
        at_ += word.size();
        return word == "True";
      }
    fail("expected True or False");
  }
  uint64_t number() {
    skipSpace();
    size_t first = at_;
    uint64_t value = 0;
    for (; at_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at_])); ++at_)
      if (__builtin_mul_overflow(value, 10, &value) ||
          __builtin_add_overflow(value, uint64_t(text_[at_] - '0'), &value))
        fail("a dimension does not fit 64 bits");
    if (at_ == first)
      fail("expected a dimension");
    return value;
  }
  bool atEnd() {
    skipSpace();
    return at_ == text_.size();
  }
  [[noreturn]] void fail(const std::string &why) {
    badInput(path_, ": bad .npy header: ", why, " at character ", at_);
  }

private:
  std::string_view text_;
  const std::string &path_;
  size_t at_ = 0;
};

} // namespace

NpyFile::NpyFile(const std::string &path) : file_(path) {
  const unsigned char *bytes = file_.data();
  uint64_t size = file_.size();
  if (size < 10 || std::memcmp(bytes, kMagic.data(), kMagic.size()) != 0)
    badInput(path, ": is not a .npy file");
  int major = bytes[6];
  if (major < 1 || major > 3)
    badInput(path, ": .npy version must be 1 to 3, got: ", major);
  uint64_t start = major == 1 ? 10 : 12;
  if (size < start)
    badInput(path, ": the .npy header is cut off after ", size, " bytes");
  uint64_t length = bytes[8] | uint64_t(bytes[9]) << 8;
  if (major > 1)
    length |= uint64_t(bytes[10]) << 16 | uint64_t(bytes[11]) << 24;
  if (length > size - start)
    badInput(path, ": the .npy header of ", length, " bytes is cut off after ", size - start);
  parseHeader({reinterpret_cast<const char *>(bytes) + start, size_t(length)});
  data_ = bytes + start + length;

  uint64_t wanted = fileElementBytes(type_);
  for (uint64_t dim : shape_)
    if (__builtin_mul_overflow(wanted, dim, &wanted))
      badInput(path, ": shape ", shapeText(shape_), " does not fit 64 bits");
  uint64_t present = size - start - length;
  if (present != wanted)
    badInput(path, ": ", fileTypeName(type_), shapeText(shape_), " takes ", wanted,
             " bytes of data, got: ", present);
}

void NpyFile::parseHeader(std::string_view header) {
  Scanner scan(header, path());
  bool hasType = false, hasOrder = false, hasShape = false, fortran = false;
  scan.expect('{');
  while (!scan.accept('}')) {
    std::string_view key = scan.quoted();
    scan.expect(':');
    if (key == "descr" && !hasType) {
      std::string_view code = scan.quoted();
      if (!code.empty() && code[0] == '>')
        badInput(path(), ": data must be little-endian, got: '", code, "'");
      for (const TypeCode &known : kTypeCodes)
        if (code.size() == 3 && std::strchr("<|=", code[0]) && code.substr(1) == known.code) {
          type_ = known.type;
          hasType = true;
        }
      if (!hasType)
        badInput(path(), ": element type must be a bool, integer or float, got: '", code, "'");
    } else if (key == "fortran_order" && !hasOrder) {
      fortran = scan.boolean();
      hasOrder = true;
    } else if (key == "shape" && !hasShape) {
      scan.expect('(');
      while (!scan.accept(')')) {
        shape_.push_back(scan.number());
        if (shape_.size() > 32)
          scan.fail("more than 32 dimensions");
        if (!scan.accept(',')) {
          scan.expect(')');
          break;
        }
      }
      hasShape = true;
    } else {
      scan.fail(cat("unexpected key '", key, "'"));
    }
    if (!scan.accept(',')) {
      scan.expect('}');
      break;
    }
  }
  if (!scan.atEnd())
    scan.fail("expected the end");
  if (!hasType || !hasOrder || !hasShape)
    scan.fail("expected the keys descr, fortran_order and shape");
  if (fortran && shape_.size() > 1)
    badInput(path(), ": data must be in C order, got: Fortran order");
}

std::string npyHeader(FileType type, std::span<const uint64_t> shape) {
  std::string code;
  for (const TypeCode &known : kTypeCodes)
    if (known.type == type)
      code = (fileElementBytes(type) == 1 ? "|" : "<") + std::string(known.code);
  if (code.empty())
    badInput("a .npy file cannot hold ", fileTypeName(type));
  std::string text = "{'descr': '" + code + "', 'fortran_order': False, 'shape': (";
  for (uint64_t dim : shape)
    text += std::to_string(dim) + ", ";
  if (shape.size() > 1)
    text.resize(text.size() - 2);
  else if (shape.size() == 1)
    text.resize(text.size() - 1);
  text += "), }";
  // The data starts at a multiple of 64 bytes, the header ends with a line end.
  size_t total = (10 + text.size() + 1 + 63) / 64 * 64;
  text.resize(total - 11, ' ');
  text += '\n';
  std::string header(kMagic);
  header += std::string("\x01\x00", 2);
  header += char(text.size() & 255);
  header += char(text.size() >> 8);
  return header + text;
}

} // namespace shoal::rt
