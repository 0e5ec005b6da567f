//===- Passes.td - movement in the background on GPUs ------------*- tablegen -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_CONVERSION_ASYNCTOGPU_PASSES
#define TILEWRIGHT_CONVERSION_ASYNCTOGPU_PASSES

include "mlir/Pass/PassBase.td"

def SelectWgmma : Pass<"tile-select-wgmma", "::mlir::ModuleOp"> {
  let summary = "Mark the products that Hopper's warpgroup matrix units do";
  let description = [{
    A product whose right operand is a whole slot of a swizzled buffer in shared
    memory, and whose left operand is one or lies in registers, gets `tile.unit =
    "wgmma"`, where the element types are some that `wgmma` has and the sizes fit
    the kernel's warps (`tile.warps`); so does one whose `a` is 2:4 sparse, of 16
    bits or bytes. Other products of such element types stay,
    with a remark that says why.

    Before:
    ```mlir
    tile.kernel @k(%x: memref<64x64xf16>, %y: memref<64x64xf32>) attributes {tile.warps = 4 : i64} {
      %c0 = arith.constant 0 : index
      %s = tile.alloc {alignment = 1024 : i64, tile.layouts = [#tile.layout<swizzle = 128>]} :
          memref<2x64x64xf16, #tile.level<"shared">>
      %zero = arith.constant dense<0.0> : !tile.tile<64x64xf32>
      %a = tile.load %x[%c0, %c0] : memref<64x64xf16>, !tile.tile<64x64xf16>
      %b = tile.load %s[%c0, %c0, %c0] : memref<2x64x64xf16, #tile.level<"shared">>, !tile.tile<64x64xf16>
      %d = tile.mma %a, %b, %zero : !tile.tile<64x64xf16>, !tile.tile<64x64xf16>, !tile.tile<64x64xf32>
      tile.store %d, %y[%c0, %c0] : !tile.tile<64x64xf32>, memref<64x64xf32>
      tile.return
    }
    ```
    After:
    ```mlir
    %d = tile.mma %a, %b, %zero {tile.unit = "wgmma"} : ...
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
}

def PromoteSums : Pass<"tile-promote-sums", "::mlir::ModuleOp"> {
  let summary = "Sums leave the short accumulators of matrix units in time";
  let description = [{
    Hopper's warpgroup matrix units add products of float8 with 13 bits of fraction.
    So a product with `tile.promotion = n` (and `tile.unit = "wgmma"`) adds up n
    terms at most in the unit, begins anew (with zeros, which the unit need not
    read), and vector units add what it has to the sum in f32. Where n terms are
    those of several steps of the loop around, this carries what the unit has, adds
    it in every so manieth step, and begins anew behind that (`tile.starts`); one
    product with more terms than n is promoted by itself, with a remark. `tile.promotion = 0`, and sums that are one
    product, stay as they are. The attribute goes.

    Before:
    ```mlir
    gpu.module @kernels {
      gpu.func @k(%a: !tile.tile<64x128xf8E4M3FN>, %b: !tile.tile<128x64xf8E4M3FN>, %c: !tile.tile<64x64xf32>,
          %y: memref<64x64xf32>) kernel {
        %c0 = arith.constant 0 : index
        %d = tile.mma %a, %b, %c {tile.promotion = 128 : i64, tile.unit = "wgmma"} :
            !tile.tile<64x128xf8E4M3FN>, !tile.tile<128x64xf8E4M3FN>, !tile.tile<64x64xf32>
        tile.store %d, %y[%c0, %c0] : !tile.tile<64x64xf32>, memref<64x64xf32>
        gpu.return
      }
    }
    ```
    After:
    ```mlir
    %zeros = arith.constant dense<0.000000e+00> : !tile.tile<64x64xf32>
    %p = tile.mma %a, %b, %zeros {tile.unit = "wgmma"} : ...
    %d = arith.addf %c, %p : !tile.tile<64x64xf32>
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect",
                           "::mlir::ub::UBDialect"];
}

def SpecializeWarps : Pass<"tile-specialize-warps", "::mlir::ModuleOp"> {
  let summary = "Give kernels warps that only move data, by TMA and mbarriers";
  let description = [{
    In a `gpu.func` with `tile.specialized`, loops that load ahead of time (the
    form that `tile-pipeline-loads` gives them) are cut in two: 128 threads more,
    of which one starts the copies of the tensor memory accelerator (TMA), and
    `tile.threads` that compute. Two mbarriers per slot stand between them, one
    that counts the bytes that have arrived, one for those who are done with it.
    Registers move from the former to the latter (setmaxnreg): those that are left
    where `tile.occupancy` blocks (1 without it) share a processor. Descriptors of the
    arguments become parameters (kind `tensor_map` in `tile.params`).

    Products in the background that only add to what the loop carries get
    `tile.pending`: they are waited for a step later, and their slots are given
    back then; a `tile.mma_wait` follows the loop. Where such sums begin at zero,
    they begin with `ub.poison` instead, and `tile.starts` on the first product says
    that it adds to nothing in the first step: no registers are cleared.

    Copies outside of loops that are waited for alone (`tile-share-operands` makes
    such ones) get one mbarrier, which nobody gives back. Where a block runs several
    tasks, copies that are started once in each (`tile-fetch-matrices`) get a second
    one, which counts the computing warps that have read what came.

    Blocks of a cluster (`tile.cluster`) share copies that are marked
    `tile.multicast`: each loads a part of the box into the slots of all (panels,
    or rows that are a whole number of swizzles), and the mbarrier of a full slot
    counts the bytes of all parts. A slot is empty once the computing warps of
    all blocks have given it back, so they tell each block of the cluster. All
    blocks meet before the first copy and before they end: no mbarrier is used
    before it is made, and none after its block has gone. Boxes that cannot be
    cut are loaded by each block, with a remark.

    Where a block runs several tasks (`tile.tasks`), slots and phases are carried
    from one to the next: the copies of a task begin while the one before is
    computed and stored.

    A kernel that another one launches (`tile.code`) is one of its many times: slots
    and phases are a thread's own memory, which LLVM makes registers of, and go on
    from launch to launch, in whatever loops and branches these stand. The launching
    kernel sets the registers of roles, and has the descriptors: what TMA reads must
    be a part of one of its arguments, at a place and of sizes that are known.

    A kernel that cannot be cut (a copy that TMA cannot do, another form of loop)
    stays as it is, with a remark.

    Before:
    ```mlir
    gpu.module @kernels {
      gpu.func @k(%x: memref<256x64xf16>) kernel attributes {tile.specialized, tile.threads = 128 : i64,
          tile.params = [{kind = "pointer", arg = 0 : i64} ]} {
        %c0 = arith.constant 0 : index
        %c1 = arith.constant 1 : index
        %c2 = arith.constant 2 : index
        %c4 = arith.constant 4 : index
        %c64 = arith.constant 64 : index
        %ring = tile.alloc {alignment = 1024 : i64, tile.layouts = [#tile.layout<swizzle = 128>]} :
            memref<2x64x64xf16, #tile.level<"shared">>
        %from = memref.subview %x[0, 0] [64, 64] [1, 1] : memref<256x64xf16> to memref<64x64xf16, strided<[64, 1]>>
        %to = memref.subview %ring[0, 0, 0] [1, 64, 64] [1, 1, 1] : memref<2x64x64xf16, #tile.level<"shared">> to
            memref<64x64xf16, strided<[64, 1]>, #tile.level<"shared">>
        %first = tile.async {
          tile.copy %from to %to : memref<64x64xf16, strided<[64, 1]>>,
              memref<64x64xf16, strided<[64, 1]>, #tile.level<"shared">>
        }
        %last = scf.for %s = %c0 to %c4 step %c1 iter_args(%token = %first) -> (!tile.token) {
          tile.await %token
          %ahead = arith.addi %s, %c1 : index
          %more = arith.cmpi slt, %ahead, %c4 : index
          %next = scf.if %more -> (!tile.token) {
            %row = arith.muli %ahead, %c64 : index
            %slot = arith.remui %ahead, %c2 : index
            %f = memref.subview %x[%row, 0] [64, 64] [1, 1] : memref<256x64xf16> to
                memref<64x64xf16, strided<[64, 1], offset: ?>>
            %t = memref.subview %ring[%slot, 0, 0] [1, 64, 64] [1, 1, 1] : memref<2x64x64xf16, #tile.level<"shared">> to
                memref<64x64xf16, strided<[64, 1], offset: ?>, #tile.level<"shared">>
            %a = tile.async {
              tile.copy %f to %t : memref<64x64xf16, strided<[64, 1], offset: ?>>,
                  memref<64x64xf16, strided<[64, 1], offset: ?>, #tile.level<"shared">>
            }
            scf.yield %a : !tile.token
          } else {
            scf.yield %token : !tile.token
          }
          scf.yield %next : !tile.token
        }
        gpu.return
      }
    }
    ```
    After:
    ```mlir
    gpu.func @k(%x: memref<256x64xf16>, %map: !llvm.ptr) kernel
    ...
    nvvm.mbarrier.init ...
    gpu.barrier
    ...
    scf.if %producing {
      nvvm.setmaxregister decrease 40
      ...
      scf.for ...
        nvvm.mbarrier.try_wait.parity ...
        nvvm.mbarrier.arrive.expect_tx ...
        nvvm.cp.async.bulk.tensor.shared.cluster.global ...
    } else {
      nvvm.setmaxregister increase 240
      ...
      scf.for ...
        nvvm.mbarrier.try_wait.parity ...
        nvvm.mbarrier.arrive ...
    } {tile.roles}
    gpu.return
    ```
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::gpu::GPUDialect", "::mlir::LLVM::LLVMDialect",
    "::mlir::memref::MemRefDialect", "::mlir::NVVM::NVVMDialect", "::mlir::scf::SCFDialect",
    "::mlir::ub::UBDialect", "::tilewright::tile::TileDialect"
  ];
}

def MarkMulticasts : Pass<"tile-mark-multicasts", "::mlir::ModuleOp"> {
  let summary = "Mark the copies that bring the same to all tasks of a cluster";
  let description = [{
    In a kernel with a `cluster`, a copy in the background of a loop that loads
    ahead of time gets `tile.multicast` where neither its source nor the loops
    and branches around it depend on a coordinate that tells tasks of a cluster
    apart: all of them start it equally often, and with the same bytes. Each may
    then load a part for all (`tile-specialize-warps` does). Where there is no
    such copy, a remark says so.

    Before:
    ```mlir
    tile.kernel @k(%x: memref<256x64xf16>) grid(%i, %j) cluster [1, 2] {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c2 = arith.constant 2 : index
      %c4 = arith.constant 4 : index
      %c64 = arith.constant 64 : index
      %ring = tile.alloc {alignment = 1024 : i64, tile.layouts = [#tile.layout<swizzle = 128>]} :
          memref<2x64x64xf16, #tile.level<"shared">>
      %from = memref.subview %x[0, 0] [64, 64] [1, 1] : memref<256x64xf16> to memref<64x64xf16, strided<[64, 1]>>
      %to = memref.subview %ring[0, 0, 0] [1, 64, 64] [1, 1, 1] : memref<2x64x64xf16, #tile.level<"shared">> to
          memref<64x64xf16, strided<[64, 1]>, #tile.level<"shared">>
      %first = tile.async {
        tile.copy %from to %to : memref<64x64xf16, strided<[64, 1]>>,
            memref<64x64xf16, strided<[64, 1]>, #tile.level<"shared">>
      }
      %last = scf.for %s = %c0 to %c4 step %c1 iter_args(%token = %first) -> (!tile.token) {
        tile.await %token
        %ahead = arith.addi %s, %c1 : index
        %more = arith.cmpi slt, %ahead, %c4 : index
        %next = scf.if %more -> (!tile.token) {
          %row = arith.muli %ahead, %c64 : index
          %slot = arith.remui %ahead, %c2 : index
          %f = memref.subview %x[%row, 0] [64, 64] [1, 1] : memref<256x64xf16> to
              memref<64x64xf16, strided<[64, 1], offset: ?>>
          %t = memref.subview %ring[%slot, 0, 0] [1, 64, 64] [1, 1, 1] : memref<2x64x64xf16, #tile.level<"shared">> to
              memref<64x64xf16, strided<[64, 1], offset: ?>, #tile.level<"shared">>
          %a = tile.async {
            tile.copy %f to %t : memref<64x64xf16, strided<[64, 1], offset: ?>>,
                memref<64x64xf16, strided<[64, 1], offset: ?>, #tile.level<"shared">>
          }
          scf.yield %a : !tile.token
        } else {
          scf.yield %token : !tile.token
        }
        scf.yield %next : !tile.token
      }
      tile.return
    }
    ```
    After:
    ```mlir
    tile.copy %f to %t {tile.multicast} : ...
    ```
  }];
  let dependentDialects = ["::tilewright::tile::TileDialect"];
}

def StageStores : Pass<"tile-stage-stores", "::mlir::ModuleOp"> {
  let summary = "Mark the stores that TMA does, in boxes from shared memory";
  let description = [{
    In a `gpu.func` with `tile.staged` (how many boxes of a warp may wait in
    shared memory), each warp puts the boxes that it holds of a stored tile into
    shared memory, and the tensor memory accelerator (TMA) stores them in the
    background, cut at the ends of the argument. The store names its descriptor,
    a parameter of the kernel (kind `tensor_map` in `tile.params`), and takes the
    tile in the layout that it was computed in: a change of layout before it goes.
    What TMA cannot store stays, with a remark: among others what goes to memory
    that the kernel may touch later, itself or (`tile.same_memory`,
    `tile.may_overlap`) through another argument.

    Before:
    ```mlir
    gpu.module @kernels {
      gpu.func @k(%y: memref<256x64xf16>, %i: index,
          %t: !tile.tile<64x64xf16, #tile.distributed<register = [[0, 1], [8, 0], [0, 8], [0, 16], [0, 32]], lane =
              [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>>)
          attributes {tile.staged = 2 : i64, tile.threads = 128 : i64,
          tile.params = [{kind = "pointer", arg = 0 : i64}, {kind = "scalar", arg = 1 : i64},
              {kind = "scalar", arg = 2 : i64} ]} {
        %c0 = arith.constant 0 : index
        tile.store %t, %y[%i, %c0] : !tile.tile<64x64xf16,
            #tile.distributed<register = [[0, 1], [8, 0], [0, 8], [0, 16], [0, 32]], lane =
            [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>>, memref<256x64xf16>
        gpu.return
      }
    }
    ```
    After:
    ```mlir
    tile.store %t, %y[%i, %c0] {tile.box = {map = 3 : i64, slots = 2 : i64}}
    ```
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect", "::tilewright::tile::TileDialect"];
}

def CopiesToCpAsync : Pass<"tile-copies-to-cp-async", "::mlir::ModuleOp"> {
  let summary = "Copies in the background become cp.async of all threads";
  let description = [{
    Each thread of a `gpu.func` (`tile.threads` of them) moves some chunks of 16
    bytes of each copy (8 or 4, where rows start at multiples of these only); the
    copies of a `tile.async` are one group. `tile.await` waits for its group, where
    the loop has the form that `tile-pipeline-loads` gives it, else for all, and
    for the other threads; where warpgroups multiply, which read by the
    asynchronous proxy, threads hand over (a proxy fence) what they have copied.
    Rows and chunks past the source's sizes are filled with zeros (`fill`).
    Kernels with `tile.specialized` are left alone.

    Before:
    ```mlir
    gpu.module @kernels {
      gpu.func @k(%x: memref<32x64xf16>) kernel attributes {tile.threads = 128 : i64} {
        %slot = tile.alloc {alignment = 1024 : i64, tile.layouts = [#tile.layout<swizzle = 128>]} :
            memref<1x32x64xf16, #tile.level<"shared">>
        %from = memref.subview %x[0, 0] [32, 64] [1, 1] : memref<32x64xf16> to memref<32x64xf16, strided<[64, 1]>>
        %to = memref.subview %slot[0, 0, 0] [1, 32, 64] [1, 1, 1] : memref<1x32x64xf16, #tile.level<"shared">> to
            memref<32x64xf16, strided<[64, 1]>, #tile.level<"shared">>
        %token = tile.async {
          tile.copy %from to %to : memref<32x64xf16, strided<[64, 1]>>,
              memref<32x64xf16, strided<[64, 1]>, #tile.level<"shared">>
        }
        tile.await %token
        gpu.return
      }
    }
    ```
    After:
    ```mlir
    nvvm.cp.async.shared.global %to, %from, 16, cache = cg : ...
    nvvm.cp.async.shared.global %other, %row, 16, cache = cg : ...
    nvvm.cp.async.commit.group
    ...
    nvvm.cp.async.wait.group 0
    gpu.barrier
    gpu.return
    ```
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::gpu::GPUDialect", "::mlir::LLVM::LLVMDialect",
    "::mlir::memref::MemRefDialect", "::mlir::NVVM::NVVMDialect", "::mlir::scf::SCFDialect"
  ];
}

def ScopeBarriers : Pass<"tile-scope-barriers", "::mlir::ModuleOp"> {
  let summary = "Barriers of the warps that compute leave out those that move data";
  let description = [{
    In a `gpu.func` with `tile.specialized`, the `gpu.barrier`s of the branch that
    computes become named barriers of its `tile.threads` threads. `tile.threads` is
    then the size of the block.

    Before:
    ```mlir
    gpu.module @kernels {
      gpu.func @k(%p: i1) kernel attributes
          {known_block_size = array<i32: 256, 1, 1>, tile.specialized, tile.threads = 128 : i64} {
        scf.if %p {
        } else {
          gpu.barrier
        } {tile.roles}
        gpu.return
      }
    }
    ```
    After:
    ```mlir
    tile.threads = 256 : i64
    ...
    nvvm.barrier id = %one number_of_threads = %threads
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::NVVM::NVVMDialect"];
}

def MarkGridConstants : Pass<"tile-mark-grid-constants", "::mlir::ModuleOp"> {
  let summary = "Parameters that are tensor maps are passed by value, and constant";
  let description = [{
    Parameters of an `llvm.func` that its `tile.params` call `tensor_map` become
    128 bytes in the parameter space, which TMA reads there (`gpu.func` cannot say
    so). Kernels with `tile.occupancy` get so many blocks per processor as the least,
    by which the assembler counts registers; those with `tile.specialized` one where
    they say nothing, without which it ignores setmaxnreg.

    Before:
    ```mlir
    llvm.func @k(%map: !llvm.ptr) attributes
        {nvvm.kernel, tile.specialized, tile.params = [{kind = "tensor_map", arg = 0 : i64} ]} {
      llvm.return
    }
    ```
    After:
    ```mlir
    llvm.func @k(%map: !llvm.ptr {llvm.align = 64 : i64, llvm.byval = !llvm.array<128 x i8>, llvm.noundef,
        nvvm.grid_constant})
        attributes {nvvm.kernel, nvvm.minctasm = 1 : i32, ...
    ```
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect", "::mlir::NVVM::NVVMDialect"];
}

def DeferWaits : Pass<"tile-defer-waits", "::mlir::ModuleOp"> {
  let summary = "Products that nothing reads at once run on beside the next one";
  let description = [{
    Where a product of warpgroups (`tile.unit = "wgmma"`) is followed by another one
    before anything reads its result, both are started and waited for later
    (`tile.pending`): the first one behind the second (`tile.mma_wait` with
    `tile.pending = 1`: all but the last), the second one where it is read. What
    stands between is computed while it multiplies.

    Before:
    ```mlir
    gpu.module @kernels {
      gpu.func @k(%x: memref<1x64x64xf16, #tile.level<"shared">>, %c: !tile.tile<64x64xf32>, %y: memref<64x64xf32>)
          kernel {
        %c0 = arith.constant 0 : index
        %a = tile.load %x[%c0, %c0, %c0] : memref<1x64x64xf16, #tile.level<"shared">>, !tile.tile<64x64xf16>
        %s = tile.mma %a, %a, %c {tile.unit = "wgmma"} : !tile.tile<64x64xf16>, !tile.tile<64x64xf16>,
            !tile.tile<64x64xf32>
        %o = tile.mma %a, %a, %c {tile.unit = "wgmma"} : !tile.tile<64x64xf16>, !tile.tile<64x64xf16>,
            !tile.tile<64x64xf32>
        %e = math.exp %s : !tile.tile<64x64xf32>
        %p = arith.mulf %o, %e : !tile.tile<64x64xf32>
        tile.store %p, %y[%c0, %c0] : !tile.tile<64x64xf32>, memref<64x64xf32>
        gpu.return
      }
    }
    ```
    After:
    ```mlir
    %s = tile.mma %a, %a, %c {tile.pending = 1 : i64, tile.unit = "wgmma"} : ...
    %o = tile.mma %a, %a, %c {tile.pending = 2 : i64, tile.unit = "wgmma"} : ...
    %t = tile.mma_wait %s {tile.pending = 1 : i64} : !tile.tile<64x64xf32>
    %e = math.exp %t : !tile.tile<64x64xf32>
    %r = tile.mma_wait %o : !tile.tile<64x64xf32>
    %p = arith.mulf %r, %e : !tile.tile<64x64xf32>
    ```
  }];
  let dependentDialects = ["::tilewright::tile::TileDialect"];
}

#endif // TILEWRIGHT_CONVERSION_ASYNCTOGPU_PASSES
