// Reads an index of safetensors files and holds it against them.
#include "core/parameter_files.h"
#include "core/error.h"
#include "shoal-rt/json_input.h"

#include <algorithm>
#include <cctype>
#include <set>
#include <string_view>

namespace shoal::rt {
namespace {

constexpr uint64_t kMaxIndexBytes = 100'000'000; // as a header of safetensors
constexpr size_t kMaxPatterns = 4;
constexpr std::string_view kBasePrefixes[] = {"transformer.", "model."};

bool isIndex(const std::string &path) { return path.ends_with(".json"); }

std::string besides(const std::string &path, const std::string &name) {
  return path.substr(0, path.find_last_of('/') + 1) + name;
}

// Tensor to the name of its file.
std::map<std::string, std::string> readIndex(const std::string &path) {
  MappedFile file(path);
  auto wrong = [&](const auto &...why) { badInput(path, ": ", why...); };
  if (file.size() > kMaxIndexBytes)
    wrong("an index of safetensors files must have at most ", kMaxIndexBytes, " bytes, got: ",
          file.size());
  ParsedObject index =
      parseJsonObject({reinterpret_cast<const char *>(file.data()), size_t(file.size())});
  file.checkWhole();
  if (!index.problem.empty())
    wrong("the index of safetensors files ", index.problem);
  auto map = index.value.find("weight_map");
  if (map == index.value.end() || !map->is_object())
    wrong("an index of safetensors files must hold an object \"weight_map\", got: ",
          map == index.value.end() ? "none" : shortened(toMessage(*map)));
  std::map<std::string, std::string> files;
  for (const auto &[tensor, name] : map->items()) {
    if (!name.is_string())
      wrong("tensor '", shortened(tensor), "': expected the name of a file, got: ", shortened(toMessage(name)));
    std::string text = name.get<std::string>();
    // Beside the index and nowhere else: it comes from outside.
    if (text.empty() || text == "." || text == ".." || text.find('/') != std::string::npos ||
        text.find('\0') != std::string::npos)
      wrong("tensor '", shortened(tensor), "': expected the name of a file beside the index, got: '", shortened(text),
            "'");
    files.emplace(tensor, std::move(text));
  }
  return files;
}

// Each file once, in the order of names.
std::set<std::string> fileNames(const std::map<std::string, std::string> &index) {
  std::set<std::string> names;
  for (const auto &[tensor, name] : index)
    names.insert(name);
  return names;
}

} // namespace

ParameterFiles::ParameterFiles(const std::string &path) : path_(path) {
  auto add = [&](const std::string &filePath) -> const SafetensorsFile & {
    return *files_.emplace_back(std::make_unique<SafetensorsFile>(filePath));
  };
  if (!isIndex(path)) {
    const SafetensorsFile &file = add(path);
    for (const auto &[name, tensor] : file.tensors())
      tensors_.emplace(name, FoundTensor{&tensor, file.path()});
    return;
  }
  std::map<std::string, std::string> index = readIndex(path);
  for (const std::string &fileName : fileNames(index)) {
    const SafetensorsFile &file = add(besides(path, fileName));
    for (const auto &[name, tensor] : file.tensors()) {
      auto place = index.find(name);
      if (place == index.end() || place->second != fileName)
        badInput(file.path(), ": holds tensor '", shortened(name), "', which ", path, " says is ",
                 place == index.end() ? "in no file" : cat("in '", shortened(place->second), "'"));
      tensors_.emplace(name, FoundTensor{&tensor, file.path()});
    }
  }
  for (const auto &[name, fileName] : index)
    if (!tensors_.count(name))
      badInput(besides(path, fileName), ": lacks tensor '", shortened(name), "', which ", path,
               " says is there");
}

const FoundTensor *ParameterFiles::find(const std::string &name) const {
  if (auto at = tensors_.find(name); at != tensors_.end())
    return &at->second;
  for (std::string_view prefix : kBasePrefixes) {
    if (!name.starts_with(prefix))
      continue;
    auto first = tensors_.lower_bound(std::string(prefix));
    if (first != tensors_.end() && first->first.starts_with(prefix))
      continue;
    if (auto at = tensors_.find(name.substr(prefix.size())); at != tensors_.end())
      return &at->second;
  }
  return nullptr;
}

void ParameterFiles::checkWhole() const {
  for (const auto &file : files_)
    file->checkWhole();
}

std::vector<std::string> ParameterFiles::list(const std::string &path) {
  std::vector<std::string> paths = {path};
  if (isIndex(path))
    for (const std::string &name : fileNames(readIndex(path)))
      paths.push_back(besides(path, name));
  return paths;
}

std::string namePattern(const std::string &name) {
  std::string pattern;
  for (size_t i = 0; i < name.size(); ++i) {
    bool isDigit = std::isdigit(static_cast<unsigned char>(name[i])) != 0;
    if (isDigit && !pattern.empty() && pattern.back() == '*')
      continue;
    // A layer's number is a part of its own: "h.11.ln", not "ln_1".
    bool isNumber = isDigit && i != 0 && name[i - 1] == '.';
    pattern += isNumber ? '*' : name[i];
  }
  return pattern;
}

std::string namePatterns(const std::vector<std::string> &names) {
  std::vector<std::pair<std::string, size_t>> patterns; // in the order of their first names
  std::map<std::string, size_t> known;
  for (const std::string &name : names) {
    std::string pattern = namePattern(name);
    auto [at, isNew] = known.try_emplace(pattern, patterns.size());
    if (isNew)
      patterns.emplace_back(pattern, 0);
    ++patterns[at->second].second;
  }
  std::string text;
  for (size_t i = 0; i < patterns.size() && i < kMaxPatterns; ++i) {
    const auto &[pattern, count] = patterns[i];
    text += (i ? ", " : "") + pattern;
    if (count > 1)
      text += cat(" (", count, ")");
  }
  return patterns.size() > kMaxPatterns ? text + ", ..." : text;
}

} // namespace shoal::rt
