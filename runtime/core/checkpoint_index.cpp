// Writes an index line by line, and reads it as text that comes from outside.
#include "core/checkpoint_index.h"
#include "core/box_cover.h"
#include "core/crc32c.h"
#include "core/dataset.h"
#include "core/error.h"
#include "core/program.h"
#include "shoal-rt/json_input.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>
#include <string_view>

namespace shoal::rt {
namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr const char *kFormat = "shoal checkpoint";
constexpr uint64_t kMostSteps = INT64_MAX; // programs count them in an i64
constexpr TensorKind kKinds[] = {TensorKind::Param, TensorKind::Buffer, TensorKind::State, TensorKind::Step};
// The last member, on a line of its own: it covers all bytes in front of that line.
constexpr std::string_view kSeal = "\"index_crc32c\": \"";

std::string sealed(std::string text) {
  std::string crc = crcText(crc32c(text));
  return text + std::string(kSeal) + crc + "\"\n}\n";
}

// One member a line, so that a person and a diff can read it.
template <typename Map, typename ToJson>
std::string objectText(const char *name, const Map &map, ToJson toJson) {
  std::string text = cat("\"", name, "\": {");
  const char *separator = "\n";
  for (const auto &[key, value] : map) {
    text += cat(separator, "  ", OrderedJson(key).dump(), ": ", toJson(value).dump());
    separator = ",\n";
  }
  return text + "\n},\n";
}

OrderedJson tensorJson(const IndexTensor &tensor) {
  OrderedJson json{
      {"kind", tensorKindName(tensor.kind)}, {"dtype", fileTypeName(tensor.type)}, {"shape", tensor.shape}};
  if (tensor.kind == TensorKind::State)
    json["of"] = tensor.of;
  if (tensor.states != 0)
    json["states"] = tensor.states;
  if (tensor.fileShape != tensor.shape)
    json["file_shape"] = tensor.fileShape;
  json["boxes"] = OrderedJson::array();
  for (const IndexBox &box : tensor.boxes)
    json["boxes"].push_back(
        {{"file", box.file}, {"tensor", box.tensor}, {"start", box.start}, {"shape", box.shape}});
  return json;
}

OrderedJson fileJson(const IndexFile &file) { return {{"bytes", file.bytes}, {"crc32c", crcText(file.crc)}}; }

class IndexReader {
public:
  explicit IndexReader(const std::string &path) : path_(path) {}
  CheckpointIndex read(std::string_view text);

private:
  template <typename... Why> [[noreturn]] void wrong(const Why &...why) const { badInput(path_, ": ", why...); }

  static std::string got(const InputJson &value) { return shortened(toMessage(value)); }

  const InputJson &member(const InputJson &object, const char *name, const std::string &where) const {
    auto at = object.find(name);
    if (at == object.end())
      wrong(where, "lacks \"", name, "\"");
    return *at;
  }
  uint64_t number(const InputJson &object, const char *name, const std::string &where = "") const {
    const InputJson &value = member(object, name, where);
    if (!value.is_number_unsigned())
      wrong(where, "\"", name, "\" must be a whole number, got: ", got(value));
    return value.get<uint64_t>();
  }
  std::string text(const InputJson &object, const char *name, const std::string &where = "") const {
    const InputJson &value = member(object, name, where);
    if (!value.is_string())
      wrong(where, "\"", name, "\" must be a string, got: ", got(value));
    return value.get<std::string>();
  }
  const InputJson &object(const InputJson &from, const char *name) const {
    const InputJson &value = member(from, name, "");
    if (!value.is_object())
      wrong("\"", name, "\" must be an object, got: ", got(value));
    return value;
  }
  std::vector<uint64_t> sizes(const InputJson &object, const char *name, const std::string &where) const;
  uint64_t elements(const std::vector<uint64_t> &shape, const std::string &where) const;
  uint32_t crc(const InputJson &object, const char *name, const std::string &where) const;
  void checkFileName(const std::string &name) const;
  void checkSeal(std::string_view text) const;
  IndexTensor readTensor(const InputJson &json, const CheckpointIndex &index, const std::string &where) const;
  void checkCover(const IndexTensor &tensor, const std::string &where) const;
  void checkState(const CheckpointIndex &index) const;
  void checkFileShape(const IndexTensor &state, const IndexTensor &param, const std::string &where) const;
  void checkSizes(const CheckpointIndex &index) const;
  void checkPosition(const CheckpointIndex &index) const;

  const std::string &path_;
};

std::vector<uint64_t> IndexReader::sizes(const InputJson &object, const char *name, const std::string &where) const {
  const InputJson &value = member(object, name, where);
  bool fits = value.is_array();
  for (size_t i = 0; fits && i < value.size(); ++i)
    fits = value[i].is_number_unsigned();
  if (!fits)
    wrong(where, "\"", name, "\" must be an array of whole numbers, got: ", got(value));
  return value.get<std::vector<uint64_t>>();
}

uint64_t IndexReader::elements(const std::vector<uint64_t> &shape, const std::string &where) const {
  uint64_t count = 8; // bytes of the widest type
  for (uint64_t size : shape)
    if (__builtin_mul_overflow(count, size, &count))
      wrong(where, "shape ", shapeText(shape), " does not fit 64 bits");
  return count / 8;
}

uint32_t IndexReader::crc(const InputJson &object, const char *name, const std::string &where) const {
  std::string value = text(object, name, where);
  if (value.size() != 8 || value.find_first_not_of("0123456789abcdef") != std::string::npos)
    wrong(where, "\"", name, "\" must be 8 hexadecimal digits, got: '", shortened(value), "'");
  return uint32_t(std::stoul(value, nullptr, 16));
}

// Beside the index and nowhere else.
void IndexReader::checkFileName(const std::string &name) const {
  if (name.empty() || name == "." || name == ".." || name == kIndexName || name.find('/') != std::string::npos ||
      name.find('\0') != std::string::npos)
    wrong("expected the name of a file beside the index, got: '", shortened(name), "'");
}

void IndexReader::checkSeal(std::string_view text) const {
  size_t at = text.rfind(kSeal);
  if (at == std::string_view::npos)
    wrong("lacks \"index_crc32c\" at its end: it is cut off, or no index of a checkpoint");
  std::string expected = crcText(crc32c(text.substr(0, at)));
  if (std::string_view got = text.substr(at + kSeal.size()); got != expected + "\"\n}\n")
    wrong("is damaged: its bytes have CRC-32C ", expected, ", and it says ", got.substr(0, 8));
}

IndexTensor IndexReader::readTensor(const InputJson &json, const CheckpointIndex &index,
                                    const std::string &where) const {
  if (!json.is_object())
    wrong(where, "must be an object, got: ", got(json));
  IndexTensor tensor;
  std::string kind = text(json, "kind", where);
  auto known = std::ranges::find_if(kKinds, [&](TensorKind one) { return kind == tensorKindName(one); });
  if (known == std::end(kKinds))
    wrong(where, "unknown kind '", shortened(kind), "'");
  tensor.kind = *known;
  if (tensor.kind == TensorKind::State)
    tensor.of = text(json, "of", where);
  else if (json.contains("of"))
    wrong(where, "only state has \"of\", got: ", kind);
  if (json.contains("states")) {
    tensor.states = number(json, "states", where);
    if (tensor.kind != TensorKind::Param)
      wrong(where, "only a parameter has \"states\", got: ", kind);
  }
  std::string type = text(json, "dtype", where);
  std::optional<FileType> found;
  for (uint32_t one = 0; one <= uint32_t(FileType::F64); ++one)
    if (type == fileTypeName(FileType(one)))
      found = FileType(one);
  if (!found)
    wrong(where, "unknown dtype '", shortened(type), "'");
  tensor.type = *found;
  tensor.shape = sizes(json, "shape", where);
  tensor.fileShape = json.contains("file_shape") ? sizes(json, "file_shape", where) : tensor.shape;
  if (elements(tensor.shape, where) != elements(tensor.fileShape, where))
    wrong(where, "shape ", shapeText(tensor.shape), " and file_shape ", shapeText(tensor.fileShape),
          " must have as many elements");
  const InputJson &boxes = member(json, "boxes", where);
  if (!boxes.is_array())
    wrong(where, "\"boxes\" must be an array, got: ", got(boxes));
  for (const InputJson &one : boxes) {
    if (!one.is_object())
      wrong(where, "a box must be an object, got: ", got(one));
    IndexBox box{text(one, "file", where), text(one, "tensor", where), sizes(one, "start", where),
                 sizes(one, "shape", where)};
    if (!index.files.count(box.file))
      wrong(where, "a box is in '", shortened(box.file), "', which is not among the files");
    tensor.boxes.push_back(std::move(box));
  }
  checkCover(tensor, where);
  return tensor;
}

// Each element is in exactly one box.
void IndexReader::checkCover(const IndexTensor &tensor, const std::string &where) const {
  size_t rank = tensor.shape.size();
  for (const IndexBox &box : tensor.boxes) {
    bool inside = box.start.size() == rank && box.shape.size() == rank;
    for (size_t d = 0; inside && d < rank; ++d)
      inside = box.shape[d] != 0 && box.start[d] < tensor.shape[d] && box.shape[d] <= tensor.shape[d] - box.start[d];
    if (!inside)
      wrong(where, "the box at ", shapeText(box.start), " of shape ", shapeText(box.shape), " must lie in ",
            shapeText(tensor.shape));
  }
  if (std::optional<std::string> cost = findCoverCost(tensor))
    wrong(where, *cost);
  std::optional<CoverFault> fault = findCoverFault(tensor);
  if (!fault)
    return;
  std::vector<const IndexBox *> holders;
  for (const IndexBox &box : tensor.boxes) {
    bool holds = holders.size() < 2;
    for (size_t d = 0; holds && d < rank; ++d)
      holds = box.start[d] <= fault->element[d] && fault->element[d] - box.start[d] < box.shape[d];
    if (holds)
      holders.push_back(&box);
  }
  if (holders.size() == 2)
    wrong(where, "the boxes at ", shapeText(holders[0]->start), " of shape ", shapeText(holders[0]->shape), " and at ",
          shapeText(holders[1]->start), " of shape ", shapeText(holders[1]->shape), " overlap");
  wrong(where, "its boxes must hold all of its elements, none holds the one at ", shapeText(fault->element));
}

// State is of parameters, and of each all of it is there.
void IndexReader::checkState(const CheckpointIndex &index) const {
  std::map<std::string, std::vector<std::string>> states; // by parameter
  for (const auto &[name, tensor] : index.tensors) {
    if (tensor.kind != TensorKind::State)
      continue;
    auto of = index.tensors.find(tensor.of);
    if (of == index.tensors.end() || of->second.kind != TensorKind::Param)
      wrong("tensor '", shortened(name), "': \"of\" must name a parameter, got: '", shortened(tensor.of), "', ",
            of == index.tensors.end() ? "which is not there" : cat("of kind ", tensorKindName(of->second.kind)));
    states[tensor.of].push_back(name);
    checkFileShape(tensor, of->second, cat("tensor '", shortened(name), "': "));
  }
  for (const auto &[name, tensor] : index.tensors)
    if (const std::vector<std::string> &there = states[name]; there.size() != tensor.states)
      wrong("tensor '", shortened(name), "': must have ", tensor.states, " tensors of state (\"states\"), got: ",
            there.size(), there.empty() ? "" : cat(", '", shortened(there.front()), "'"));
}

// State may have any shape: an optimizer by hand may keep less or more than its parameter has. In files it lies as
// that does, where it has as many elements, and else as it is.
void IndexReader::checkFileShape(const IndexTensor &state, const IndexTensor &param, const std::string &where) const {
  bool isAsLarge = elements(state.shape, where) == elements(param.shape, where);
  bool isOwn = state.fileShape == state.shape && (!isAsLarge || param.fileShape == param.shape);
  if (!isOwn && (!isAsLarge || state.fileShape != param.fileShape))
    wrong(where, "state of shape ", shapeText(state.shape), " must have the file_shape ",
          shapeText(isAsLarge ? param.fileShape : state.shape),
          isAsLarge ? ", which its parameter has, got: " : ", its own, got: ", shapeText(state.fileShape));
}

// What lies in a file is one box, and there are no more elements than the files have bytes for: whoever makes room for a
// tensor may believe its shape.
void IndexReader::checkSizes(const CheckpointIndex &index) const {
  uint64_t total = 0;
  for (const auto &[name, file] : index.files)
    if (__builtin_add_overflow(total, file.bytes, &total))
      wrong("the bytes of its files do not fit 64 bits");
  std::map<std::string, uint64_t> taken;
  std::set<std::pair<std::string_view, std::string_view>> pieces; // file, name there
  for (const auto &[name, tensor] : index.tensors)
    for (const IndexBox &box : tensor.boxes) {
      if (!pieces.insert({box.file, box.tensor}).second)
        wrong("tensor '", shortened(name), "': '", shortened(box.tensor), "' in '", shortened(box.file),
              "' is another box already");
      uint64_t bytes = elements(box.shape, "") * fileElementBytes(tensor.type), &all = taken[box.file];
      if (uint64_t size = index.files.at(box.file).bytes; bytes > size - all)
        wrong("file '", shortened(box.file), "': has ", size, " bytes, too few for the boxes in it");
      all += bytes;
    }
}

// A place that a training of so many steps can have in such data: whoever counts on from there divides by no zero and
// stays in 64 bits.
void IndexReader::checkPosition(const CheckpointIndex &index) const {
  const auto &[step, epoch, batch] = index.position;
  if (step > kMostSteps)
    wrong("\"step\" must be at most ", kMostSteps, ", got: ", step);
  if (index.batchRows == 0 && (epoch != 0 || batch != 0 || index.rows != 0))
    wrong("data without batches (\"batch_rows\" is 0) must have \"epoch\" 0, \"batch\" 0 and \"rows\" 0, got: ", epoch,
          ", ", batch, " and ", index.rows);
  uint64_t batches = batchesOf(index.rows, index.batchRows);
  if (batch != 0 && batch >= batches)
    wrong("\"batch\" must be 0 or less than ", batches, ", the batches of an epoch, got: ", batch);
  // Each batch is a step, and each epoch at least one.
  if (epoch > step || batch > step - epoch)
    wrong("\"epoch\" and \"batch\" together must be at most \"step\" ", step, ", got: ", epoch, " and ", batch);
}

CheckpointIndex IndexReader::read(std::string_view text) {
  ParsedObject parsed = parseJsonObject(text);
  if (!parsed.problem.empty())
    wrong("the index of a checkpoint ", parsed.problem);
  const InputJson &json = parsed.value;
  if (std::string format = this->text(json, "format"); format != kFormat)
    wrong("\"format\" must be \"", kFormat, "\", got: '", shortened(format), "'");
  if (uint64_t version = number(json, "version"); version != kCheckpointVersion)
    wrong("\"version\" must be ", kCheckpointVersion, ", got: ", version,
          version > kCheckpointVersion
              ? "; a newer release wrote it"
              : "; it does not say whose state a tensor is: make a file for --load of it by shoal-ckpt merge "
                "--with-state of the release that wrote it");
  checkSeal(text);
  CheckpointIndex index;
  index.program = this->text(json, "program");
  index.plan = this->text(json, "plan");
  index.ranks = number(json, "ranks");
  index.position.step = number(json, "step");
  index.seed = number(json, "seed");
  const InputJson &data = object(json, "data");
  index.position.epoch = number(data, "epoch");
  index.position.batch = number(data, "batch");
  index.rows = number(data, "rows");
  index.batchRows = number(data, "batch_rows");
  const InputJson &shuffled = member(data, "shuffle", "");
  if (!shuffled.is_boolean())
    wrong("\"shuffle\" must be true or false, got: ", got(shuffled));
  index.shuffled = shuffled.get<bool>();
  checkPosition(index);
  for (const auto &[name, file] : object(json, "files").items()) {
    checkFileName(name);
    std::string where = cat("file '", shortened(name), "': ");
    if (!file.is_object())
      wrong(where, "must be an object, got: ", got(file));
    index.files[name] = {number(file, "bytes", where), crc(file, "crc32c", where)};
  }
  for (const auto &[name, tensor] : object(json, "tensors").items())
    index.tensors[name] = readTensor(tensor, index, cat("tensor '", shortened(name), "': "));
  checkState(index);
  checkSizes(index);
  if (uint32_t said = crc(json, "fingerprint", ""); said != index.fingerprint())
    wrong("\"fingerprint\" must be ", crcText(index.fingerprint()), ", that of its tensors, got: ", crcText(said));
  return index;
}

} // namespace

const char *tensorKindName(TensorKind kind) {
  switch (kind) {
  case TensorKind::Param:
    return "param";
  case TensorKind::Buffer:
    return "buffer";
  case TensorKind::State:
    return "state";
  case TensorKind::Step:
    return "step";
  case TensorKind::Grad:
    return "grad";
  }
  return "unknown";
}

uint32_t CheckpointIndex::fingerprint() const {
  std::string lines;
  for (const auto &[name, tensor] : tensors)
    if (isModelState(tensor.kind))
      lines += cat(name, " ", fileTypeName(tensor.type), " ", shapeText(tensor.shape), "\n");
  return crc32c(lines);
}

std::string toText(const CheckpointIndex &index) {
  auto line = [](const char *name, const OrderedJson &value) { return cat("\"", name, "\": ", value.dump(), ",\n"); };
  OrderedJson data{{"epoch", index.position.epoch},
                   {"batch", index.position.batch},
                   {"rows", index.rows},
                   {"batch_rows", index.batchRows},
                   {"shuffle", index.shuffled}};
  return sealed("{\n" + line("format", kFormat) + line("version", kCheckpointVersion) + line("program", index.program) +
                line("plan", index.plan) + line("ranks", index.ranks) + line("step", index.position.step) +
                line("seed", index.seed) + line("data", data) + line("fingerprint", crcText(index.fingerprint())) +
                objectText("tensors", index.tensors, tensorJson) + objectText("files", index.files, fileJson));
}

CheckpointIndex parseCheckpointIndex(std::string_view text, const std::string &path) {
  return IndexReader(path).read(text);
}

} // namespace shoal::rt
