// --generate: continues a prompt token by token. Each step runs the inference program on the window of the last
// tokens, takes the logits at the last of them, and appends the token drawn, the same one on all ranks. What lies in
// the window behind the last token must not matter, as in models with causal attention: the first step is made with two
// different fillings, and their logits must be equal.
#ifndef SHOAL_RT_CORE_GENERATION_H
#define SHOAL_RT_CORE_GENERATION_H

#include "core/file.h"
#include "core/options.h"
#include "core/session.h"
#include "core/token_model.h"
#include "mpi/world.h"

#include <memory>
#include <vector>

namespace shoal::rt {

class Generation {
public:
  // Reads and checks the prompt. Exit 2 where it does not fit the program.
  Generation(World &world, const Session &session, const GenerationOptions &options, uint64_t seed);

  // Runs of the program in all.
  uint64_t steps() const { return options_.tokens + (checksFilling_ ? 1 : 0); }

  // The tokens so far into the program's input.
  void fill(char *arena) const;
  // When the host may read a result.
  void onProbe(uint32_t result);
  // Collective, at the end of a step: the next token of each sample.
  void advance();
  // Rank 0 tells: the prompt and what follows it.
  void finish();

private:
  uint64_t length() const { return samples_.front().size(); }
  // The window's first token, and where its last one lies in the window.
  uint64_t windowStart() const { return length() > model_.window ? length() - model_.window : 0; }
  uint64_t lastPlace() const { return length() - windowStart() - 1; }
  void gatherLogits();
  void checkFilling();

  World &world_;
  const Session &session_;
  const Program &program_;
  const GenerationOptions &options_;
  TokenModel model_;
  uint64_t key_;                    // of the draws
  std::vector<std::vector<int64_t>> samples_; // tokens so far, of equal length
  bool checksFilling_;
  uint64_t step_ = 0;

  std::vector<Dim> lastDims_; // of the logits at one place of each shard of the window
  std::vector<char> last_;    // what this rank has of them
  std::vector<double> logits_, firstLogits_; // rank 0: [samples, classes]; of the step before, to compare
  std::unique_ptr<OutputFile> tokensFile_;   // rank 0, where asked for
};

} // namespace shoal::rt

#endif // SHOAL_RT_CORE_GENERATION_H
