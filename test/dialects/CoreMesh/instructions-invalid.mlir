// RUN: tile-opt %s -split-input-file -verify-diagnostics

func.func @compute_c1() {
  coremesh.program "p" grid(1, 1) () : () -> () {
    coremesh.buffer @A : tensor<4xf32>
    // expected-error@+1 {{uses @B, but the program has no such buffer}}
    coremesh.compute "c" (%x = @B : tensor<4xf32>) to (@A) {
      coremesh.yield %x : tensor<4xf32>
    }
    coremesh.yield
  }
  return
}

// -----

func.func @compute_c2() {
  coremesh.program "p" grid(2, 1) () : () -> () {
    coremesh.buffer @A : tensor<4xf32> slots 2
    coremesh.loop 3 {
      // Where y is 1 the slot would be one behind the last.
      coremesh.compute "fine" (%x = @A[y + i floordiv 2] : tensor<4xf32>) to (@A) where (y == 0) {
        coremesh.yield %x : tensor<4xf32>
      }
      // expected-error@+1 {{takes slot 2 of @A where y = 1, x = 0, i = 2, but there are 2, counted from 0}}
      coremesh.compute "c" (%x = @A[y + i floordiv 2] : tensor<4xf32>) to (@A) {
        coremesh.yield %x : tensor<4xf32>
      }
    }
    coremesh.yield
  }
  return
}

// -----

func.func @compute_c2_undefined() {
  coremesh.program "p" grid(2, 1) () : () -> () {
    coremesh.buffer @A : tensor<4xf32> slots 2
    // expected-error@+1 {{divides by what is no positive number}}
    coremesh.compute "c" (%x = @A[y mod 0] : tensor<4xf32>) to (@A) {
      coremesh.yield %x : tensor<4xf32>
    }
    coremesh.yield
  }
  return
}

// -----

func.func @compute_c3() {
  coremesh.program "p" grid(1, 1) () : () -> () {
    coremesh.buffer @A : tensor<4xf32>
    // expected-error@+1 {{reads @A as 'tensor<5xf32>', but its tiles are 'tensor<4xf32>'}}
    coremesh.compute "c" (%x = @A : tensor<5xf32>) to (@A) {
      %0 = arith.constant dense<0.0> : tensor<4xf32>
      coremesh.yield %0 : tensor<4xf32>
    }
    coremesh.yield
  }
  return
}

// -----

func.func @compute_c3_written() {
  coremesh.program "p" grid(1, 1) () : () -> () {
    coremesh.buffer @A : tensor<4xf32>
    // expected-error@+1 {{writes @A as 'tensor<4xf16>', but its tiles are 'tensor<4xf32>'}}
    coremesh.compute "c" () to (@A) {
      %0 = arith.constant dense<0.0> : tensor<4xf16>
      coremesh.yield %0 : tensor<4xf16>
    }
    coremesh.yield
  }
  return
}

// -----

func.func @compute_c3_number() {
  coremesh.program "p" grid(1, 1) () : () -> () {
    coremesh.buffer @A : tensor<4xf32>
    // expected-error@+1 {{writes 1 slots, but has 1 expressions and 0 values for them}}
    coremesh.compute "c" () to (@A) {
      coremesh.yield
    }
    coremesh.yield
  }
  return
}

// -----

func.func @compute_c4() {
  coremesh.program "p" grid(1, 1) () : () -> () {
    coremesh.buffer @A : tensor<4xf32> slots 2
    coremesh.loop 2 {
      // expected-error@+1 {{has an expression of more than y, x and the 1 loops around it}}
      coremesh.compute "c" (%x = @A[j] : tensor<4xf32>) to (@A) {
        coremesh.yield %x : tensor<4xf32>
      }
    }
    coremesh.yield
  }
  return
}

// -----

func.func @compute_c5() {
  coremesh.program "p" grid(1, 1) () : () -> () {
    // expected-error@+1 {{writes nothing: it needs a slot to write}}
    coremesh.compute "c" () to () {
      coremesh.yield
    }
    coremesh.yield
  }
  return
}

// -----

func.func @compute_c5_twice() {
  coremesh.program "p" grid(1, 1) () : () -> () {
    coremesh.buffer @A : tensor<4xf32>
    // expected-error@+1 {{writes one slot of @A twice}}
    coremesh.compute "c" (%x = @A : tensor<4xf32>) to (@A, @A) {
      coremesh.yield %x, %x : tensor<4xf32>, tensor<4xf32>
    }
    coremesh.yield
  }
  return
}

// -----

func.func @compute_c6() {
  coremesh.program "p" grid(1, 1) () : () -> () {
    coremesh.buffer @A : tensor<4xf32>
    coremesh.compute "c" (%x = @A : tensor<4xf32>) to (@A) {
      // expected-error@+1 {{has an effect besides its results: a kernel of coremesh.compute computes with tensors}}
      %m = memref.alloc() : memref<4xf32>
      coremesh.yield %x : tensor<4xf32>
    }
    coremesh.yield
  }
  return
}

// -----

func.func @send_c1() {
  coremesh.program "p" grid(1, 1) () : () -> () {
    coremesh.buffer @A : tensor<4xf32>
    // expected-error@+1 {{uses @r, but the program has no such route}}
    %s = coremesh.send @A on @r
    coremesh.wait %s
    coremesh.yield
  }
  return
}

// -----

func.func @send_c2() {
  coremesh.program "p" grid(1, 4) () : () -> () {
    coremesh.buffer @A : tensor<4xf32>
    coremesh.route @r along x from p - 1
    // expected-error@+1 {{takes slot 1 of @A where y = 0, x = 3}}
    %s = coremesh.send @A[x - 2] on @r where (x >= 2)
    coremesh.wait %s
    coremesh.yield
  }
  return
}

// -----

func.func @send_c3_division() {
  coremesh.program "p" grid(1, 1) () : () -> () {
    coremesh.buffer @A : tensor<4xf32>
    coremesh.route @r along x from p - 1
    // expected-error@+1 {{divides by what is no positive number}}
    %s = coremesh.send @A on @r where (y mod 0 == 0)
    coremesh.wait %s
    coremesh.yield
  }
  return
}

// -----

func.func @send_c3() {
  coremesh.program "p" grid(1, 1) () : () -> () {
    coremesh.buffer @A : tensor<4xf32>
    coremesh.route @r along x from p - 1
    // expected-error@+1 {{has an expression of more than y, x and the 0 loops around it}}
    %s = coremesh.send @A on @r where (i == 0)
    coremesh.wait %s
    coremesh.yield
  }
  return
}

// -----

func.func @send_c4() {
  coremesh.program "p" grid(1, 1) () : () -> () {
    coremesh.buffer @A : tensor<4xf32>
    coremesh.route @r along x from p
    // expected-error@+1 {{makes a token that nobody waits for: a coremesh.wait must follow in the same block}}
    %s = coremesh.send @A on @r
    coremesh.yield
  }
  return
}

// -----

func.func @recv_c1() {
  coremesh.program "p" grid(1, 1) () : () -> () {
    coremesh.route @r along x from p
    // expected-error@+1 {{uses @r, but the program has no such buffer}}
    %s = coremesh.recv @r from @r
    coremesh.wait %s
    coremesh.yield
  }
  return
}

// -----

func.func @recv_c2() {
  coremesh.program "p" grid(1, 1) () : () -> () {
    coremesh.buffer @A : tensor<4xf32> slots 2
    coremesh.route @r along x from p
    // expected-error@+1 {{takes slot 2 of @A}}
    %s = coremesh.recv @A[2] from @r
    coremesh.wait %s
    coremesh.yield
  }
  return
}

// -----

func.func @recv_c3() {
  coremesh.program "p" grid(1, 1) () : () -> () {
    coremesh.buffer @A : tensor<4xf32>
    coremesh.route @r along x from p
    // expected-error@+1 {{needs one expression for a slot}}
    %s = "coremesh.recv"() <{buffer = @A, index = affine_map<(y, x) -> (y, x)>, route = @r}> : () -> !coremesh.token
    coremesh.wait %s
    coremesh.yield
  }
  return
}

// -----

func.func @recv_c4() {
  coremesh.program "p" grid(1, 1) () : () -> () {
    coremesh.buffer @A : tensor<4xf32>
    coremesh.route @r along x from p
    // expected-error@+1 {{makes a token that nobody waits for}}
    %s = coremesh.recv @A from @r
    coremesh.yield
  }
  return
}

// -----

func.func @relay_c1() {
  coremesh.program "p" grid(1, 1) () : () -> () {
    coremesh.buffer @A : tensor<4xf32>
    coremesh.route @r along x from p - 1
    // expected-error@+1 {{uses @s, but the program has no such route}}
    %s = coremesh.relay @A from @r to @s combine add
    coremesh.wait %s
    coremesh.yield
  }
  return
}

// -----

func.func @relay_c2() {
  coremesh.program "p" grid(1, 1) () : () -> () {
    coremesh.buffer @A : tensor<4xf32>
    coremesh.route @r along x from p - 1
    coremesh.route @s along x from p - 1
    // expected-error@+1 {{takes slot 1 of @A}}
    %s = coremesh.relay @A[1] from @r to @s combine add
    coremesh.wait %s
    coremesh.yield
  }
  return
}

// -----

func.func @relay_c3() {
  coremesh.program "p" grid(1, 1) () : () -> () {
    coremesh.buffer @A : tensor<4xf32>
    coremesh.route @r along x from p - 1
    coremesh.route @s along x from p - 1
    // expected-error@+1 {{has an expression of more than y, x and the 0 loops around it}}
    %s = coremesh.relay @A[i] from @r to @s combine add
    coremesh.wait %s
    coremesh.yield
  }
  return
}

// -----

func.func @relay_c4() {
  coremesh.program "p" grid(1, 1) () : () -> () {
    coremesh.buffer @A : tensor<4xf32>
    coremesh.route @r along x from p - 1
    coremesh.route @s along x from p - 1
    // expected-error@+1 {{makes a token that nobody waits for}}
    %s = coremesh.relay @A from @r to @s combine add
    coremesh.yield
  }
  return
}

// -----

func.func @wait_c1() {
  coremesh.program "p" grid(1, 1) () : () -> () {
    // expected-error@+1 {{waits for nothing: it needs a token}}
    coremesh.wait
    coremesh.yield
  }
  return
}

// -----

func.func @wait_c1_block() {
  coremesh.program "p" grid(1, 1) () : () -> () {
    coremesh.buffer @A : tensor<4xf32>
    coremesh.route @r along x from p
    %s = coremesh.send @A on @r
    coremesh.wait %s
    coremesh.loop 2 {
      // expected-error@+1 {{waits for a token that was not made in its block}}
      coremesh.wait %s
    }
    coremesh.yield
  }
  return
}

// -----

func.func @loop_c1() {
  coremesh.program "p" grid(1, 1) () : () -> () {
    // expected-error@+1 {{runs -1 times: it must be 0 or more}}
    coremesh.loop -1 {
    }
    coremesh.yield
  }
  return
}

// -----

func.func @loop_c2() {
  coremesh.program "p" grid(1, 1) () : () -> () {
    coremesh.loop 2 {
      coremesh.loop 2 {
        coremesh.loop 2 {
          coremesh.loop 2 {
            // expected-error@+1 {{stands in 4 loops already}}
            coremesh.loop 2 {
            }
          }
        }
      }
    }
    coremesh.yield
  }
  return
}
