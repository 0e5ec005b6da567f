// RUN: tile-opt %s -split-input-file -verify-diagnostics

// expected-error@+1 {{names 1 inputs, but has 0 block arguments}}
fractal.graph @graph_c1 inputs ["xs"] symbols [] {
  fractal.outputs ()
}

// -----

fractal.graph @block_c1 inputs [] symbols [] {
  // expected-error@+1 {{has a dimension of kind 'loop': known are map, reduce, fold and scan left or right}}
  fractal.block ["loop"] to affine_map<(d0) -> (4)> in affine_set<(d0) : (d0 >= 0)> reads () writes [] {
    fractal.yield
  }
  fractal.outputs ()
}

// -----

fractal.graph @block_c2 inputs [] symbols [] {
  // expected-error@+1 {{has 1 dimensions in a graph of 0 symbols: extents, domain and writes need as many}}
  fractal.block ["map"] to affine_map<(d0, d1) -> (4)> in affine_set<(d0) : (d0 >= 0)> reads () writes [] {
    fractal.yield
  }
  fractal.outputs ()
}

// -----

fractal.graph @block_c2_symbols inputs [] symbols ["n"] {
  // expected-error@+1 {{has 1 dimensions in a graph of 1 symbols: extents, domain and writes need as many}}
  fractal.block ["map"] to affine_map<(d0) -> (4)> in affine_set<(d0) : (d0 >= 0)> reads () writes [] {
    fractal.yield
  }
  fractal.outputs ()
}

// -----

fractal.graph @block_c3 inputs ["x"] symbols [] {
^bb0(%x: tensor<8xf32>):
  // expected-error@+1 {{has 1 reads, but 0 targets, 1 maps, 1 conditions and 1 marks: each read needs one of each}}
  "fractal.block"(%x) <{kinds = ["map"], extents = affine_map<(d0) -> (4)>, domain = affine_set<(d0) : (d0 >= 0)>,
      targets = array<i64>, maps = [affine_map<(d0) -> ()>], conditions = [unit], indirect = array<i1: false>,
      writes = []}> ({
  ^bb0(%y: tensor<8xf32>):
    fractal.yield
  }) : (tensor<8xf32>) -> ()
  fractal.outputs ()
}

// -----

fractal.graph @block_c4 inputs ["x"] symbols [] {
^bb0(%x: tensor<8xf32>):
  // expected-error@+1 {{read 0 is for block argument 1 of 1}}
  fractal.block ["map"] to affine_map<(d0) -> (4)> in affine_set<(d0) : (d0 >= 0)>
      reads (%x for 1 at affine_map<(d0) -> ()> : tensor<8xf32>) writes [] {
  ^bb0(%y: tensor<8xf32>):
    fractal.yield
  }
  fractal.outputs ()
}

// -----

fractal.graph @block_c4_dims inputs ["x"] symbols [] {
^bb0(%x: tensor<8xf32>):
  // expected-error@+1 {{read 0 has 0 dimensions, the block 1: a read has those of the block, then levels}}
  fractal.block ["map"] to affine_map<(d0) -> (4)> in affine_set<(d0) : (d0 >= 0)>
      reads (%x for 0 at affine_map<() -> ()> : tensor<8xf32>) writes [] {
  ^bb0(%y: tensor<8xf32>):
    fractal.yield
  }
  fractal.outputs ()
}

// -----

fractal.graph @block_c4_levels inputs ["xs"] symbols [] {
^bb0(%xs: !fractal.array<[4] of tensor<8xf32>>):
  // expected-error@+1 {{read 0 names 3 levels of '!fractal.array<[4] of tensor<8xf32>>'}}
  fractal.block ["map"] to affine_map<(d0) -> (4)> in affine_set<(d0) : (d0 >= 0)>
      reads (%xs for 0 at affine_map<(d0) -> (d0, d0, d0)> : !fractal.array<[4] of tensor<8xf32>>) writes [] {
  ^bb0(%y: tensor<8xf32>):
    fractal.yield
  }
  fractal.outputs ()
}

// -----

fractal.graph @block_c5 inputs [] symbols [] {
  // expected-error@+1 {{read 0 is of what is computed later: a block reads what stands before it, or its own results}}
  fractal.block ["map"] to affine_map<(d0) -> (4)> in affine_set<(d0) : (d0 >= 0)>
      reads (%z for 0 at affine_map<(d0) -> ()> : tensor<8xf32>) writes [] {
  ^bb0(%y: tensor<8xf32>):
    fractal.yield
  }
  %z = arith.constant dense<0.0> : tensor<8xf32>
  fractal.outputs ()
}

// -----

fractal.graph @block_c6 inputs ["x"] symbols [] {
^bb0(%x: tensor<8xf32>):
  // expected-error@+1 {{writes 'tensor<8xf32>', but yields 'tensor<8xf32>' in 1 dimensions}}
  %r = fractal.block ["map"] to affine_map<(d0) -> (4)> in affine_set<(d0) : (d0 >= 0)>
      reads (%x for 0 at affine_map<(d0) -> ()> : tensor<8xf32>) writes [affine_map<(d0) -> (d0)>] -> tensor<8xf32> {
  ^bb0(%y: tensor<8xf32>):
    fractal.yield %y : tensor<8xf32>
  }
  fractal.outputs ()
}

// -----

fractal.graph @block_c6_results inputs [] symbols [] {
  // expected-error@+1 {{has 0 results: it needs as many writes and yielded values}}
  fractal.block ["map"] to affine_map<(d0) -> (4)> in affine_set<(d0) : (d0 >= 0)> reads ()
      writes [affine_map<(d0) -> (d0)>] {
    fractal.yield
  }
  fractal.outputs ()
}

// -----

fractal.graph @outputs_c1 inputs ["x"] symbols [] {
^bb0(%x: tensor<8xf32>):
  // expected-error@+1 {{has 1 reads, but 1 targets, 0 maps, 1 conditions and 1 marks: each read needs one of each}}
  "fractal.outputs"(%x) <{targets = array<i64: 0>, maps = [], conditions = [unit], indirect = array<i1: false>}>
      : (tensor<8xf32>) -> ()
}
