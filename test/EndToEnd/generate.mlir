// --generate: programs that cannot, prompts that do not fit, files that cannot be written. One line each, exit code 2 but where the work fails.
// DEFINE: %{refused} = %python %support/refused.py
// RUN: rm -rf %t && mkdir %t
// RUN: shoalc %s -o %t/all --mode infer
// RUN: sed -e '/nn.reduce/d' -e '/nn.add/d' -e 's/nn.reshape %%seen/nn.reshape %%x/' %s > %t/causal.mlir
// RUN: shoalc %t/causal.mlir -o %t/causal --mode infer

// The logit of token v is v times the last token: byte 255 follows, whatever the prompt is.
// RUN: %t/causal --no-progress --generate 12 --prompt abc --temperature 0 | od -An -c | FileCheck %s --check-prefix=TEXT
// TEXT: a   b   c 377 377 377 377 377 377 377 377 377 377 377 377  \n
// A prompt as long as the window is none too long, and leaves nothing to fill up.
// RUN: %t/causal --no-progress --generate 1 --prompt abcdefgh --temperature 0 | od -An -c | FileCheck %s --check-prefix=FULL
// FULL: a   b   c   d   e   f   g   h 377  \n
// RUN: %t/causal --no-progress --generate 2 --prompt abc --temperature 0 --log-every 1 | head -4 | FileCheck %s --check-prefix=LOG
// LOG-COUNT-3: step {{[123]}}/3
// LOG-NEXT: abc

// Logits sharded by place: the window of 8 lies as 3 + 3 + 2, and the last token is on another rank as it goes on.
// RUN: sed -e 's/"data"=1/"tensor"=3/' -e 's/nn.output = "logits"/nn.output = "logits", dist.sharding = #dist.sharding<@mesh, [{}, {"tensor"}, {}]>/' \
// RUN:   %t/causal.mlir > %t/places.mlir
// RUN: shoalc %t/places.mlir -o %t/places --mode infer
// RUN: shoal-run -n 3 %t/places --no-progress --generate 12 --prompt abc --temperature 0 2> %t/places.errors | od -An -c | FileCheck %s --check-prefix=TEXT

// The logits of a token depend on tokens behind it.
// RUN: %{refused} %t/all --no-progress --generate 4 --prompt abc | FileCheck %s --check-prefix=ALL
// ALL: error: --generate needs a model whose tokens see only those before them: with two fillings of the window behind the prompt its first logits of token 1 are 1668 and 393
// With a full window nothing is behind the last one.
// RUN: %t/all --no-progress --generate 2 --prompt abcdefgh --temperature 0 | od -An -c | FileCheck %s --check-prefix=WHOLE
// WHOLE: a   b   c   d   e   f   g   h 377 377  \n
// RUN: shoalc %examples/digits/digits.mlir -o %t/digits --mode infer
// RUN: %{refused} %t/digits --generate 4 --prompt abc | FileCheck %s --check-prefix=DIGITS
// DIGITS: error: --generate: expected a program with one input of token ids, [B, S], and one output of logits, [B, S, V], got: x [rows, 64] f32 and logits [rows, 10] f32
// RUN: shoalc %examples/digits/digits.mlir -o %t/train --optimizer sgd --lr 0.1
// RUN: %{refused} %t/train --generate 4 --prompt abc | FileCheck %s --check-prefix=TRAIN
// TRAIN: error: --generate does not apply: this program was compiled with --mode train

// Prompts.
// RUN: %{refused} %t/causal --generate 4 --prompt "" | FileCheck %s --check-prefix=NONE
// NONE: error: --prompt: a prompt must have 1 to 8 tokens, got: 0
// RUN: %{refused} %t/causal --generate 4 --prompt abcdefghi | FileCheck %s --check-prefix=LONG
// LONG: error: --prompt: a prompt must have 1 to 8 tokens, got: 9
// RUN: %{refused} %t/causal --generate 4 --prompt-file %s | FileCheck %s --check-prefix=FILE
// FILE: generate.mlir: a prompt must have 1 to 8 tokens, got: {{[0-9]+}}
// RUN: %{refused} %t/causal --generate 4 --prompt-file %t | FileCheck %s --check-prefix=FOLDER
// FOLDER: must be a regular file, got: a directory
// RUN: cp %s %t/text.npy
// RUN: %{refused} %t/causal --generate 4 --prompt-file %t/text.npy | FileCheck %s --check-prefix=NPY
// NPY: text.npy: is not a .npy file
// RUN: %{refused} %t/causal --generate 4 --prompt-file %examples/digits/test_x.npy | FileCheck %s --check-prefix=RANK
// RANK: test_x.npy: has shape [360, 64], but a prompt is [tokens]
// RUN: %python -c "import sys; sys.path.insert(0, r'%support'); from tensor_files import *; write_npy(r'%t/bad.npy', tensor('i64', (3,), [0, 256, 1])); write_npy(r'%t/minus.npy', tensor('i64', (1,), [-100])); write_npy(r'%t/float.npy', tensor('f32', (1,), [1]))"
// RUN: %{refused} %t/causal --generate 4 --prompt-file %t/bad.npy | FileCheck %s --check-prefix=BAD
// BAD: bad.npy: token 1 must be 0 to 255, got: 256
// RUN: %{refused} %t/causal --generate 4 --prompt-file %t/minus.npy | FileCheck %s --check-prefix=MINUS
// MINUS: minus.npy: token 0 must be 0 to 255, got: -100
// RUN: %{refused} %t/causal --generate 4 --prompt-file %t/float.npy | FileCheck %s --check-prefix=FLOAT
// FLOAT: float.npy: holds f32, but a prompt is of integers
// RUN: %{refused} %t/causal --generate 4 --prompt-file %t/bad.npy --output tokens=%t/bad.npy | FileCheck %s --check-prefix=SAME
// SAME: error: --output tokens and --prompt-file name the same file

// Where the text cannot be written, and where there is none: a vocabulary that is not of bytes has ids.
// RUN: not %t/causal --generate 4 --prompt abc --no-progress > /dev/full 2> %t/full
// RUN: FileCheck %s --check-prefix=DISK < %t/full
// DISK: error: stdout: write failed: No space left on device
// RUN: sed 's/256/9/g' %t/causal.mlir > %t/nine.mlir
// RUN: shoalc %t/nine.mlir -o %t/nine --mode infer
// RUN: %{refused} %t/nine --generate 4 --prompt abc | FileCheck %s --check-prefix=VOCABULARY
// VOCABULARY: error: --prompt is text and needs a vocabulary of 256 bytes, got: 9; --prompt-file takes ids from a .npy file
// RUN: %{refused} %t/nine --generate 4 --prompt-file %t/bad.npy | FileCheck %s --check-prefix=IDS
// IDS: error: --generate prints text only for a vocabulary of 256 bytes, got: 9; --output tokens=FILE.npy writes ids
// RUN: %{refused} %t/nine --generate 4 --prompt-file %s --output tokens=%t/ids.npy | FileCheck %s --check-prefix=TEXTFILE
// TEXTFILE: generate.mlir: is text, which needs a vocabulary of 256 bytes, got: 9; name a .npy file of ids
// RUN: %t/nine --help | FileCheck %s --check-prefix=HELP
// HELP: shoal-run -n 1 ./nine --generate 100 --prompt-file ids.npy --output tokens=tokens.npy

dist.mesh @mesh <["data"=1]>

func.func @model(%ids: tensor<2x8xi64> {nn.input = "ids"}) -> (tensor<2x8x256xf32> {nn.output = "logits"}) {
  %x = nn.cast %ids : tensor<2x8xi64> -> tensor<2x8xf32>
  %sum = nn.reduce sum %x dims = [1] {keep_dims} : tensor<2x8xf32> -> tensor<2x1xf32>
  %seen = nn.add %x, %sum : (tensor<2x8xf32>, tensor<2x1xf32>) -> tensor<2x8xf32>
  %column = nn.reshape %seen : tensor<2x8xf32> -> tensor<2x8x1xf32>
  %token = nn.iota dim = 0 : tensor<256xi64>
  %number = nn.cast %token : tensor<256xi64> -> tensor<256xf32>
  %logits = nn.mul %column, %number : (tensor<2x8x1xf32>, tensor<256xf32>) -> tensor<2x8x256xf32>
  return %logits : tensor<2x8x256xf32>
}
