// Makes a pipelined program by hand: prediction = sum(w1 * (w0 * x + t)) + sum(t), whose first stage holds w0, x and
// the momentum of w0, the last one w1, its momentum, labels and loss, at the same bytes of the arena, and both hold t.
// Stages in between hold nothing and hand on what they receive. Trained in f64 by gradient descent with momentum,
// beside it an evaluation. Of tokens the first stage holds the ids, and the last one makes logits. Writes the C source
// of its payload.
//   make_stages MODE RANK,... OUT.c        MODE: train, infer or tokens; the MPI rank of each stage
#include "shoal-rt/blob_builder.h"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>

using namespace shoal::rt;

namespace {

constexpr uint64_t kBatch = 5, kColumns = 3;
constexpr uint64_t kRows = 2, kWindow = 4, kClasses = 7; // of tokens

constexpr const char *kKernels = R"(
#include <math.h>
#include <stdint.h>
static void first_forward(void *const *b) { /* x, w, t, h, corner */
  const double *x = b[0], *w = b[1], *t = b[2];
  double *h = b[3];
  for (int i = 0; i < BATCH; ++i)
    for (int j = 0; j < COLUMNS; ++j)
      h[i * COLUMNS + j] = x[i * COLUMNS + j] * w[j] + t[j];
  *(double *)b[4] = h[0];
}
static void last_forward(void *const *b) { /* h, w, t, p */
  const double *h = b[0], *w = b[1], *t = b[2];
  double *p = b[3];
  for (int i = 0; i < BATCH; ++i) {
    p[i] = 0;
    for (int j = 0; j < COLUMNS; ++j)
      p[i] += h[i * COLUMNS + j] * w[j] + t[j];
  }
}
static void losses(void *const *b) { /* p, y, valid, loss, error */
  const double *p = b[0], *y = b[1];
  int64_t valid = *(const int64_t *)b[2];
  double *loss = b[3], *error = b[4];
  *loss = *error = 0;
  for (int i = 0; i < valid; ++i) {
    *loss += (p[i] - y[i]) * (p[i] - y[i]) / valid;
    *error += fabs(p[i] - y[i]) / valid;
  }
}
static void last_backward(void *const *b) { /* p, y, valid, h, w, dh, dw, dt */
  const double *p = b[0], *y = b[1], *h = b[3], *w = b[4];
  int64_t valid = *(const int64_t *)b[2];
  double *dh = b[5], *dw = b[6], *dt = b[7];
  for (int j = 0; j < COLUMNS; ++j)
    dw[j] = dt[j] = 0;
  for (int i = 0; i < BATCH; ++i)
    for (int j = 0; j < COLUMNS; ++j) {
      double d = i < valid ? 2 * (p[i] - y[i]) / valid : 0;
      dh[i * COLUMNS + j] = d * w[j];
      dw[j] += d * h[i * COLUMNS + j];
      dt[j] += d;
    }
}
static void first_backward(void *const *b) { /* x, dh, dw, dt, which is added to where it is the last stage's, too */
  const double *x = b[0], *dh = b[1];
  double *dw = b[2], *dt = b[3];
  for (int j = 0; j < COLUMNS; ++j) {
    double sum = 0;
    dw[j] = 0;
    for (int i = 0; i < BATCH; ++i) {
      dw[j] += dh[i * COLUMNS + j] * x[i * COLUMNS + j];
      sum += dh[i * COLUMNS + j];
    }
    dt[j] = STAGES == 1 ? dt[j] + sum : sum;
  }
}
static void zeros(void *const *b) {
  for (int j = 0; j < COLUMNS; ++j)
    ((double *)b[0])[j] = 0;
}
static void update(void *const *b) { /* dw, m in-out, w in-out */
  const double *dw = b[0];
  double *m = b[1], *w = b[2];
  for (int j = 0; j < COLUMNS; ++j) {
    m[j] = 0.5 * m[j] + dw[j];
    w[j] -= 0.0625 * m[j];
  }
}
static void ids_forward(void *const *b) { /* ids, h */
  const int64_t *ids = b[0];
  double *h = b[1];
  for (int i = 0; i < ROWS; ++i)
    for (int j = 0; j < WINDOW; ++j)
      h[i * WINDOW + j] = (j ? h[i * WINDOW + j - 1] : 0) + (j + 1) * ids[i * WINDOW + j];
}
static void logits(void *const *b) { /* h, logits */
  const double *h = b[0];
  double *out = b[1];
  for (int i = 0; i < ROWS * WINDOW; ++i)
    for (int c = 0; c < CLASSES; ++c)
      out[i * CLASSES + c] = -fabs(fmod(h[i], CLASSES) - c);
}
static void advance(void *const *b) { *(int64_t *)b[0] += 1; }
typedef void (*kernel)(void *const *);
const kernel shoal_kernels[] = {first_forward, last_forward, losses, last_backward, first_backward, zeros, update,
                                advance, ids_forward, logits};
)";
enum Kernel : uint32_t {
  FirstForward, LastForward, Losses, LastBackward, FirstBackward, Zeros, Update, Advance, IdsForward, Logits,
  kKernelCount
};

class Maker {
public:
  Maker(Mode mode, const std::vector<uint32_t> &ranks)
      : mode(mode), stages(uint32_t(ranks.size())), blob("stages", mode) {
    pipe = blob.addGroup({blob.addAxis("pipe", stages)});
    blob.setDeviceIds(ranks);
    std::vector<uint32_t> ends(stages, 0);
    ends.front() = ends.back() = 1;
    both = blob.addPositions(ends);
    for (uint32_t &end : ends)
      end = 1 - end;
    between = blob.addPositions(ends);
  }

  std::vector<unsigned char> make() {
    addArguments();
    forward();
    if (mode == Mode::Infer) {
      probe("prediction", ResultKind::Output, p, at(stages - 1), {{kBatch}}, 0);
    } else {
      launch(Losses, {p, y, valid, loss, error}, at(stages - 1));
      probe("corner", ResultKind::Metric, corner, at(0));
      probe("error", ResultKind::Metric, error, at(stages - 1));
      probe("loss", ResultKind::Loss, loss, at(stages - 1));
    }
    if (mode == Mode::Train) {
      backward();
      updates();
    }
    blob.header().batchRows = kBatch;
    return finish();
  }

  std::vector<unsigned char> makeTokens() {
    uint32_t ids = view(kRows * kWindow, DType::I64, arena), made = events++;
    uint32_t sums = view(kRows * kWindow, DType::F64, arena), out = view(kRows * kWindow * kClasses, DType::F64, arena);
    blob.addArg({.name = "ids", .view = ids, .dims = {{kRows}, {kWindow}}, .indices = kClasses, .heldAt = at(0)});
    launch(IdsForward, {ids, sums}, at(0), made);
    if (stages > 1) {
      wait(1, made, at(0));
      wait(0, transfer(sums, 0, stages - 1, "h"), at(stages - 1));
    }
    launch(Logits, {sums, out}, at(stages - 1));
    probe("logits", ResultKind::Output, out, at(stages - 1), {{kRows}, {kWindow}, {kClasses}});
    return finish();
  }

private:
  std::vector<unsigned char> finish() {
    blob.header().arenaBytes = arena;
    blob.header().numKernels = kKernelCount;
    return blob.finish();
  }

  Positions at(uint32_t stage) {
    std::vector<uint32_t> one(stages, 0);
    one[stage] = 1;
    return blob.addPositions(one);
  }

  uint32_t view(uint64_t elements, DType type, uint64_t &end, StorageClass storageClass = StorageClass::Activation) {
    uint64_t begin = end;
    end += (elements * 8 + kAlignment - 1) / kAlignment * kAlignment;
    arena = std::max(arena, end);
    return blob.addView(begin, elements, type, storageClass);
  }

  uint32_t arg(const std::string &name, ArgKind kind, uint64_t elements, uint64_t &end, Positions heldAt,
               const std::string &of = "") {
    BlobBuilder::ArgSpec spec{.name = name, .kind = kind, .view = view(elements, DType::F64, end), .heldAt = heldAt};
    spec.dims = kind == ArgKind::Input && elements > kBatch ? std::vector<BlobBuilder::DimSpec>{{kBatch}, {kColumns}}
                                                            : std::vector<BlobBuilder::DimSpec>{{elements}};
    spec.batchDim = kind == ArgKind::Input ? 0 : -1;
    spec.init = kind == ArgKind::Param ? InitKind::Uniform : InitKind::None;
    spec.a = kind == ArgKind::Param ? -1 : 0;
    spec.b = 1;
    spec.of = of;
    blob.addArg(spec);
    return spec.view;
  }

  void addArguments() {
    // Where there is one stage it holds both.
    uint64_t first = 0, last = 0, &end = stages == 1 ? first : last;
    auto one = [&](uint64_t &to, const std::string &number, Positions heldAt) {
      uint32_t w = arg("w" + number, ArgKind::Param, kColumns, to, heldAt), m = kNone;
      if (mode != Mode::Infer)
        m = arg("m" + number, ArgKind::State, kColumns, to, heldAt, "w" + number);
      return std::pair(w, m);
    };
    std::tie(w0, m0) = one(first, "0", at(0));
    std::tie(w1, m1) = one(end, "1", at(stages - 1));
    std::tie(t, mt) = one(arena, "t", both);
    // Kept arguments come first, so that evaluation has them where training has.
    step = mode == Mode::Train ? view(1, DType::I64, arena) : kNone;
    if (step != kNone)
      blob.addArg({"step", ArgKind::Step, step});
    uint64_t inputs = mode == Mode::Eval ? arena + kAlignment : arena;
    first = last = inputs;
    x = arg("x", ArgKind::Input, kBatch * kColumns, first, at(0));
    if (mode != Mode::Infer) {
      y = arg("y", ArgKind::Input, kBatch, end, at(stages - 1));
      valid = view(1, DType::I64, end);
      blob.addArg({.name = "valid", .kind = ArgKind::ValidRows, .view = valid, .heldAt = at(stages - 1)});
    }
    auto made = [&](uint64_t elements, StorageClass storageClass = StorageClass::Activation) {
      return view(elements, DType::F64, arena, storageClass);
    };
    h = made(kBatch * kColumns), dh = made(kBatch * kColumns), p = made(kBatch);
    loss = made(1), error = made(1), corner = made(1);
    g0 = made(kColumns, StorageClass::Grad), g1 = made(kColumns, StorageClass::Grad);
    gt = made(kColumns, StorageClass::Grad);
  }

  uint32_t launch(Kernel kernel, std::vector<uint32_t> operands, Positions onlyAt, uint32_t event = kNone) {
    return blob.addInstr({.event = event, .a = kernel, .operands = std::move(operands),
                          .name = "k" + std::to_string(kernel), .onlyAt = onlyAt});
  }

  void wait(uint32_t stream, uint32_t event, Positions onlyAt) {
    blob.addInstr({.op = Opcode::Wait, .stream = stream, .params = {event}, .onlyAt = onlyAt});
  }

  void probe(const std::string &name, ResultKind kind, uint32_t from, Positions onlyAt,
             std::vector<BlobBuilder::DimSpec> dims = {}, int32_t batchDim = -1) {
    uint32_t result = blob.addResult({name, kind, from, std::move(dims), batchDim});
    blob.addInstr({.op = Opcode::Probe, .a = result, .onlyAt = onlyAt});
  }

  // From stage to stage; the event says that it is there.
  uint32_t transfer(uint32_t buffer, uint32_t from, uint32_t to, const std::string &name) {
    uint32_t arrived = kNone;
    for (uint32_t stage = from; stage != to;) {
      uint32_t next = stage < to ? stage + 1 : stage - 1;
      std::vector<uint32_t> receivers(stages, kNone), senders(stages, kNone);
      receivers[stage] = next, senders[next] = stage;
      blob.addInstr({.op = Opcode::PointToPoint, .stream = 1, .a = kNone, .peers = {{true, buffer, receivers}},
                     .name = "send " + name, .reason = "stage", .onlyAt = at(stage)});
      arrived = events++;
      blob.addInstr({.op = Opcode::PointToPoint, .stream = 1, .event = arrived, .a = kNone,
                     .peers = {{false, buffer, senders}}, .name = "recv " + name, .reason = "stage",
                     .onlyAt = at(next)});
      stage = next;
    }
    return arrived;
  }

  void forward() {
    uint32_t made = events++;
    launch(FirstForward, {x, w0, t, h, corner}, at(0), made);
    if (stages > 1) {
      wait(1, made, at(0));
      wait(0, transfer(h, 0, stages - 1, "h"), at(stages - 1));
    }
    launch(LastForward, {h, w1, t, p}, at(stages - 1));
  }

  void backward() {
    uint32_t lastMade = events++, firstMade = events++, zeroed = events++;
    launch(LastBackward, {p, y, valid, h, w1, dh, g1, gt}, at(stages - 1), lastMade);
    if (stages > 1) {
      wait(1, lastMade, at(stages - 1));
      wait(0, transfer(dh, stages - 1, 0, "dh"), at(0));
    }
    launch(FirstBackward, {x, dh, g0, gt}, at(0), firstMade);
    launch(Zeros, {gt}, between, zeroed);
    if (stages > 1) {
      uint32_t summed = events++;
      wait(1, firstMade, at(0));
      wait(1, zeroed, between);
      blob.addInstr({.op = Opcode::AllReduce, .stream = 1, .event = summed, .a = pipe, .b = uint32_t(Reduction::Sum),
                     .operands = {gt, gt}, .name = "all_reduce {pipe} t", .reason = "gradient of t"});
      wait(0, summed, kNone);
    }
    probe("w0", ResultKind::Grad, g0, at(0), {{kColumns}});
    probe("w1", ResultKind::Grad, g1, at(stages - 1), {{kColumns}});
    probe("wt", ResultKind::Grad, gt, both, {{kColumns}});
  }

  void updates() {
    launch(Update, {g0, m0, w0}, at(0));
    launch(Update, {g1, m1, w1}, at(stages - 1));
    launch(Update, {gt, mt, t}, both);
    launch(Advance, {step}, kNone);
  }

  Mode mode;
  uint32_t stages;
  BlobBuilder blob;
  uint32_t pipe, events = 0;
  Positions both, between;
  uint64_t arena = 0; // so far
  uint32_t w0, m0, w1, m1, t, mt, step, x, y = kNone, valid = kNone, h, dh, p, loss, error, corner, g0, g1, gt;
};

void write(std::ofstream &out, const char *symbol, const std::vector<unsigned char> &bytes) {
  out << "__attribute__((aligned(64))) const unsigned char " << symbol << "[] = {";
  for (unsigned char byte : bytes)
    out << int(byte) << ",";
  out << "};\n";
}

} // namespace

int main(int argc, char **argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: make_stages train|infer|tokens RANK,... OUT.c\n");
    return 2;
  }
  std::vector<uint32_t> ranks;
  std::istringstream list(argv[2]);
  for (std::string one; std::getline(list, one, ',');)
    ranks.push_back(uint32_t(std::stoul(one)));
  std::ofstream out(argv[3]);
  out << "#define STAGES " << ranks.size() << "\n#define BATCH " << kBatch << "\n#define COLUMNS " << kColumns << "\n"
      << "#define ROWS " << kRows << "\n#define WINDOW " << kWindow << "\n#define CLASSES " << kClasses << "\n"
      << kKernels;
  bool trains = std::string(argv[1]) == "train";
  Maker maker(trains ? Mode::Train : Mode::Infer, ranks);
  write(out, kProgramSymbol, std::string(argv[1]) == "tokens" ? maker.makeTokens() : maker.make());
  if (trains)
    write(out, kEvaluationSymbol, Maker(Mode::Eval, ranks).make());
  return out ? 0 : 1;
}
