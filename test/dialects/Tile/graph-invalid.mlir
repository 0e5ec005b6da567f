// RUN: tile-opt %s -split-input-file -verify-diagnostics

func.func @group_c1(%x: tensor<4xf32>) {
  // expected-error@+1 {{has 1 operands and 0 block arguments}}
  "tile.group"(%x) <{level = "l1"}> ({
    "tile.yield"() : () -> ()
  }) : (tensor<4xf32>) -> ()
  return
}

// -----

func.func @group_c1_type(%x: tensor<4xf32>) {
  // expected-error@+1 {{block argument 0 has type 'tensor<8xf32>', its operand 'tensor<4xf32>'}}
  "tile.group"(%x) <{level = "l1"}> ({
  ^bb0(%a: tensor<8xf32>):
    "tile.yield"() : () -> ()
  }) : (tensor<4xf32>) -> ()
  return
}

// -----

func.func @group_c2(%x: tensor<4xf32>) {
  // expected-error@+1 {{operand type #0 'tensor<4xf32>' should match successor input type #0 'tensor<8xf32>'}}
  %y = tile.group "l1" (%a = %x : tensor<4xf32>) -> (tensor<8xf32>) {
    // expected-note@+1 {{region branch point}}
    tile.yield %a : tensor<4xf32>
  }
  return
}

// -----

func.func @group_c3(%x: tensor<4xf32>) {
  // expected-note@+1 {{the outer group}}
  tile.group "l1" (%a = %x : tensor<4xf32>) {
    tile.group "register" (%b = %a : tensor<4xf32>) {
      // expected-error@+1 {{of level "l1" stands inside a group of the same level}}
      tile.group "l1" (%c = %b : tensor<4xf32>) {
      }
    }
  }
  return
}

// -----

func.func @group_c4(%x: tensor<4xf32>) {
  // expected-error@+1 {{needs the name of a level}}
  tile.group "" (%a = %x : tensor<4xf32>) {
  }
  return
}

// -----

func.func @group_isolated(%x: tensor<4xf32>) {
  // expected-note@+1 {{required by region isolation constraints}}
  tile.group "l1" () {
    // expected-error@+1 {{'math.exp' op using value defined outside the region}}
    %0 = math.exp %x : tensor<4xf32>
  }
  return
}

// -----

tile.kernel @yield_c1(%x: memref<4xf32>) {
  %s = tile.alloc : memref<4xf32>
  %c = arith.constant 0 : index
  %t = tile.async {
    tile.copy %x to %s : memref<4xf32>, memref<4xf32>
    // expected-error@+1 {{of a tile.async takes no operands}}
    tile.yield %c : index
  }
  tile.return
}

// -----

func.func @yield_parent() {
  // expected-error@+1 {{expects parent op to be one of 'tile.group, tile.async'}}
  tile.yield
}
