// Texts to samples and back.
#include "core/byte_tokens.h"
#include "core/error.h"
#include "core/file.h"
#include "core/npy.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <span>

namespace shoal::rt {
namespace {

namespace fs = std::filesystem;

constexpr unsigned char kFiller = '\n';

// Files read as one text, from its begin to its end. One is open at a time: there may be more than a process may open.
class Texts {
public:
  // A file that was there before under another name is left out, and `notes` says so.
  Texts(const std::vector<std::string> &paths, std::vector<std::string> &notes) {
    std::map<std::string, std::string> taken; // identity, path
    for (const std::string &path : paths) {
      MappedFile file(path);
      auto [same, isNew] = taken.emplace(identityOf(path), path);
      if (!isNew) {
        notes.push_back(cat(path, " is ", same->second, " and is taken once"));
        continue;
      }
      size_ += file.size();
      files_.push_back({path, file.size()});
    }
  }

  struct File {
    std::string path;
    uint64_t size;
  };
  std::span<const File> files() const { return files_; }
  uint64_t size() const { return size_; }

  // The next `count` bytes, which must be there.
  void read(unsigned char *to, uint64_t count) {
    while (count != 0) {
      const File &file = files_[next_];
      if (!open_)
        open_ = std::make_unique<MappedFile>(file.path);
      if (open_->size() < file.size)
        workFailed(file.path, ": became shorter while it was in use, expected ", file.size,
                   " bytes, got: ", open_->size());
      uint64_t part = std::min(count, file.size - at_);
      if (part != 0) // an empty file has no data
        std::memcpy(to, open_->data() + at_, part);
      at_ += part, count -= part, to += part;
      if (at_ != file.size)
        continue;
      open_->checkWhole();
      open_.reset();
      at_ = 0;
      ++next_;
    }
  }

private:
  std::vector<File> files_;
  uint64_t size_ = 0;
  std::unique_ptr<MappedFile> open_;
  size_t next_ = 0;  // the file that is read, and
  uint64_t at_ = 0;  // how far
};

// The two files of a split, written in large parts.
class SampleWriter {
public:
  SampleWriter(SampleFiles &files, uint64_t window) : ids_(files.ids), labels_(files.labels) {
    uint64_t shape[] = {files.samples, window};
    ids_.append(npyHeader(FileType::U8, shape));
    labels_.append(npyHeader(FileType::I16, shape));
  }

  void add(std::span<const unsigned char> ids, std::span<const int16_t> labels) {
    idBytes_.append(reinterpret_cast<const char *>(ids.data()), ids.size());
    labelBytes_.append(reinterpret_cast<const char *>(labels.data()), labels.size_bytes());
    if (labelBytes_.size() >= kPart)
      flush();
  }
  void prepare() {
    flush();
    ids_.prepare();
    labels_.prepare();
  }
  void commit() {
    ids_.commit();
    labels_.commit();
  }

private:
  static constexpr size_t kPart = size_t(1) << 20;

  void flush() {
    ids_.append(idBytes_);
    labels_.append(labelBytes_);
    idBytes_.clear();
    labelBytes_.clear();
  }

  OutputFile ids_, labels_;
  std::string idBytes_, labelBytes_;
};

SampleFiles filesOf(const fs::path &folder, const std::string &split, uint64_t samples) {
  return {folder / (split + "_input_ids.npy"), folder / (split + "_labels.npy"), samples};
}

void makeFolder(const fs::path &folder) {
  std::error_code error;
  if (!fs::is_directory(folder, error) && !fs::create_directory(folder, error))
    badInput(folder.string(), ": no folder can be made: ",
             error ? error.message() : std::string("something else has this name"));
}

// A text under the name of an output would be lost.
void checkOutputs(const Texts &texts, const SampleFiles &files) {
  for (const std::string &output : {files.ids, files.labels})
    for (const Texts::File &text : texts.files())
      if (std::string identity = identityOf(output); !identity.empty() && identity == identityOf(text.path))
        badInput(output, ": would take the place of the text ", text.path);
}

// Files of an earlier run would pass for those of these texts.
void checkNoValidation(const SampleFiles &files) {
  std::error_code error;
  for (const std::string &old : {files.ids, files.labels})
    if (fs::exists(fs::symlink_status(old, error)))
      badInput(old,
               ": is there already and holds samples of an earlier run, but of these texts none are for validation; "
               "remove it or name another folder");
}

} // namespace

ByteSamplesSummary writeByteSamples(const ByteSamples &request) {
  ByteSamplesSummary summary;
  Texts texts(request.texts, summary.notes);
  uint64_t window = request.window;
  summary.files = texts.files().size();
  summary.bytes = texts.size();
  if (texts.size() <= window)
    badInput("samples of ", window, " tokens and their labels need at least ", window + 1, " bytes of text, got: ",
             texts.size());
  uint64_t pairs = texts.size() - 1; // tokens with a label
  uint64_t samples = (pairs + window - 1) / window;
  uint64_t validation = request.validateEvery == 0 ? 0 : samples / request.validateEvery;
  if (request.validateEvery != 0 && validation == 0)
    badInput("one sample in ", request.validateEvery, " is for validation, and ", texts.size(), " bytes make only ",
             samples, " of ", window, " tokens; ask for one in fewer, or for none by 0");
  summary.training = filesOf(request.folder, "train", samples - validation);
  summary.validation = filesOf(request.folder, "val", validation);
  makeFolder(request.folder);
  checkOutputs(texts, summary.training);
  checkOutputs(texts, summary.validation);
  if (validation == 0)
    checkNoValidation(summary.validation);

  SampleWriter training(summary.training, window);
  std::unique_ptr<SampleWriter> validating;
  if (validation != 0)
    validating = std::make_unique<SampleWriter>(summary.validation, window);
  std::vector<unsigned char> bytes(window + 1); // a sample and the token that follows it
  std::vector<int16_t> labels(window);
  texts.read(bytes.data(), 1);
  for (uint64_t sample = 0; sample < samples; ++sample) {
    uint64_t count = std::min(window, pairs - sample * window);
    texts.read(bytes.data() + 1, count);
    std::fill(bytes.begin() + ptrdiff_t(count) + 1, bytes.end(), kFiller);
    for (uint64_t i = 0; i < window; ++i)
      labels[i] = i < count ? int16_t(bytes[i + 1]) : kIgnoredLabel;
    bool validates = validating && (sample + 1) % request.validateEvery == 0;
    (validates ? *validating : training).add({bytes.data(), window}, labels);
    bytes.front() = bytes.back();
  }
  training.prepare();
  if (validating)
    validating->prepare();
  training.commit();
  if (validating)
    validating->commit();
  return summary;
}

std::string textOfTokens(const std::string &path) {
  NpyFile file(path);
  if (file.type() == FileType::Bool || isFloatType(file.type()))
    badInput(path, ": holds ", fileTypeName(file.type()), ", expected integers");
  uint64_t count = 1;
  for (uint64_t size : file.shape())
    count *= size; // the file holds them, so they fit
  std::string text;
  std::array<int64_t, 4096> part;
  for (uint64_t at = 0; at < count; at += part.size()) {
    std::span<int64_t> tokens(part.data(), std::min<uint64_t>(part.size(), count - at));
    convert(file.data() + at * fileElementBytes(file.type()), file.type(), tokens.data(), DType::I64, tokens.size(),
            path);
    for (size_t i = 0; i < tokens.size(); ++i) {
      if (uint64_t(tokens[i]) >= kByteVocabulary)
        badInput(path, ": element ", at + i, " must be a byte, 0 to ", kByteVocabulary - 1, ", got: ", tokens[i]);
      text += char(tokens[i]);
    }
  }
  file.checkWhole();
  return text;
}

} // namespace shoal::rt
