// The rules of the tensors that files know by name: each is an argument or a gradient, or lies in one that is a bucket,
// behind those before it, or in several, of which each holds a range of its elements.
#include "core/error.h"
#include "core/program_check.h"
#include "shoal-rt/traffic.h"

#include <algorithm>
#include <map>
#include <vector>

namespace shoal::rt {
namespace {

bool mayOwn(ArgKind arg, TensorKind tensor) {
  switch (tensor) {
  case TensorKind::Param:
    return arg == ArgKind::Param;
  case TensorKind::Buffer:
    return arg == ArgKind::Buffer;
  case TensorKind::State:
    return arg == ArgKind::State;
  case TensorKind::Step:
    return arg == ArgKind::Step;
  case TensorKind::Grad:
    return false;
  }
  return false;
}

// Whether files know the argument, or what lies in it, by a name.
bool holdsTensors(ArgKind kind) {
  return kind != ArgKind::Input && kind != ArgKind::ValidRows && kind != ArgKind::Seed;
}

bool isRandom(InitKind init) {
  return init == InitKind::Uniform || init == InitKind::Normal || init == InitKind::KaimingUniform ||
         init == InitKind::XavierUniform;
}

} // namespace

// The dimensions of the argument or result that the tensor is or lies in.
std::span<const Dim> ProgramChecker::checkOwner(const std::string &who, const Tensor &tensor) const {
  bool isGrad = tensor.kind == TensorKind::Grad;
  size_t owners = isGrad ? p.results_.size() : p.args_.size();
  if (tensor.owner >= owners)
    badInput("program: ", who, " belongs to ", isGrad ? "result " : "argument ", tensor.owner, " of ", owners);
  bool fits = isGrad ? p.results_[tensor.owner].kind == ResultKind::Grad
                     : mayOwn(p.args_[tensor.owner].kind, tensor.kind);
  if (!fits)
    badInput("program: ", who, " must belong to one of its kind, ", uint32_t(tensor.kind), ", got: ",
             isGrad ? "result " : "argument ", tensor.owner);
  uint32_t view = isGrad ? p.results_[tensor.owner].view : p.args_[tensor.owner].view;
  if (tensor.view != view)
    badInput("program: ", who, " must have the view of what it belongs to, ", view, ", got: ", tensor.view);
  return isGrad ? p.dims(p.results_[tensor.owner]) : p.dims(p.args_[tensor.owner]);
}

// Where the tensor ends is checked by whoever sees all of a bucket.
void ProgramChecker::checkInBucket(const std::string &who, const Tensor &tensor, std::span<const Dim> bucket) const {
  if (bucket.size() != 1 || tensor.kind == TensorKind::Step)
    badInput("program: ", who, " must lie in a bucket of one dimension, got: ", shapeText(bucket));
  std::span<const uint32_t> flat = p.axesOf(bucket[0]);
  if (bucket[0].global % p.extent(flat) != 0)
    badInput("program: the bucket of ", who, " must divide over its ", p.extent(flat), " shards, got: ",
             bucket[0].global, " elements");
  for (const Dim &dim : p.dims(tensor))
    for (uint32_t axis : p.axesOf(dim))
      if (std::find(flat.begin(), flat.end(), axis) != flat.end())
        badInput("program: mesh axis ", axis, " shards ", who, " and its bucket");
}

void ProgramChecker::checkFile(const std::string &who, const Tensor &tensor) const {
  if (tensor.firstFileSize > p.params_.size() || tensor.numFileSizes > p.params_.size() - tensor.firstFileSize)
    badInput("program: the shape in files of ", who, " must lie inside ", p.params_.size(), " parameters, got: ",
             tensor.numFileSizes, " at ", tensor.firstFileSize);
  if (tensor.numFileSizes == 0)
    return;
  uint64_t elements = 1, inFile = 1;
  for (const Dim &dim : p.dims(tensor))
    elements *= dim.global; // at most kMaxArenaBytes, as checkShape found
  for (int64_t size : p.params_.subspan(tensor.firstFileSize, tensor.numFileSizes))
    if (size < 1 || !multiplyFits(inFile, uint64_t(size), kMaxArenaBytes, inFile))
      badInput("program: the shape in files of ", who, " must have sizes from 1 on, and at most ", kMaxArenaBytes,
               " elements, got: ", size);
  if (inFile != elements || tensor.kind == TensorKind::Step)
    badInput("program: the shape in files of ", who, " must be that of a parameter with ", elements,
             " elements, got: ", inFile);
}

// Of a tensor that lies in several buckets what each says is the same, but for its range.
bool ProgramChecker::areAlike(const Tensor &a, const Tensor &b) const {
  auto same = [&](const Dim &x, const Dim &y) {
    return x.global == y.global && std::ranges::equal(p.axesOf(x), p.axesOf(y));
  };
  return a.kind == b.kind && p.str(a.of) == p.str(b.of) && a.inBucket && b.inBucket &&
         p.views_[a.view].dtype == p.views_[b.view].dtype &&
         std::ranges::equal(p.dims(a), p.dims(b), same) && a.init == b.init && a.a == b.a && a.b == b.b &&
         std::ranges::equal(p.params_.subspan(a.firstFileSize, a.numFileSizes),
                            p.params_.subspan(b.firstFileSize, b.numFileSizes));
}

void ProgramChecker::checkTensors() const {
  // Per name the records of the tensor, and its elements.
  struct Parts {
    std::vector<const Tensor *> tensors;
    uint64_t elements = 0;
  };
  std::map<std::pair<bool, std::string_view>, Parts> known;
  // Per owner the elements that its tensors fill so far, and whether it is one itself.
  struct Fill {
    uint64_t elements = 0;
    uint32_t tensors = 0;
    bool isBucket = false;
  };
  std::vector<Fill> args(p.args_.size()), results(p.results_.size());
  for (size_t i = 0; i < p.tensors_.size(); ++i) {
    const Tensor &tensor = p.tensors_[i];
    checkStr("tensor", i, tensor.name);
    checkStr("the parameter of tensor", i, tensor.of);
    std::string who = cat("tensor ", i, " '", p.str(tensor.name), "'");
    if (tensor.kind > TensorKind::Grad)
      badInput("program: ", who, " has unknown kind ", uint32_t(tensor.kind));
    if (tensor.init > InitKind::XavierUniform)
      badInput("program: ", who, " has unknown init ", uint32_t(tensor.init));
    if (tensor.inBucket > 1)
      badInput("program: ", who, " must lie in a bucket or not, 1 or 0, got: ", tensor.inBucket);
    std::span<const Dim> owner = checkOwner(who, tensor);
    uint64_t elements = checkShape(who, tensor.firstDim, tensor.numDims);
    checkFile(who, tensor);
    DType type = p.views_[tensor.view].dtype;
    if (isRandom(tensor.init) && !isFloat(type))
      badInput("program: the random init of ", who, " needs a float type, got: ", dtypeName(type));
    Parts &parts = known[{tensor.kind == TensorKind::Grad, p.str(tensor.name)}];
    if (!parts.tensors.empty() && !areAlike(*parts.tensors.front(), tensor))
      badInput("program: the name of ", who, " is taken by another tensor");
    parts.tensors.push_back(&tensor);
    parts.elements = elements;

    Fill &fill = tensor.kind == TensorKind::Grad ? results[tensor.owner] : args[tensor.owner];
    if (++fill.tensors > 1 && !(tensor.inBucket && fill.isBucket))
      badInput("program: ", who, " shares what it belongs to with another tensor, and that is no bucket");
    fill.isBucket = tensor.inBucket != 0;
    if (tensor.first != fill.elements)
      badInput("program: ", who, " must begin where the one before it in its bucket ends, at ", fill.elements,
               ", got: ", tensor.first);
    if (tensor.inBucket) {
      checkInBucket(who, tensor, owner);
      if (tensor.begin >= tensor.end || tensor.end > elements)
        badInput("program: ", who, " must have some of its ", elements, " elements in the bucket, got: [", tensor.begin,
                 ", ", tensor.end, ")");
      fill.elements += tensor.end - tensor.begin; // at most kMaxArenaBytes, and what fits the bucket before it
      if (fill.elements > owner[0].global)
        badInput("program: ", who, " must end inside its bucket of ", owner[0].global, " elements, got: ",
                 fill.elements);
    } else {
      auto same = [&](const Dim &a, const Dim &b) {
        return a.global == b.global && std::ranges::equal(p.axesOf(a), p.axesOf(b));
      };
      if (!std::ranges::equal(p.dims(tensor), owner, same))
        badInput("program: ", who, " must have the shape of what it belongs to, ", shapeText(owner), ", got: ",
                 shapeText(p.dims(tensor)));
      if (tensor.begin != 0 || tensor.end != elements)
        badInput("program: ", who, " is in no bucket and must have all of its ", elements, " elements, got: [",
                 tensor.begin, ", ", tensor.end, ")");
    }
  }
  for (auto &[name, parts] : known) {
    const Tensor &front = *parts.tensors.front();
    auto param = known.find({false, p.str(front.of)});
    bool isOfParam = param != known.end() && param->second.tensors.front()->kind == TensorKind::Param;
    if (front.kind == TensorKind::State ? !isOfParam : front.of.size != 0)
      badInput("program: tensor '", name.second, "' must be state of a parameter, or else of none, got: of '",
               p.str(front.of), "'");
    std::ranges::sort(parts.tensors, {}, &Tensor::begin);
    uint64_t next = 0;
    for (const Tensor *tensor : parts.tensors) {
      if (tensor->begin != next)
        badInput("program: the buckets of tensor '", name.second, "' must hold each of its ", parts.elements,
                 " elements once, got: a range from ", tensor->begin, " on behind the first ", next);
      next = tensor->end;
    }
    if (next != parts.elements)
      badInput("program: the buckets of tensor '", name.second, "' must hold each of its ", parts.elements,
               " elements once, got: the first ", next);
  }
  for (size_t i = 0; i < args.size(); ++i)
    if (holdsTensors(p.args_[i].kind) != (args[i].tensors != 0))
      badInput("program: argument ", i, " '", p.str(p.args_[i].name), "' is kept from step to step and must be or ",
               "hold tensors, got: none");
  for (size_t i = 0; i < results.size(); ++i)
    if (p.results_[i].kind == ResultKind::Grad && results[i].tensors == 0)
      badInput("program: result ", i, " '", p.str(p.results_[i].name), "' is a gradient and must be or hold tensors, ",
               "got: none");
}

} // namespace shoal::rt
