// Rows of attention are data from a file: a good one is read and computes what the call computes,
// and each rule has a row that breaks it.
#include "TestSupport.h"
#include "core/program.h"
#include "host/attention.h"
#include "host/library.h"
#include "shoal-rt/blob_builder.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace shoal::rt {
namespace {

using test::expectBadInput;

// Both rows, with segments and positions, over views of their own.
struct Rows {
  AttentionShape shape{2, 5, 5, 2, 3, 4, true, 3, true, 0.5, DType::F32, true};
  std::vector<uint32_t> forward, backward;
  std::vector<int64_t> params;
  BlobBuilder blob{"attention"};
  uint64_t end = 0;

  Rows() {
    auto numbers = attentionParams(shape);
    params.assign(numbers.begin(), numbers.end());
    uint64_t perQuery = 2 * 5 * 2 * 3, ofQueries = perQuery * 4, ofKeys = 2 * 5 * 2 * 4;
    uint32_t q = view(ofQueries), k = view(ofKeys), v = view(ofKeys), o = view(ofQueries);
    uint32_t lse = view(perQuery), s = view(2 * 5, DType::I64), t = view(2 * 5, DType::I64);
    uint32_t queries = view(5, DType::I64), keys = view(5, DType::I64);
    forward = {q, k, v, s, t, queries, keys, o, lse, view(attentionWorkspace(shape, false))};
    backward = {view(ofQueries),
                q,
                k,
                v,
                o,
                lse,
                s,
                t,
                queries,
                keys,
                view(ofQueries),
                view(ofKeys),
                view(ofKeys),
                view(attentionWorkspace(shape, true))};
    blob.header().arenaBytes = end;
  }

  uint32_t view(uint64_t elements, DType dtype = DType::F32) {
    uint32_t made = blob.addView(end, elements, dtype);
    end += (elements * elementBytes(dtype) + 63) / 64 * 64;
    return made;
  }
  void add(LibraryFunction function, std::vector<uint32_t> operands, std::vector<int64_t> numbers) {
    blob.addInstr({.op = Opcode::Library,
                   .a = uint32_t(function),
                   .operands = std::move(operands),
                   .params = std::move(numbers),
                   .name = "a"});
  }
};

void expectRefused(const std::string &part, auto change, LibraryFunction function) {
  Rows rows;
  auto operands = function == LibraryFunction::Attention ? rows.forward : rows.backward;
  change(operands, rows.params);
  rows.add(function, operands, rows.params);
  std::vector<unsigned char> bytes = rows.blob.finish();
  SCOPED_TRACE(part);
  expectBadInput([&] { Program(bytes.data(), bytes.size()); }, part);
}

TEST(AttentionRow, ParametersHoldTheShape) {
  AttentionShape shape{1, 2, 3, 4, 5, 6, true, 7, true, -0.1, DType::F64};
  for (bool *flag : {&shape.positions, &shape.wideO, &shape.wideGrads}) {
    *flag = true;
    AttentionShape back = attentionShape(attentionParams(shape).data());
    EXPECT_EQ(attentionParams(back), attentionParams(shape));
    EXPECT_EQ(back.scale, -0.1);
    EXPECT_TRUE(back.causal && back.segments);
    EXPECT_EQ(back.positions + 2 * back.wideO + 4 * back.wideGrads,
              shape.positions + 2 * shape.wideO + 4 * shape.wideGrads);
  }
}

// What the row names is what the call gets, with and without segments and positions.
TEST(AttentionRow, BindsItsBuffersInOrder) {
  for (int masks : {0, 1, 2, 3}) {
    bool segments = masks & 1, positions = masks & 2;
    Rows rows;
    rows.shape.segments = segments;
    rows.shape.positions = positions;
    auto numbers = attentionParams(rows.shape);
    std::vector<std::vector<float>> buffers;
    std::vector<int64_t> queryIds(10, 1), keyIds(10, 1), queryPlaces = {7, 4, 6, 8, 5}, keyPlaces = {5, -1, 3, 6, 4};
    queryIds[9] = 2; // sees nothing
    auto add = [&](size_t elements, int step) {
      auto &buffer = buffers.emplace_back(elements);
      for (size_t i = 0; i < elements; ++i)
        buffer[i] = step == 0 ? 0 : float(int(i) * step % 17 - 8) / 8;
      return static_cast<void *>(buffer.data());
    };
    void *q = add(240, 5), *k = add(80, 7), *v = add(80, 11), *cotangent = add(240, 13);
    void *o = add(240, 0), *lse = add(60, 0), *dq = add(240, 0), *dk = add(80, 0), *dv = add(80, 0);
    void *workspace = add(attentionWorkspace(rows.shape, true), 0);
    void *sameO = add(240, 0), *sameLse = add(60, 0), *sameDq = add(240, 0), *sameDk = add(80, 0);
    void *sameDv = add(80, 0);
    const int64_t *s = segments ? queryIds.data() : nullptr,
                  *t = segments ? keyIds.data() : nullptr;
    const int64_t *queries = positions ? queryPlaces.data() : nullptr, *keys = positions ? keyPlaces.data() : nullptr;
    int64_t tiles = attention(rows.shape, {q, k, v, {s, t, queries, keys}, o, lse, workspace});
    attentionGrad(rows.shape, {cotangent, q, k, v, o, lse, {s, t, queries, keys}, dq, dk, dv, workspace});

    std::vector<void *> forward = {q, k, v}, backward = {cotangent, q, k, v, o, lse};
    if (segments)
      for (auto *list : {&forward, &backward})
        list->insert(list->end(), {queryIds.data(), keyIds.data()});
    if (positions)
      for (auto *list : {&forward, &backward})
        list->insert(list->end(), {queryPlaces.data(), keyPlaces.data()});
    forward.insert(forward.end(), {sameO, sameLse, workspace});
    backward.insert(backward.end(), {sameDq, sameDk, sameDv, workspace});
    Libraries libraries;
    std::unique_ptr<LibraryCall> call = libraries.bind(LibraryFunction::Attention, numbers, forward);
    EXPECT_EQ(call->attentionTiles(), 0u);
    call->run();
    EXPECT_EQ(call->attentionTiles(), uint64_t(tiles));
    call->run();
    EXPECT_EQ(call->attentionTiles(), 2 * uint64_t(tiles));
    libraries.bind(LibraryFunction::AttentionGrad, numbers, backward)->run();
    auto equal = [](void *a, void *b, size_t elements) {
      return std::equal(static_cast<float *>(a), static_cast<float *>(a) + elements,
                        static_cast<float *>(b));
    };
    EXPECT_TRUE(equal(o, sameO, 240));
    EXPECT_TRUE(equal(lse, sameLse, 60));
    EXPECT_TRUE(equal(dq, sameDq, 240));
    EXPECT_TRUE(equal(dk, sameDk, 80));
    EXPECT_TRUE(equal(dv, sameDv, 80));
    EXPECT_NE(std::accumulate(buffers[7].begin(), buffers[7].end(), 0.0f), 0.0f);
    EXPECT_EQ(buffers[5].back() == -std::numeric_limits<float>::infinity(), segments);
  }
}

TEST(AttentionRow, GoodRowsAreRead) {
  Rows rows;
  rows.add(LibraryFunction::Attention, rows.forward, rows.params);
  rows.add(LibraryFunction::AttentionGrad, rows.backward, rows.params);
  std::vector<unsigned char> bytes = rows.blob.finish();
  Program program(bytes.data(), bytes.size());
  EXPECT_STREQ(rowKind(program.instrs()[0]), "attention");
  EXPECT_STREQ(rowKind(program.instrs()[1]), "attention_grad");
}

TEST(AttentionRow, ParameterRules) {
  for (LibraryFunction function : {LibraryFunction::Attention, LibraryFunction::AttentionGrad}) {
    auto param = [&](uint32_t number, int64_t value, const std::string &part) {
      expectRefused(
          part, [&](auto &, auto &params) { params[number] = value; }, function);
    };
    expectRefused(
        "takes 14 parameters", [](auto &, auto &params) { params.pop_back(); }, function);
    param(kAttentionBatch, 0, "parameter 0 of row 0");
    param(kAttentionHeadSize, 1ll << 40, "parameter 5 of row 0");
    param(kAttentionCausal, 2, "must be 0 or 1, got: 2");
    param(kAttentionSegments, -1, "must be 0 or 1, got: -1");
    param(kAttentionPositions, 2, "parameter 11 of row 0");
    param(kAttentionWideO, -1, "parameter 12 of row 0");
    param(kAttentionWideGrads, 2, "parameter 13 of row 0");
    param(kAttentionWindow, -1, "the window of row 0");
    expectRefused(
        "as many queries as keys, or positions, got: 5 and 6",
        [](auto &, auto &params) {
          params[kAttentionKeys] = 6;
          params[kAttentionPositions] = 0;
        },
        function);
    param(kAttentionKeys, 6, "is not what its parameters say");
    param(kAttentionScale, std::bit_cast<int64_t>(std::numeric_limits<double>::infinity()),
          "the scale of row 0");
    param(kAttentionDType, int64_t(DType::I32), "must be f32, f64 or bf16, got: 3");
    param(kAttentionDType, int64_t(DType::BF16), "is not what its parameters say");
    param(kAttentionDType, int64_t(DType::F64), "is not what its parameters say");
    param(kAttentionGroups, 4, "is not what its parameters say");
    param(kAttentionBatch, INT32_MAX, "is not what its parameters say");
    param(kAttentionSegments, 0, "operands, got:");
    param(kAttentionPositions, 0, "operands, got:");
    // One of a pair alone, of segments and of positions: the last inputs.
    expectRefused(
        "operands, got:",
        [&](auto &operands, auto &) {
          operands.erase(operands.begin() + (function == LibraryFunction::Attention ? 6 : 9));
        },
        function);
  }
}

TEST(AttentionRow, OperandRules) {
  for (LibraryFunction function : {LibraryFunction::Attention, LibraryFunction::AttentionGrad}) {
    size_t count = function == LibraryFunction::Attention ? 10 : 14;
    expectRefused(
        "operands, got:", [](auto &operands, auto &) { operands.pop_back(); }, function);
    // Every operand is checked: lse's view, of its own size, fits no place but its own, and a
    // query's fits not there.
    size_t lse = function == LibraryFunction::Attention ? 8 : 5;
    for (size_t i = 0; i < count; ++i)
      expectRefused(
          i + 1 == count ? "the workspace of row 0" : "is not what its parameters say",
          [&](auto &operands, auto &) { operands[i] = i == lse ? operands[0] : operands[lse]; },
          function);
  }
  expectRefused(
      "operand 7 of row 0 (attention 'a') must not share storage with operand 0",
      [](auto &operands, auto &) { operands[7] = operands[0]; }, LibraryFunction::Attention);
  expectRefused(
      "operand 11 of row 0 (attention_grad 'a') must not share storage with operand 12",
      [](auto &operands, auto &) { operands[12] = operands[11]; }, LibraryFunction::AttentionGrad);
}

// bf16 rows whose results have either type: the views must have the one that the parameters say.
TEST(AttentionRow, TypesOfResults) {
  for (bool wideO : {false, true})
    for (bool wideGrads : {false, true})
      for (int broken : {-1, 0, 3, 4, 5, 6, 7, 8}) {
        AttentionShape shape{1, 2, 2, 1, 1, 4, false, 0, false, 1, DType::BF16, false, wideO, wideGrads};
        Rows rows;
        std::vector<DType> types = {attentionOType(shape),
                                    DType::BF16,
                                    DType::BF16,
                                    DType::BF16,
                                    attentionOType(shape),
                                    DType::F32,
                                    attentionGradType(shape),
                                    attentionGradType(shape),
                                    attentionGradType(shape)};
        std::vector<uint32_t> operands;
        for (int i = 0; i < 9; ++i) {
          DType other = types[size_t(i)] == DType::F32 ? DType::BF16 : DType::F32;
          operands.push_back(rows.view(i == 5 ? 2 : 8, i == broken ? other : types[size_t(i)]));
        }
        operands.push_back(rows.view(attentionWorkspace(shape, true)));
        rows.blob.header().arenaBytes = rows.end;
        auto numbers = attentionParams(shape);
        rows.add(LibraryFunction::AttentionGrad, operands, {numbers.begin(), numbers.end()});
        std::vector<unsigned char> bytes = rows.blob.finish();
        if (broken < 0)
          Program(bytes.data(), bytes.size());
        else
          expectBadInput([&] { Program(bytes.data(), bytes.size()); },
                         "operand " + std::to_string(broken) + " of row 0 (attention_grad 'a') has ");
      }
}

} // namespace
} // namespace shoal::rt
