// RUN: shoal-opt %s -split-input-file -verify-diagnostics --exec-verify

// A receive that nobody sends to.
dist.mesh @mesh <["x"=2]>
exec.program @p train arena = 128 rows = 0 bytes = <params = 0, grads = 0, optimizer = 0, activations = 0, workspace = 0> {
  %b = exec.buffer activation at 64 : !exec.buffer<2xf32>
  // expected-error-re @+1 {{'recv' ({{.*}}) at mesh position 1 receives from mesh position 0, where no send on stream 0 matches it}}
  exec.point_to_point to [] recvs(%b : !exec.buffer<2xf32>) from [array<i64: -1, 0>] {name = "recv"}
}

// -----

// A second send to a receive that has been used.
dist.mesh @mesh <["x"=2]>
exec.program @p train arena = 128 rows = 0 bytes = <params = 0, grads = 0, optimizer = 0, activations = 0, workspace = 0> {
  %p = exec.arg param "p" at 0 : !exec.buffer<2xf32>
  %b = exec.buffer activation at 64 : !exec.buffer<2xf32>
  exec.point_to_point sends(%p : !exec.buffer<2xf32>) to [array<i64: 1, -1>] recvs(%b : !exec.buffer<2xf32>) from [array<i64: -1, 0>]
  // expected-error-re @+1 {{'point_to_point' ({{.*}}) at mesh position 0 sends to mesh position 1, where no receive on stream 0 matches it}}
  exec.point_to_point sends(%p : !exec.buffer<2xf32>) to [array<i64: 1, -1>] from []
}

// -----

// Send and receive on different streams do not meet: each stream has messages of its own.
dist.mesh @mesh <["x"=2]>
exec.program @p train arena = 128 rows = 0 bytes = <params = 0, grads = 0, optimizer = 0, activations = 0, workspace = 0> {
  %p = exec.arg param "p" at 0 : !exec.buffer<2xf32>
  %b = exec.buffer activation at 64 : !exec.buffer<2xf32>
  // expected-error-re @+1 {{'send' ({{.*}}) at mesh position 0 sends to mesh position 1, where no receive on stream 0 matches it}}
  exec.point_to_point sends(%p : !exec.buffer<2xf32>) to [array<i64: 1, -1>] from [] {name = "send"}
  %t = exec.point_to_point to [] recvs(%b : !exec.buffer<2xf32>) from [array<i64: -1, 0>] stream 1 {name = "recv"} -> !exec.token
  exec.wait %t
}

// -----

// The ends of a message are of one type.
dist.mesh @mesh <["x"=2]>
exec.program @p train arena = 128 rows = 0 bytes = <params = 0, grads = 0, optimizer = 0, activations = 0, workspace = 0> {
  %p = exec.arg param "p" at 0 : !exec.buffer<2xf32>
  %b = exec.buffer activation at 64 : !exec.buffer<3xf32>
  exec.point_to_point sends(%p : !exec.buffer<2xf32>) to [array<i64: 1, -1>] from [] {name = "send"}
  // expected-error-re @+1 {{'recv' ({{.*}}) at mesh position 1 receives '!exec.buffer<3xf32>', but 'send' ({{.*}}) at mesh position 0 sends it '!exec.buffer<2xf32>'}}
  exec.point_to_point to [] recvs(%b : !exec.buffer<3xf32>) from [array<i64: -1, 0>] {name = "recv"}
}

// -----

// Both send first: neither gets to its receive.
dist.mesh @mesh <["x"=2]>
exec.program @p train arena = 128 rows = 0 bytes = <params = 0, grads = 0, optimizer = 0, activations = 0, workspace = 0> {
  %p = exec.arg param "p" at 0 : !exec.buffer<2xf32>
  %b = exec.buffer activation at 64 : !exec.buffer<2xf32>
  // expected-error-re @+1 {{the program deadlocks: 'send' ({{.*}}) at mesh position 0 waits for 'send' ({{.*}}) at mesh position 1, which waits for 'send' ({{.*}}) at mesh position 0}}
  exec.point_to_point sends(%p : !exec.buffer<2xf32>) to [array<i64: 1, 0>] from [] {name = "send"}
  exec.point_to_point to [] recvs(%b : !exec.buffer<2xf32>) from [array<i64: 1, 0>] {name = "recv"}
}

// -----

// As one row they progress together.
dist.mesh @mesh <["x"=2]>
exec.program @p train arena = 128 rows = 0 bytes = <params = 0, grads = 0, optimizer = 0, activations = 0, workspace = 0> {
  %p = exec.arg param "p" at 0 : !exec.buffer<2xf32>
  %b = exec.buffer activation at 64 : !exec.buffer<2xf32>
  exec.point_to_point sends(%p : !exec.buffer<2xf32>) to [array<i64: 1, 0>] recvs(%b : !exec.buffer<2xf32>) from [array<i64: 1, 0>]
}

// -----

// A ring, with a message to oneself in the same row, and a permute on the same stream.
dist.mesh @mesh <["x"=3]>
exec.program @p train arena = 256 rows = 0 bytes = <params = 0, grads = 0, optimizer = 0, activations = 0, workspace = 0> {
  %p = exec.arg param "p" at 0 : !exec.buffer<2xf32>
  %b = exec.buffer activation at 64 : !exec.buffer<2xf32>
  %c = exec.buffer activation at 128 : !exec.buffer<2xf32>
  %d = exec.buffer activation at 192 : !exec.buffer<2xf32>
  exec.point_to_point sends(%p, %p : !exec.buffer<2xf32>, !exec.buffer<2xf32>) to [array<i64: 1, 2, 0>, array<i64: 0, 1, 2>]
      recvs(%b, %c : !exec.buffer<2xf32>, !exec.buffer<2xf32>) from [array<i64: 2, 0, 1>, array<i64: 0, 1, 2>]
  exec.permute {"x"} from [0, 1] to [1, 2] %b to %d : !exec.buffer<2xf32>, !exec.buffer<2xf32>
}

// -----

// Stages of a pipeline pass on one after the other: the last one does not send.
dist.mesh @mesh <["x"=3]>
exec.program @p train arena = 128 rows = 0 bytes = <params = 0, grads = 0, optimizer = 0, activations = 0, workspace = 0> {
  %p = exec.arg param "p" at 0 : !exec.buffer<2xf32>
  %b = exec.buffer activation at 64 : !exec.buffer<2xf32>
  exec.point_to_point sends(%p : !exec.buffer<2xf32>) to [array<i64: 1, 2, -1>] from [] {name = "send"}
  exec.point_to_point to [] recvs(%b : !exec.buffer<2xf32>) from [array<i64: -1, 0, 1>] {name = "recv"}
}

// -----

// Closed to a ring, the sends wait for each other; a long cycle is cut.
dist.mesh @mesh <["x"=10]>
exec.program @p train arena = 128 rows = 0 bytes = <params = 0, grads = 0, optimizer = 0, activations = 0, workspace = 0> {
  %p = exec.arg param "p" at 0 : !exec.buffer<2xf32>
  %b = exec.buffer activation at 64 : !exec.buffer<2xf32>
  // expected-error-re @+1 {{which waits for 'send' ({{.*}}) at mesh position 7, which waits for 2 more up to 'send' ({{.*}}) at mesh position 0}}
  exec.point_to_point sends(%p : !exec.buffer<2xf32>) to [array<i64: 1, 2, 3, 4, 5, 6, 7, 8, 9, 0>] from [] {name = "send"}
  exec.point_to_point to [] recvs(%b : !exec.buffer<2xf32>) from [array<i64: 9, 0, 1, 2, 3, 4, 5, 6, 7, 8>] {name = "recv"}
}

// -----

// A message to oneself needs both ends in one row.
dist.mesh @mesh <["x"=1]>
exec.program @p train arena = 128 rows = 0 bytes = <params = 0, grads = 0, optimizer = 0, activations = 0, workspace = 0> {
  %p = exec.arg param "p" at 0 : !exec.buffer<2xf32>
  %b = exec.buffer activation at 64 : !exec.buffer<2xf32>
  // expected-error-re @+1 {{the program deadlocks: 'send' ({{.*}}) at mesh position 0 waits for itself}}
  exec.point_to_point sends(%p : !exec.buffer<2xf32>) to [array<i64: 0>] from [] {name = "send"}
  exec.point_to_point to [] recvs(%b : !exec.buffer<2xf32>) from [array<i64: 0>] {name = "recv"}
}

// -----

// A collective that one rank reaches only after a message, and the other has to end first.
dist.mesh @mesh <["x"=2]>
exec.program @p train arena = 192 rows = 0 bytes = <params = 0, grads = 0, optimizer = 0, activations = 0, workspace = 0> {
  %p = exec.arg param "p" at 0 : !exec.buffer<2xf32>
  %b = exec.buffer activation at 64 : !exec.buffer<2xf32>
  %c = exec.buffer activation at 128 : !exec.buffer<2xf32>
  // expected-error-re @+1 {{the program deadlocks: 'recv' ({{.*}}) at mesh position 0 waits for 'sum' ({{.*}}) at mesh position 1, which waits for 'recv' ({{.*}}) at mesh position 0}}
  exec.point_to_point to [] recvs(%b : !exec.buffer<2xf32>) from [array<i64: 1, -1>] {name = "recv"}
  exec.all_reduce {"x"} sum %p to %c {name = "sum"} : !exec.buffer<2xf32>, !exec.buffer<2xf32>
  exec.point_to_point sends(%p : !exec.buffer<2xf32>) to [array<i64: -1, 0>] from [] {name = "send"}
}

// -----

// On a stream of its own the collective does not stand in the way.
dist.mesh @mesh <["x"=2]>
exec.program @p train arena = 192 rows = 0 bytes = <params = 0, grads = 0, optimizer = 0, activations = 0, workspace = 0> {
  %p = exec.arg param "p" at 0 : !exec.buffer<2xf32>
  %b = exec.buffer activation at 64 : !exec.buffer<2xf32>
  %c = exec.buffer activation at 128 : !exec.buffer<2xf32>
  exec.point_to_point to [] recvs(%b : !exec.buffer<2xf32>) from [array<i64: 1, -1>] {name = "recv"}
  %t = exec.all_reduce {"x"} sum %p to %c stream 1 {name = "sum"} : !exec.buffer<2xf32>, !exec.buffer<2xf32> -> !exec.token
  exec.point_to_point sends(%p : !exec.buffer<2xf32>) to [array<i64: -1, 0>] from [] {name = "send"}
  exec.wait %t
}

// -----

// Unless the stream of the messages waits for it, and it for the messages.
dist.mesh @mesh <["x"=2]>
exec.program @p train arena = 192 rows = 0 bytes = <params = 0, grads = 0, optimizer = 0, activations = 0, workspace = 0> {
  %p = exec.arg param "p" at 0 : !exec.buffer<2xf32>
  %b = exec.buffer activation at 64 : !exec.buffer<2xf32>
  %c = exec.buffer activation at 128 : !exec.buffer<2xf32>
  // expected-error-re @+1 {{the program deadlocks: 'recv' ({{.*}}) at mesh position 0 waits for the wait for 'sum' ({{.*}}) at mesh position 1, which waits for 'sum' ({{.*}}) at mesh position 1, which waits for the wait for 'recv' ({{.*}}) at mesh position 0, which waits for 'recv' ({{.*}}) at mesh position 0}}
  %r = exec.point_to_point to [] recvs(%b : !exec.buffer<2xf32>) from [array<i64: 1, -1>] {name = "recv"} -> !exec.token
  exec.wait %r stream 1
  %t = exec.all_reduce {"x"} sum %p to %c stream 1 {name = "sum"} : !exec.buffer<2xf32>, !exec.buffer<2xf32> -> !exec.token
  exec.wait %t
  exec.point_to_point sends(%p : !exec.buffer<2xf32>) to [array<i64: -1, 0>] from [] {name = "send"}
}

// -----

// Rows that only some positions run: rank 0 sends first and rank 1 receives first, each in rows of its own.
dist.mesh @mesh <["x"=2]>
exec.program @p train arena = 128 rows = 0 bytes = <params = 0, grads = 0, optimizer = 0, activations = 0, workspace = 0> {
  %p = exec.arg param "p" at 0 : !exec.buffer<2xf32>
  %b = exec.buffer activation at 64 : !exec.buffer<2xf32>
  exec.point_to_point sends(%p : !exec.buffer<2xf32>) to [array<i64: 1, 0>] from [] {exec.at = array<i64: 0>, name = "send"}
  exec.point_to_point to [] recvs(%b : !exec.buffer<2xf32>) from [array<i64: 1, 0>] {name = "recv"}
  exec.point_to_point sends(%p : !exec.buffer<2xf32>) to [array<i64: 1, 0>] from [] {exec.at = array<i64: 1>, name = "send"}
}

// -----

// A send where the receive is not run.
dist.mesh @mesh <["x"=2]>
exec.program @p train arena = 128 rows = 0 bytes = <params = 0, grads = 0, optimizer = 0, activations = 0, workspace = 0> {
  %p = exec.arg param "p" at 0 : !exec.buffer<2xf32>
  %b = exec.buffer activation at 64 : !exec.buffer<2xf32>
  // expected-error-re @+1 {{'send' ({{.*}}) at mesh position 1 sends to mesh position 0, where no receive on stream 0 matches it}}
  exec.point_to_point sends(%p : !exec.buffer<2xf32>) to [array<i64: 1, 0>] from [] {name = "send"}
  exec.point_to_point to [] recvs(%b : !exec.buffer<2xf32>) from [array<i64: 1, 0>] {exec.at = array<i64: 1>, name = "recv"}
}

// -----

// A collective that one position of its group goes past.
dist.mesh @mesh <["x"=2]>
exec.program @p train arena = 64 rows = 0 bytes = <params = 0, grads = 0, optimizer = 0, activations = 0, workspace = 0> {
  %p = exec.arg param "p" at 0 : !exec.buffer<2xf32>
  // expected-error-re @+1 {{'sum' ({{.*}}) needs every position of its group: position 0 does not enter it, position 1 does}}
  exec.all_reduce {"x"} sum %p to %p {exec.at = array<i64: 1>, name = "sum"} : !exec.buffer<2xf32>, !exec.buffer<2xf32>
}
