//===- TileKernelOps.td - kernels and their launch ---------*- tablegen -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_TILE_KERNEL_OPS
#define TILEWRIGHT_TILE_KERNEL_OPS

include "dialects/Tile/TileAttributes.td"
include "dialects/Tile/TileTypes.td"
include "mlir/Interfaces/DestinationStyleOpInterface.td"
include "mlir/Interfaces/FunctionInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "mlir/IR/BuiltinAttributes.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/IR/RegionKindInterface.td"
include "mlir/IR/SymbolInterfaces.td"

def Tile_KernelOp : Tile_Op<"kernel", [
    AutomaticAllocationScope, FunctionOpInterface, IsolatedFromAbove,
    SingleBlock, SingleBlockImplicitTerminator<"::tilewright::tile::ReturnOp">]> {
  let summary = "what each task of a grid does";
  let description = [{
    Arguments are memrefs and scalars; after them come the coordinates of the
    task in the grid, of type `index`. The bounds of the grid are operands of
    the launch. The first coordinate varies slowest. Tasks are independent
    unless they use `tile.barrier` or `tile.copy ... at`; with `cluster`, only
    tasks of the same block of that many coordinates reach each other so, and
    the whole grid does without it. A kernel without coordinates may launch
    others, one after the other: on a GPU its blocks share their tasks, and meet
    behind each launch.

    - `kernel_c1`: the function type has memrefs and scalars as inputs and no
      results.
    - `kernel_c2`: the block's arguments are the inputs, then `grid_rank`
      values of type `index`.
    - `kernel_c3`: `cluster` has a positive size per coordinate.
    - `kernel_c4`: no tensors are made or used in the body.
    - `kernel_c5`: only a kernel without coordinates launches others, and none
      of them launches another one.

    Example:

    ```mlir
    tile.kernel @exp(%x: memref<?x64xf32>, %y: memref<?x64xf32>) grid(%i) {
      %c0 = arith.constant 0 : index
      %a = tile.load %x[%i, %c0] : memref<?x64xf32>, !tile.tile<1x64xf32>
      %b = math.exp %a : !tile.tile<1x64xf32>
      tile.store %b, %y[%i, %c0] : !tile.tile<1x64xf32>, memref<?x64xf32>
      tile.return
    }
    tile.kernel @pairs(%x: memref<8x64xf32>) grid(%i, %j) cluster [2, 1] {
      tile.barrier
      tile.return
    }
    tile.kernel @again(%x: memref<8x64xf32>) {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c8 = arith.constant 8 : index
      scf.for %t = %c0 to %c8 step %c1 {
        tile.launch @exp grid(%c8) ins(%x : memref<8x64xf32>) outs(%x : memref<8x64xf32>)
      }
      tile.return
    }
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name,
                       TypeAttrOf<FunctionType>:$function_type,
                       I64Attr:$grid_rank,
                       OptionalAttr<DenseI64ArrayAttr>:$cluster,
                       OptionalAttr<DictArrayAttr>:$arg_attrs,
                       OptionalAttr<DictArrayAttr>:$res_attrs,
                       OptionalAttr<StrAttr>:$sym_visibility);
  let regions = (region SizedRegion<1>:$body);
  let skipDefaultBuilders = 1;
  let builders = [
    // Makes the entry block with all its arguments and leaves it empty.
    OpBuilder<(ins "::llvm::StringRef":$name, "::mlir::FunctionType":$type,
                   "int64_t":$gridRank)>,
  ];
  let extraClassDeclaration = [{
    ::mlir::Block &getEntryBlock() { return getBody().front(); }
    /// The block arguments of the inputs.
    ::llvm::ArrayRef<::mlir::BlockArgument> getInputs();
    /// The block arguments that hold the task's coordinates.
    ::llvm::ArrayRef<::mlir::BlockArgument> getGridIds();

    // FunctionOpInterface and CallableOpInterface.
    ::mlir::Region *getCallableRegion() { return &getBody(); }
    ::llvm::ArrayRef<::mlir::Type> getArgumentTypes() {
      return getFunctionType().getInputs();
    }
    ::llvm::ArrayRef<::mlir::Type> getResultTypes() {
      return getFunctionType().getResults();
    }
    ::llvm::LogicalResult verifyType();
    ::llvm::LogicalResult verifyBody();
  }];
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
}

def Tile_ReturnOp : Tile_Op<"return", [
    Pure, ReturnLike, Terminator, ParentOneOf<["KernelOp", "ProgramOp"]>]> {
  let summary = "ends a kernel or a program";
  let description = [{
    Example:

    ```mlir
    tile.kernel @nothing() {
      tile.return
    }
    ```
  }];
  let assemblyFormat = "attr-dict";
}

def Tile_LaunchOp : Tile_Op<"launch", [
    AttrSizedOperandSegments, DestinationStyleOpInterface,
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>,
    DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "runs all tasks of a kernel";
  let description = [{
    Runs `kernel` once per point of the grid and returns when all are done.
    Operands follow the kernel's arguments: `ins`, then `outs`. With tensors it
    is in destination style: a result is the updated `outs` operand;
    One-Shot-Bufferize turns it into the form on memrefs, without results. The
    symbol may also name a `tile.program`, which has no grid. Bounds of zero run
    no task.

    - `launch_c1`: the symbol names a `tile.kernel` or `tile.program`.
    - `launch_c2`: there are as many bounds as the kernel has coordinates.
    - `launch_c3`: there are as many operands as the kernel has arguments.
    - `launch_c4`: each operand fits its argument: same rank, element type and
      memory space, equal sizes where both are static and a static one where the
      argument wants it, a layout that the argument's covers; scalars are equal.
    - `launch_c5`: `outs` are tensors or memrefs, and results are the types of
      the tensors among them.
    - `launch_c6`: tensors and memrefs are not mixed.

    Example:

    ```mlir
    tile.kernel @exp(%x: memref<8x64xf32>, %y: memref<8x64xf32>) grid(%i) {
      tile.return
    }
    func.func @on_tensors(%x: tensor<8x64xf32>, %e: tensor<8x64xf32>) -> tensor<8x64xf32> {
      %c8 = arith.constant 8 : index
      %y = tile.launch @exp grid(%c8) ins(%x : tensor<8x64xf32>) outs(%e : tensor<8x64xf32>) -> (tensor<8x64xf32>)
      return %y : tensor<8x64xf32>
    }
    func.func @on_buffers(%x: memref<8x64xf32>, %y: memref<8x64xf32>) {
      %c8 = arith.constant 8 : index
      tile.launch @exp grid(%c8) ins(%x : memref<8x64xf32>) outs(%y : memref<8x64xf32>)
      return
    }
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$kernel, Variadic<Index>:$grid,
                       Variadic<AnyType>:$inputs, Variadic<AnyType>:$outputs);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let builders = [
    // Results are the tensors among the outputs.
    OpBuilder<(ins "::llvm::StringRef":$kernel, "::mlir::ValueRange":$grid,
                   "::mlir::ValueRange":$inputs,
                   "::mlir::ValueRange":$outputs)>,
  ];
  let assemblyFormat = [{
    $kernel (`grid` `(` $grid^ `)`)? (`ins` `(` $inputs^ `:` type($inputs) `)`)?
    (`outs` `(` $outputs^ `:` type($outputs) `)`)? attr-dict
    (`->` `(` type($results)^ `)`)?
  }];
  let extraClassDeclaration = [{
    ::mlir::MutableOperandRange getDpsInitsMutable() {
      return getOutputsMutable();
    }
    /// Operands as the kernel's arguments take them: inputs, then outputs.
    ::mlir::OperandRange getKernelOperands() {
      return getOperands().drop_front(getGrid().size());
    }
  }];
  let hasVerifier = 1;
}

#endif // TILEWRIGHT_TILE_KERNEL_OPS
