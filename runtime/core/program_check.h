// The rules a rank program must keep before anything of it runs. A program is data from
// a file, so nothing in it is believed: this is the runtime's twin of `exec-verify`.
#ifndef SHOAL_RT_CORE_PROGRAM_CHECK_H
#define SHOAL_RT_CORE_PROGRAM_CHECK_H

#include "core/program.h"
#include "shoal-rt/arena_limit.h"

#include <set>
#include <tuple>
#include <utility>

namespace shoal::rt {

// Whether a * b is at most `limit`; else `product` says nothing.
inline bool multiplyFits(uint64_t a, uint64_t b, uint64_t limit, uint64_t &product) {
  return !__builtin_mul_overflow(a, b, &product) && product <= limit;
}

constexpr bool isFloat(DType type) {
  return type == DType::F32 || type == DType::F64 || type == DType::BF16;
}

class ProgramChecker {
public:
  explicit ProgramChecker(const Program &program) : p(program) {}
  void check() const;

private:
  void checkHeader() const;
  void checkStr(const char *what, uint64_t number, Str s) const;
  void checkAxisList(const char *what, uint64_t number, uint32_t first, uint32_t count) const;
  void checkMesh() const;
  // The local elements of a box.
  uint64_t checkShape(const std::string &who, uint32_t first, uint32_t count) const;
  void checkDims(const std::string &who, uint32_t first, uint32_t count, uint32_t view,
                 int32_t batchDim) const;
  void checkViews() const;
  void checkArgs() const;
  void checkIndices(const std::string &who, const Arg &arg) const;
  void checkArgsApart() const;
  void checkResults() const;
  bool areAlike(const Tensor &a, const Tensor &b) const;
  void checkTensors() const;
  std::span<const Dim> checkOwner(const std::string &who, const Tensor &tensor) const;
  void checkInBucket(const std::string &who, const Tensor &tensor, std::span<const Dim> bucket) const;
  void checkFile(const std::string &who, const Tensor &tensor) const;
  void checkInstrs() const;
  void checkOrder() const;
  void checkCollective(const std::string &who, const Instr &instr) const;
  // `verb`: "run" or "hold".
  void checkPositions(const char *verb, const std::string &who, Positions set) const;
  void checkWholeGroups(const std::string &who, const Instr &instr) const;
  void checkHolders() const;
  // `argOf`: per view the argument whose storage it is, where only some positions hold that; else kNone.
  void checkTouches(const std::vector<uint32_t> &argOf) const;
  void checkPeers(const std::string &who, const Instr &instr) const;
  void checkLibrary(const std::string &who, const Instr &instr) const;
  void checkScatterAdd(const std::string &who, const Instr &instr) const;
  void checkGemm(const std::string &who, const Instr &instr) const;
  void checkAttention(const std::string &who, const Instr &instr) const;

  bool overlap(uint32_t viewA, uint32_t viewB) const;
  bool sameRange(uint32_t viewA, uint32_t viewB) const;

  const Program &p;
  // What is checked once for all records that say it.
  mutable std::set<Positions> knownSets_;
  mutable std::set<std::pair<Positions, uint32_t>> wholeGroups_;       // and a group
  mutable std::set<uint32_t> knownPeers_;                              // lists of positions
  mutable std::set<std::tuple<uint32_t, uint32_t, Positions>> paired_; // sends, receives, who runs the row
};

} // namespace shoal::rt

#endif // SHOAL_RT_CORE_PROGRAM_CHECK_H
