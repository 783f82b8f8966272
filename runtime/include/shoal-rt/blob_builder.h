// Writes a rank program: collects records, numbers them, interns strings and lays the
// sections out. The compiler emits programs with it, the runtime's tests make them by
// hand. It checks nothing: the reader does.
#ifndef SHOAL_RT_BLOB_BUILDER_H
#define SHOAL_RT_BLOB_BUILDER_H

#include "shoal-rt/program.h"

#include <cstring>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

namespace shoal::rt {

class BlobBuilder {
public:
  // A dimension and the mesh axes that shard it, major to minor.
  struct DimSpec {
    uint64_t global = 1;
    std::vector<uint32_t> axes = {};
  };
  // A tensor in a bucket; they follow each other in the order of the list.
  struct MemberSpec {
    std::string name;
    std::vector<DimSpec> dims = {};
    InitKind init = InitKind::None;
    double a = 0, b = 0;
    std::vector<int64_t> file = {}; // the shape in files; empty: the logical shape
    std::optional<std::pair<uint64_t, uint64_t>> range = {}; // of the elements of its box; none: all
    std::string of = {}; // of state: its parameter
  };
  struct ArgSpec {
    std::string name;
    ArgKind kind = ArgKind::Input;
    uint32_t view = 0;
    std::vector<DimSpec> dims = {};
    int32_t batchDim = -1;
    InitKind init = InitKind::None;
    double a = 0, b = 0;
    std::vector<int64_t> file = {}; // the shape in files; empty: the logical shape
    int64_t indices = 0, ignored = 0;
    std::vector<MemberSpec> members = {}; // of a bucket; none: it is a tensor itself
    bool isMaster = false; // a parameter that counts as the optimizer's
    std::string of = {}; // of state that is no bucket: its parameter
    Positions heldAt = kNone;
  };
  struct ResultSpec {
    std::string name;
    ResultKind kind = ResultKind::Loss;
    uint32_t view = 0;
    std::vector<DimSpec> dims = {};
    int32_t batchDim = -1;
    std::vector<int64_t> file = {};
    std::vector<MemberSpec> members = {};
  };
  // `positions`: per mesh position the mesh position of the other end, or kNone.
  struct PeerSpec {
    bool isSend = false;
    uint32_t view = 0;
    std::vector<uint32_t> positions;
  };
  struct InstrSpec {
    Opcode op = Opcode::Launch;
    uint32_t stream = 0;
    uint32_t event = kNone;
    uint32_t a = 0, b = 0;
    std::vector<uint32_t> operands = {};
    std::vector<int64_t> params = {};
    std::vector<PeerSpec> peers = {};
    std::string name = {}, reason = {}, scope = {};
    Positions onlyAt = kNone;
  };

  explicit BlobBuilder(std::string_view programName, Mode mode = Mode::Train, std::string_view plan = "",
                       std::string_view stages = "") {
    std::memcpy(header_.magic, kProgramMagic, sizeof header_.magic);
    header_.version = kProgramVersion;
    header_.mode = mode;
    header_.name = string(programName);
    header_.plan = string(plan);
    header_.stages = string(stages);
    header_.numStreams = 1;
  }

  // Arena size, batch rows, kernel and event counts; section and size
  // fields are overwritten by finish(). numStreams and numEvents grow with addInstr().
  Header &header() { return header_; }

  uint32_t addAxis(std::string_view name, uint32_t size) {
    axes_.push_back({string(name), size, 0});
    return uint32_t(axes_.size() - 1);
  }

  // MPI rank per row-major mesh position; the identity when it is never called.
  void setDeviceIds(std::vector<uint32_t> ids) { deviceIds_ = std::move(ids); }

  // Per mesh position 1 or 0: whether it is one of them. Equal ones are returned, not added again.
  Positions addPositions(const std::vector<uint32_t> &members) { return addPositionList(members); }

  // Axes major to minor. An equal set is returned, not added again.
  uint32_t addGroup(const std::vector<uint32_t> &axes) {
    auto [at, added] = groupNumbers_.try_emplace(axes, uint32_t(groups_.size()));
    if (added)
      groups_.push_back({addIndices(axes), uint32_t(axes.size())});
    return at->second;
  }

  // `storage`: the view of the whole storage; kNone where this view is the whole.
  uint32_t addView(uint64_t offset, uint64_t elements, DType dtype,
                   StorageClass storageClass = StorageClass::Activation,
                   uint32_t storage = kNone) {
    uint32_t number = uint32_t(views_.size());
    views_.push_back(
        {offset, elements, dtype, storageClass, storage == kNone ? number : storage, 0});
    return number;
  }

  // Its view, which must be a storage of its own, gets the class of the kind.
  uint32_t addArg(const ArgSpec &spec) {
    if (spec.view < views_.size())
      views_[spec.view].storageClass = spec.isMaster ? StorageClass::Optimizer : storageClassOf(spec.kind);
    args_.push_back({string(spec.name), spec.kind, spec.view, addDims(spec.dims), uint32_t(spec.dims.size()),
                     spec.batchDim, spec.heldAt, spec.indices, spec.ignored});
    auto number = uint32_t(args_.size() - 1);
    if (std::optional<TensorKind> kind = tensorKindOf(spec.kind))
      addTensors(*kind, number, spec.view, spec.members,
                 {spec.name, spec.dims, spec.init, spec.a, spec.b, spec.file, {}, spec.of});
    return number;
  }

  // The row of its probe is filled in when that row is added.
  uint32_t addResult(const ResultSpec &spec) {
    results_.push_back({string(spec.name), spec.kind, spec.view, addDims(spec.dims),
                        uint32_t(spec.dims.size()), spec.batchDim, kNone, 0});
    auto number = uint32_t(results_.size() - 1);
    if (spec.kind == ResultKind::Grad)
      addTensors(TensorKind::Grad, number, spec.view, spec.members,
                 {spec.name, spec.dims, InitKind::None, 0, 0, spec.file});
    return number;
  }

  uint32_t addInstr(const InstrSpec &spec) {
    uint32_t row = uint32_t(instrs_.size());
    Instr instr{};
    instr.op = spec.op;
    instr.stream = spec.stream;
    instr.event = spec.event;
    instr.a = spec.a;
    instr.b = spec.b;
    instr.firstOperand = append(operands_, spec.operands);
    instr.numOperands = uint32_t(spec.operands.size());
    instr.firstPeer = uint32_t(peers_.size());
    instr.numPeers = uint32_t(spec.peers.size());
    for (const PeerSpec &peer : spec.peers)
      peers_.push_back({peer.isSend, peer.view, addPositionList(peer.positions), 0});
    instr.firstParam = append(params_, spec.params);
    instr.numParams = uint32_t(spec.params.size());
    instr.name = string(spec.name);
    instr.reason = string(spec.reason);
    instr.scope = string(spec.scope);
    instr.onlyAt = spec.onlyAt;
    instrs_.push_back(instr);
    if (spec.op == Opcode::Probe && spec.a < results_.size())
      results_[spec.a].probe = row;
    if (spec.stream >= header_.numStreams)
      header_.numStreams = spec.stream + 1;
    if (spec.event != kNone && spec.event >= header_.numEvents)
      header_.numEvents = spec.event + 1;
    return row;
  }

  std::vector<unsigned char> finish() {
    if (deviceIds_.empty()) {
      uint64_t positions = 1;
      for (const Axis &axis : axes_)
        positions *= axis.size;
      for (uint64_t i = 0; i < positions; ++i)
        deviceIds_.push_back(uint32_t(i));
    }
    std::vector<unsigned char> blob(sizeof(Header));
    auto lay = [&](auto &records, Section &section) {
      blob.resize((blob.size() + 7) / 8 * 8);
      section = {blob.size(), records.size()};
      size_t bytes = records.size() * sizeof(records[0]);
      blob.resize(blob.size() + bytes);
      if (bytes)
        std::memcpy(blob.data() + section.offset, records.data(), bytes);
    };
    lay(strings_, header_.strings);
    lay(axes_, header_.axes);
    lay(deviceIds_, header_.deviceIds);
    lay(indices_, header_.indices);
    lay(groups_, header_.groups);
    lay(dims_, header_.dims);
    lay(views_, header_.views);
    lay(args_, header_.args);
    lay(results_, header_.results);
    lay(tensors_, header_.tensors);
    lay(instrs_, header_.instrs);
    lay(operands_, header_.operands);
    lay(peers_, header_.peers);
    lay(params_, header_.params);
    header_.size = blob.size();
    std::memcpy(blob.data(), &header_, sizeof header_);
    return blob;
  }

private:
  Str string(std::string_view text) {
    auto [at, added] =
        stringPlaces_.try_emplace(std::string(text), uint32_t(strings_.size()));
    if (added)
      strings_.insert(strings_.end(), text.begin(), text.end());
    return {at->second, uint32_t(text.size())};
  }

  template <typename T> static uint32_t append(std::vector<T> &to, const std::vector<T> &from) {
    uint32_t first = uint32_t(to.size());
    to.insert(to.end(), from.begin(), from.end());
    return first;
  }

  uint32_t addIndices(const std::vector<uint32_t> &values) { return append(indices_, values); }

  // One number per mesh position; an equal list is not added again.
  uint32_t addPositionList(const std::vector<uint32_t> &numbers) {
    auto [at, added] = positionLists_.try_emplace(numbers, uint32_t(indices_.size()));
    if (added)
      addIndices(numbers);
    return at->second;
  }

  uint32_t addDims(const std::vector<DimSpec> &specs) {
    uint32_t first = uint32_t(dims_.size());
    for (const DimSpec &spec : specs) {
      uint64_t shards = 1;
      for (uint32_t axis : spec.axes)
        shards *= axes_[axis].size;
      dims_.push_back({spec.global, (spec.global + shards - 1) / shards, addIndices(spec.axes),
                       uint32_t(spec.axes.size())});
    }
    return first;
  }

  static std::optional<TensorKind> tensorKindOf(ArgKind kind) {
    switch (kind) {
    case ArgKind::Param:
      return TensorKind::Param;
    case ArgKind::Buffer:
      return TensorKind::Buffer;
    case ArgKind::State:
      return TensorKind::State;
    case ArgKind::Step:
      return TensorKind::Step;
    default:
      return std::nullopt;
    }
  }

  // The owner itself where it has no members.
  void addTensors(TensorKind kind, uint32_t owner, uint32_t view, const std::vector<MemberSpec> &members,
                  const MemberSpec &itself) {
    uint64_t first = 0;
    auto add = [&](const MemberSpec &spec, bool inBucket) {
      Tensor tensor{string(spec.name),
                    string(spec.of),
                    kind,
                    owner,
                    view,
                    addDims(spec.dims),
                    uint32_t(spec.dims.size()),
                    inBucket,
                    inBucket ? first : 0,
                    0,
                    1,
                    spec.init,
                    0,
                    spec.a,
                    spec.b,
                    append(params_, spec.file),
                    uint32_t(spec.file.size())};
      for (uint32_t d = 0; d < tensor.numDims; ++d)
        tensor.end *= dims_[tensor.firstDim + d].local;
      if (spec.range)
        std::tie(tensor.begin, tensor.end) = *spec.range;
      first += tensor.end - tensor.begin;
      tensors_.push_back(tensor);
    };
    for (const MemberSpec &member : members)
      add(member, true);
    if (members.empty())
      add(itself, false);
  }

  Header header_{};
  std::map<std::string, uint32_t> stringPlaces_;
  std::map<std::vector<uint32_t>, uint32_t> groupNumbers_, positionLists_;
  std::vector<char> strings_;
  std::vector<Axis> axes_;
  std::vector<uint32_t> deviceIds_, indices_, operands_;
  std::vector<Group> groups_;
  std::vector<Dim> dims_;
  std::vector<View> views_;
  std::vector<Arg> args_;
  std::vector<Result> results_;
  std::vector<Tensor> tensors_;
  std::vector<Instr> instrs_;
  std::vector<Peer> peers_;
  std::vector<int64_t> params_;
};

} // namespace shoal::rt

#endif // SHOAL_RT_BLOB_BUILDER_H
