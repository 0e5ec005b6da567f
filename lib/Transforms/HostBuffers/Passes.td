//===- Passes.td - the buffers of the host function ------------*- tablegen -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_TRANSFORMS_HOSTBUFFERS_PASSES
#define TILEWRIGHT_TRANSFORMS_HOSTBUFFERS_PASSES

include "mlir/Pass/PassBase.td"

def GlobalsToArguments : Pass<"tile-globals-to-arguments", "::mlir::ModuleOp"> {
  let summary = "Turn weights into trailing arguments of @main";
  let description = [{
    Weights are data beside the code: @main gets one argument per global that it uses, in the order of the
    globals, and the globals go. `@init`, which makes packed weights, has run at compile time by now and goes
    too.

    Before:
    ```mlir
    ml_program.global private @w_1f(#ml_program.extern<tensor<4xf32>>) : tensor<4xf32>
    func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
      %w = ml_program.global_load_const @w_1f : tensor<4xf32>
      return %w : tensor<4xf32>
    }
    ```
    After:
    ```mlir
    func.func @main(%x: tensor<4xf32> {bufferization.writable = false},
                    %w: tensor<4xf32> {bufferization.writable = false, tile.global = "w_1f"}) -> tensor<4xf32> {
      return %w : tensor<4xf32>
    ```
    Arguments of @main become read-only to bufferization.
  }];
  let dependentDialects = ["::mlir::func::FuncDialect"];
}

def OwnPlaces : Pass<"tile-own-places", "::mlir::ModuleOp"> {
  let summary = "Give each tensor that is put together of parts an undefined tensor of its own";
  let description = [{
    Equal `tensor.empty` ops have become one, as have equal fills of them. Where parts of several tensors are put
    into the same one, bufferization sees one buffer, and copies it to keep the tensors apart.

    Before:
    ```mlir
    tile.kernel @k(%x: memref<4xf32>, %y: memref<4xf32, strided<[?], offset: ?>>) { tile.return }
    func.func @main(%x: tensor<4xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
      %e = tensor.empty() : tensor<8xf32>
      %s = tensor.extract_slice %e[0] [4] [1] : tensor<8xf32> to tensor<4xf32>
      %a = tile.launch @k ins(%x : tensor<4xf32>) outs(%s : tensor<4xf32>) -> (tensor<4xf32>)
      %y = tensor.insert_slice %a into %e[0] [4] [1] : tensor<4xf32> into tensor<8xf32>
      %b = tile.launch @k ins(%x : tensor<4xf32>) outs(%s : tensor<4xf32>) -> (tensor<4xf32>)
      %z = tensor.insert_slice %b into %e[0] [4] [1] : tensor<4xf32> into tensor<8xf32>
      return %y, %z : tensor<8xf32>, tensor<8xf32>
    }
    ```
    After:
    ```mlir
    %e = tensor.empty() : tensor<8xf32>
    %s = tensor.extract_slice %e[0] [4] [1] : tensor<8xf32> to tensor<4xf32>
    %f = tensor.empty() : tensor<8xf32>
    %t = tensor.extract_slice %f[0] [4] [1] : tensor<8xf32> to tensor<4xf32>
    %a = tile.launch @k ins(%x : tensor<4xf32>) outs(%t : tensor<4xf32>) -> (tensor<4xf32>)
    %y = tensor.insert_slice %a into %f[0] [4] [1] : tensor<4xf32> into tensor<8xf32>
    %b = tile.launch @k ins(%x : tensor<4xf32>) outs(%s : tensor<4xf32>) -> (tensor<4xf32>)
    %z = tensor.insert_slice %b into %e[0] [4] [1] : tensor<4xf32> into tensor<8xf32>
    ```
  }];
  let dependentDialects = ["::mlir::tensor::TensorDialect"];
}

def OpenStrides : Pass<"tile-open-strides", "::mlir::ModuleOp"> {
  let summary = "Open the strides of kernel arguments that are launched on slices";
  let description = [{
    A kernel that makes a whole tensor has arguments whose elements lie side by side. Where its result is then
    made in the place that it would be copied to (`eliminate-empty-tensors`), or where bufferization will find a
    slice behind any other operand, the argument must take what strides come. `tile-kernel-layouts` says them
    again once they are known.

    Before:
    ```mlir
    tile.kernel @k(%x: memref<?xf32>) { tile.return }
    func.func @main(%t: tensor<2x?xf32>, %n: index) -> tensor<2x?xf32> {
      %s = tensor.extract_slice %t[1, 0] [1, %n] [1, 1] : tensor<2x?xf32> to tensor<?xf32>
      %a = tile.launch @k outs(%s : tensor<?xf32>) -> (tensor<?xf32>)
      %y = tensor.insert_slice %a into %t[1, 0] [1, %n] [1, 1] : tensor<?xf32> into tensor<2x?xf32>
      return %y : tensor<2x?xf32>
    }
    ```
    After:
    ```mlir
    tile.kernel @k(%x: memref<?xf32, strided<[?], offset: ?>>) {
    ```
  }];
  let dependentDialects = ["::mlir::memref::MemRefDialect"];
}

def LoopsInPlace : Pass<"tile-loops-in-place", "::mlir::ModuleOp"> {
  let summary = "Keep what a loop of the host carries in one buffer";
  let description = [{
    A loop of @main hands the next iteration the buffer that it got, so that the arena can hold it: what it
    yields is placed there. Bufferization turns that into nothing where the value was computed in place, into a
    copy otherwise. Tensors of sizes known at run time only are left alone, and those that the loop overwrites
    step by step (elements, slices, in loops and branches inside of it): these stay in their buffer anyway, and
    would be copied before an inner loop. A tensor made before the loop for what the loop hands on is made in
    each iteration instead, where its contents do not matter.

    Before:
    ```mlir
    tile.kernel @k(%x: memref<4xf32>, %y: memref<4xf32>) { tile.return }
    func.func @main(%h0: tensor<4xf32>, %n: index) -> tensor<4xf32> {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %r = scf.for %i = %c0 to %n step %c1 iter_args(%h = %h0) -> (tensor<4xf32>) {
        %e = tensor.empty() : tensor<4xf32>
        %y = tile.launch @k ins(%h : tensor<4xf32>) outs(%e : tensor<4xf32>) -> (tensor<4xf32>)
        scf.yield %y : tensor<4xf32>
      }
      return %r : tensor<4xf32>
    }
    ```
    After:
    ```mlir
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%h = %h0) -> (tensor<4xf32>) {
      %e = tensor.empty() : tensor<4xf32>
      %y = tile.launch @k ins(%h : tensor<4xf32>) outs(%e : tensor<4xf32>) -> (tensor<4xf32>)
      %p = bufferization.materialize_in_destination %y in %h : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      scf.yield %p : tensor<4xf32>
    ```
  }];
  let dependentDialects = ["::mlir::bufferization::BufferizationDialect"];
}

def BranchesInPlace : Pass<"tile-branches-in-place", "::mlir::ModuleOp"> {
  let summary = "Make what two branches of the host yield in one buffer";
  let description = [{
    Where both branches of an `scf.if` of @main make a result in an empty tensor of their own, they make it in
    one from before the branch: whoever takes the result has it where it is wanted, and nothing is copied behind
    the branch. Results of sizes known at run time only are left alone.

    Before:
    ```mlir
    tile.kernel @k(%y: memref<4xf32>) { tile.return }
    func.func @main(%c: i1) -> tensor<4xf32> {
      %r = scf.if %c -> (tensor<4xf32>) {
        %e = tensor.empty() : tensor<4xf32>
        %y = tile.launch @k outs(%e : tensor<4xf32>) -> (tensor<4xf32>)
        scf.yield %y : tensor<4xf32>
      } else {
        %e = tensor.empty() : tensor<4xf32>
        %y = tile.launch @k outs(%e : tensor<4xf32>) -> (tensor<4xf32>)
        scf.yield %y : tensor<4xf32>
      }
      return %r : tensor<4xf32>
    }
    ```
    After:
    ```mlir
    %e = tensor.empty() : tensor<4xf32>
    %r = scf.if %c -> (tensor<4xf32>) {
    ```
  }];
}

def ReuseOperands : Pass<"tile-reuse-operands", "::mlir::ModuleOp"> {
  let summary = "Make results in the place of an operand that nobody reads later";
  let description = [{
    A kernel that adds a residual reads each element of it right before it writes the same element of its
    result. Where the residual ends there, the result takes its place: one tensor passes through the caches
    instead of two, and what is written has just been read. Both are tensors of launches with places of their
    own; results of @main keep theirs.

    Before:
    ```mlir
    tile.kernel @next(%x: memref<4xf32>, %y: memref<4xf32>) {
      %c0 = arith.constant 0 : index
      %t = tile.load %x[%c0] : memref<4xf32>, !tile.tile<4xf32>
      %n = arith.negf %t : !tile.tile<4xf32>
      tile.store %n, %y[%c0] : !tile.tile<4xf32>, memref<4xf32>
      tile.return
    }
    func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
      %a = tensor.empty() : tensor<4xf32>
      %r = tile.launch @next ins(%x : tensor<4xf32>) outs(%a : tensor<4xf32>) -> (tensor<4xf32>)
      %b = tensor.empty() : tensor<4xf32>
      %s = tile.launch @next ins(%r : tensor<4xf32>) outs(%b : tensor<4xf32>) -> (tensor<4xf32>)
      %c = tensor.empty() : tensor<4xf32>
      %t = tile.launch @next ins(%s : tensor<4xf32>) outs(%c : tensor<4xf32>) -> (tensor<4xf32>)
      return %t : tensor<4xf32>
    }
    ```
    After:
    ```mlir
    %s = tile.launch @next ins(%r : tensor<4xf32>) outs(%r : tensor<4xf32>) -> (tensor<4xf32>)
    ```
  }];
  let dependentDialects = ["::mlir::bufferization::BufferizationDialect"];
}

def PingPongBuffers : Pass<"tile-ping-pong-buffers", "::mlir::ModuleOp"> {
  let summary = "Let loops of the host exchange two buffers instead of copying one";
  let description = [{
    Where a loop of @main makes the next value of a state in a buffer of its own and copies it over the old one
    at the end of each iteration, the two buffers change places instead: the loop carries both. The next value
    cannot be made in place where all of the old one is read for each part of it, as a recurrent network's
    product does.

    Before:
    ```mlir
    tile.kernel @k(%x: memref<4xf32>, %y: memref<4xf32>) { tile.return }
    func.func @main(%n: index, %y: memref<4xf32>) {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %h = memref.alloc() : memref<4xf32>
      tile.launch @k ins(%h : memref<4xf32>) outs(%h : memref<4xf32>)
      scf.for %i = %c0 to %n step %c1 {
        %next = memref.alloc() : memref<4xf32>
        tile.launch @k ins(%h : memref<4xf32>) outs(%next : memref<4xf32>)
        memref.copy %next, %h : memref<4xf32> to memref<4xf32>
      }
      tile.launch @k ins(%h : memref<4xf32>) outs(%y : memref<4xf32>)
      return
    }
    ```
    After:
    ```mlir
    %h = memref.alloc() : memref<4xf32>
    tile.launch @k ins(%h : memref<4xf32>) outs(%h : memref<4xf32>)
    %next = memref.alloc() : memref<4xf32>
    %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%a = %h, %b = %next) -> (memref<4xf32>, memref<4xf32>) {
      tile.launch @k ins(%a : memref<4xf32>) outs(%b : memref<4xf32>)
      scf.yield %b, %a : memref<4xf32>, memref<4xf32>
    }
    tile.launch @k ins(%r#0 : memref<4xf32>) outs(%y : memref<4xf32>)
    ```
  }];
  let dependentDialects = ["::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect"];
}

def ResultsToArguments : Pass<"tile-results-to-arguments", "::mlir::ModuleOp"> {
  let summary = "Let @main write its results into the caller's buffers";
  let description = [{
    A result that lives in an own buffer of @main, seen through reshapes or not, replaces that buffer by a new
    argument; anything else (an input that is returned, one buffer returned twice) is copied into it. A result
    whose sizes are known at run time only stays a result; a slice with gaps is copied. What continues an input in
    its memory (`tile.appends`) is there already: its sizes are told.

    Before:
    ```mlir
    tile.kernel @k(%x: memref<4xf32>, %y: memref<4xf32>) { tile.return }
    func.func @main(%x: memref<4xf32>) -> (memref<4xf32> {tile.name = "y"}) {
      %y = memref.alloc() : memref<4xf32>
      tile.launch @k ins(%x : memref<4xf32>) outs(%y : memref<4xf32>)
      return %y : memref<4xf32>
    }
    ```
    After:
    ```mlir
    func.func @main(%x: memref<4xf32>, %y: memref<4xf32> {tile.name = "y", tile.result = 0 : i64}) {
      tile.launch @k ins(%x : memref<4xf32>) outs(%y : memref<4xf32>)
      return
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::memref::MemRefDialect"];
}

def CopiesToKernels : Pass<"tile-copies-to-kernels", "::mlir::ModuleOp"> {
  let summary = "Turn copies of buffers on the host into launches";
  let description = [{
    Each `memref.copy` in @main becomes the launch of a generated kernel with a task per row of the outer
    dimensions, so that copies run on all threads and show in the report. A remark names each, since the plan
    left it there. Copies of a few elements, of elements without tiles, or of rows whose length a run knows (on
    GPUs of any size of a run) stay on the host: as they are where memory is contiguous, else as linalg operations.

    Before:
    ```mlir
    func.func @main(%a: memref<4x64xf32>, %b: memref<4x64xf32>) {
      memref.copy %a, %b : memref<4x64xf32> to memref<4x64xf32>
      return
    }
    ```
    After:
    ```mlir
    tile.kernel @copy(%s: memref<4x64xf32>, %t: memref<4x64xf32>) grid(%i) {
      ...
      scf.for %j = %c0 to %c64 step %step {
        %0 = tile.load %s[%i, %j] : memref<4x64xf32>, !tile.tile<64xf32>
        tile.store %0, %t[%i, %j] : !tile.tile<64xf32>, memref<4x64xf32>
      }
      tile.return
    }
    func.func @main(%a: memref<4x64xf32>, %b: memref<4x64xf32>) {
      %c4 = arith.constant 4 : index
      tile.launch @copy grid(%c4) ins(%a : memref<4x64xf32>) outs(%b : memref<4x64xf32>)
      return
    ```
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect",
    "::mlir::scf::SCFDialect", "::tilewright::tile::TileDialect"
  ];
}

def PlanArena : Pass<"tile-plan-arena", "::mlir::ModuleOp"> {
  let summary = "Give the temporary buffers of @main places in one arena";
  let description = [{
    Buffers whose lifetimes do not meet share memory: largest first, each at the lowest place that fits best.
    Places are multiples of 64 bytes. A buffer that is used in a loop and made outside lives as long as the
    loop. Buffers of sizes known at run time only, and those that leave their block (what one iteration hands to
    the next), stay allocations. What teams of blocks run beside each other (`tile.team`) they run at any time:
    what one of them uses lives as long as all of these do.

    Where code checks its accesses (`sanitize = "address"` in `tile.options`), places are 64 bytes apart, and
    all of the arena is poisoned but the buffers that live.

    Before:
    ```mlir
    func.func @main(%v: f32) {
      %c0 = arith.constant 0 : index
      %t = memref.alloc() : memref<16xf32>
      memref.store %v, %t[%c0] : memref<16xf32>
      return
    }
    ```
    After:
    ```mlir
    module attributes {tile.arena_bytes = 64 : i64} {
      func.func @main(%v: f32, %arena: memref<64xi8> {tile.arena}) {
        %c0 = arith.constant 0 : index
        %place = arith.constant 0 : index
        %t = memref.view %arena[%place][] : memref<64xi8> to memref<16xf32>
        memref.store %v, %t[%c0] : memref<16xf32>
        return
      }
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::memref::MemRefDialect"];
}

def ShareBuffers : Pass<"tile-share-buffers", "::mlir::ModuleOp"> {
  let summary = "Let buffers of equal run-time sizes share memory";
  let description = [{
    What `tile-plan-arena` has no place for, since its size is known at run time only, is put into an earlier
    buffer of @main that is no longer in use and has the same size: the same element type, and equal sizes in
    any order. What remains is freed at the end.

    Before:
    ```mlir
    func.func @main(%n: index, %v: f32) {
      %c0 = arith.constant 0 : index
      %a = memref.alloc(%n) : memref<?x4xf32>
      memref.store %v, %a[%c0, %c0] : memref<?x4xf32>
      %b = memref.alloc(%n) : memref<2x?x2xf32>
      memref.store %v, %b[%c0, %c0, %c0] : memref<2x?x2xf32>
      return
    }
    ```
    After:
    ```mlir
    %a = memref.alloc(%n) : memref<?x4xf32>
    memref.store %v, %a[%c0, %c0] : memref<?x4xf32>
    %flat = memref.collapse_shape %a [[0, 1]] : memref<?x4xf32> into memref<?xf32>
    %b = memref.expand_shape %flat [[0, 1, 2]] output_shape [2, %n, 2] : memref<?xf32> into memref<2x?x2xf32>
    memref.store %v, %b[%c0, %c0, %c0] : memref<2x?x2xf32>
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::memref::MemRefDialect"];
}

def FreeBuffers : Pass<"tile-free-buffers", "::mlir::func::FuncOp"> {
  let summary = "Free what a function allocates, where it allocates anything";
  let description = [{
    Runs `ownership-based-buffer-deallocation`, but leaves functions alone that allocate nothing: upstream's
    pass would track who owns the buffers that their loops carry (`tile-ping-pong-buffers`).

    Before:
    ```mlir
    func.func @main(%x: f32) {
      %c0 = arith.constant 0 : index
      %a = memref.alloc() : memref<4xf32>
      memref.store %x, %a[%c0] : memref<4xf32>
      return
    }
    ```
    After:
    ```mlir
    %a = memref.alloc() : memref<4xf32>
    ...
    bufferization.dealloc (%b : memref<f32>) if (%true)
    ```
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::bufferization::BufferizationDialect",
    "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect"
  ];
}

def KernelLayouts : Pass<"tile-kernel-layouts"> {
  let summary = "Give kernels the strides of the buffers that they are launched with";
  let description = [{
    A kernel that writes into a slice was made before the slice had a buffer: the strides of its argument are
    open, and neighbours might lie anywhere. Now they are known. Launches with other strides get a kernel of
    their own, whose `tile.variant_of` names the first.

    Before:
    ```mlir
    tile.kernel @k(%x: memref<4x8xf32, strided<[?, ?], offset: ?>>) { tile.return }
    func.func @main(%t: memref<6x10xf32>) {
      %s = memref.subview %t[1, 1] [4, 8] [1, 1] : memref<6x10xf32> to memref<4x8xf32, strided<[10, 1], offset: 11>>
      tile.launch @k outs(%s : memref<4x8xf32, strided<[10, 1], offset: 11>>)
      return
    }
    ```
    After:
    ```mlir
    tile.kernel @k(%x: memref<4x8xf32, strided<[10, 1], offset: ?>>) {
    ```
  }];
}

def ReshapesToCasts : Pass<"tile-reshapes-to-casts"> {
  let summary = "Split dimensions by sizes that are operands";
  let description = [{
    `memref.expand_shape` of one dimension into several of which two or more have sizes known at run time only
    becomes a cast with the strides that follow. Upstream's lowering finds one unknown size by division; these
    are operands. So does a `memref.subview` that drops another dimension of size 1 than the strides tell
    upstream.

    Before:
    ```mlir
    func.func @f(%x: memref<?xf32>, %n: index, %m: index) -> memref<?x?xf32> {
      %y = memref.expand_shape %x [[0, 1]] output_shape [%n, %m] : memref<?xf32> into memref<?x?xf32>
      return %y : memref<?x?xf32>
    }
    ```
    After:
    ```mlir
    func.func @f(%x: memref<?xf32>, %n: index, %m: index) -> memref<?x?xf32> {
      %b, %o, %s, %t = memref.extract_strided_metadata %x : memref<?xf32> -> memref<f32>, index, index, index
      ...
      %y = memref.reinterpret_cast %b to offset: [0], sizes: [%n, %m], strides: [%k, 1] : memref<f32> to memref<?x?xf32>
      return %y : memref<?x?xf32>
    }
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::memref::MemRefDialect"];
}

def OutlineHostLoops : Pass<"tile-outline-host-loops", "::mlir::ModuleOp"> {
  let summary = "Make kernels of the host function's loops over elements";
  let description = [{
    The host function of a model for a GPU only launches kernels: it cannot read memory at the speed of a loop.
    Loops that the plan left on the host become kernels that compute with scalars, in one thread; the iterations
    of a parallel loop are tasks. Scalars that a loop gives go through memory. Loops that allocate, assert or
    launch stay, with the loops inside them looked at in turn.

    Before:
    ```mlir
    func.func @main(%x: memref<?xi64>, %n: index) {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      scf.for %i = %c1 to %n step %c1 {
        %p = arith.subi %i, %c1 : index
        %a = memref.load %x[%p] : memref<?xi64>
        %b = memref.load %x[%i] : memref<?xi64>
        %s = arith.addi %a, %b : i64
        memref.store %s, %x[%i] : memref<?xi64>
      }
      return
    }
    ```
    After:
    ```mlir
    tile.kernel @host_loop(%n: index, %x: memref<?xi64>) attributes {tile.threads = 32 : i64} {
      %c1 = arith.constant 1 : index
      scf.for %i = %c1 to %n step %c1 {
        %p = arith.subi %i, %c1 : index
        %a = memref.load %x[%p] : memref<?xi64>
        %b = memref.load %x[%i] : memref<?xi64>
        %s = arith.addi %a, %b : i64
        memref.store %s, %x[%i] : memref<?xi64>
      }
      tile.return
    }
    func.func @main(%y: memref<?xi64>, %m: index) {
      ...
      tile.launch @host_loop ins(%m : index) outs(%y : memref<?xi64>)
      return
    }
    ```
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::memref::MemRefDialect",
    "::tilewright::tile::TileDialect"
  ];
}

#endif // TILEWRIGHT_TRANSFORMS_HOSTBUFFERS_PASSES
