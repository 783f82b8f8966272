// Reads and lays out safetensors files. A header is JSON from a file: its size, its
// nesting and every offset are bounded before they are used.
#include "core/safetensors.h"
#include "core/error.h"
#include "core/program.h"
#include "shoal-rt/json_input.h"

#include <algorithm>
#include <cstring>

namespace shoal::rt {
namespace {

constexpr uint64_t kMaxHeaderBytes = 100'000'000; // as the reference reader

struct TypeName {
  const char *name;
  FileType type;
};
constexpr TypeName kTypeNames[] = {
    {"BOOL", FileType::Bool}, {"U8", FileType::U8},     {"I8", FileType::I8},
    {"U16", FileType::U16},   {"I16", FileType::I16},   {"U32", FileType::U32},
    {"I32", FileType::I32},   {"U64", FileType::U64},   {"I64", FileType::I64},
    {"F16", FileType::F16},   {"BF16", FileType::BF16}, {"F32", FileType::F32},
    {"F64", FileType::F64}};

std::string got(const InputJson &value) { return shortened(toMessage(value)); }

} // namespace

SafetensorsFile::SafetensorsFile(const std::string &path) : file_(path) {
  uint64_t size = file_.size(), length = 0;
  if (size < 8)
    badInput(path, ": is not a safetensors file: ", size, " bytes, expected at least 8");
  std::memcpy(&length, file_.data(), 8);
  if (length > kMaxHeaderBytes || length > size - 8)
    badInput(path, ": is not a safetensors file: a header of ", length, " bytes in a file of ",
             size);
  ParsedObject header = parseJsonObject({reinterpret_cast<const char *>(file_.data()) + 8, length});
  if (!header.problem.empty())
    badInput(path, ": the safetensors header ", header.problem);
  const unsigned char *data = file_.data() + 8 + length;
  uint64_t dataBytes = size - 8 - length;

  std::vector<std::pair<uint64_t, uint64_t>> ranges;
  for (const auto &[name, entry] : header.value.items()) {
    if (name == "__metadata__")
      continue;
    auto wrong = [&, &name = name](const std::string &why) {
      badInput(path, ": tensor '", shortened(name), "': ", why);
    };
    TensorEntry tensor{};
    if (!entry.is_object() || !entry.contains("dtype") || !entry["dtype"].is_string() ||
        !entry.contains("shape") || !entry["shape"].is_array() ||
        !entry.contains("data_offsets") || !entry["data_offsets"].is_array() ||
        entry["data_offsets"].size() != 2)
      wrong("expected dtype, shape and two data_offsets, got: " + got(entry));
    const std::string dtype = entry["dtype"].get<std::string>();
    auto known = std::find_if(std::begin(kTypeNames), std::end(kTypeNames),
                              [&](const TypeName &t) { return dtype == t.name; });
    if (known == std::end(kTypeNames))
      wrong("unknown dtype '" + shortened(dtype) + "'");
    tensor.type = known->type;
    uint64_t bytes = fileElementBytes(tensor.type);
    for (const InputJson &dim : entry["shape"]) {
      if (!dim.is_number_unsigned())
        wrong("dimensions must be integers of at least 0, got: " + got(dim));
      tensor.shape.push_back(dim.get<uint64_t>());
      if (__builtin_mul_overflow(bytes, tensor.shape.back(), &bytes))
        wrong("the shape does not fit 64 bits, got: " + got(entry["shape"]));
    }
    const InputJson &first = entry["data_offsets"][0], &last = entry["data_offsets"][1];
    if (!first.is_number_unsigned() || !last.is_number_unsigned())
      wrong("data_offsets must be integers of at least 0, got: " + got(entry["data_offsets"]));
    uint64_t begin = first.get<uint64_t>(), end = last.get<uint64_t>();
    if (begin > end || end > dataBytes || end - begin != bytes)
      wrong(cat(dtype, shapeText(tensor.shape), " takes ", bytes, " of ", dataBytes,
                " bytes of data, got: bytes ", begin, " to ", end));
    tensor.data = data + begin;
    if (bytes != 0)
      ranges.push_back({begin, end});
    tensors_.emplace(name, std::move(tensor));
  }

  // Tensors fill the data without holes or overlaps, as the reference reader demands.
  std::sort(ranges.begin(), ranges.end());
  uint64_t at = 0;
  for (auto [begin, end] : ranges) {
    if (begin != at)
      badInput(path, ": tensors must follow each other, got: one ends at ", at,
               ", the next starts at ", begin);
    at = end;
  }
  if (at != dataBytes)
    badInput(path, ": tensors take ", at, " bytes of data, got: ", dataBytes);
}

const TensorEntry *SafetensorsFile::find(const std::string &name) const {
  auto at = tensors_.find(name);
  return at == tensors_.end() ? nullptr : &at->second;
}

SafetensorsLayout::SafetensorsLayout(const std::vector<TensorSpec> &tensors) {
  nlohmann::ordered_json header;
  header["__metadata__"]["format"] = "pt";
  uint64_t at = 0;
  for (const TensorSpec &tensor : tensors) {
    uint64_t bytes = fileElementBytes(tensor.type);
    for (uint64_t dim : tensor.shape)
      bytes *= dim;
    const char *dtype = std::find_if(std::begin(kTypeNames), std::end(kTypeNames),
                                     [&](const TypeName &t) { return t.type == tensor.type; })
                            ->name;
    header[tensor.name] = {{"dtype", dtype},
                           {"shape", tensor.shape},
                           {"data_offsets", std::vector<uint64_t>{at, at + bytes}}};
    offsets_.push_back(at);
    at += bytes;
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  uint64_t length = text.size();
  header_.assign(reinterpret_cast<const char *>(&length), 8);
  header_ += text;
  for (uint64_t &offset : offsets_)
    offset += header_.size();
}

} // namespace shoal::rt
