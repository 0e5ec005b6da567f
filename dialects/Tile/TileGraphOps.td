//===- TileGraphOps.td - what meets at which level ---------*- tablegen -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_TILE_GRAPH_OPS
#define TILEWRIGHT_TILE_GRAPH_OPS

include "dialects/Tile/TileAttributes.td"
include "dialects/Tile/TileTypes.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Tile_GroupOp : Tile_Op<"group", [
    IsolatedFromAbove, RecursiveMemoryEffects, SingleBlock,
    SingleBlockImplicitTerminator<"::tilewright::tile::YieldOp">,
    DeclareOpInterfaceMethods<RegionBranchOpInterface,
                              ["getEntrySuccessorOperands"]>]> {
  let summary = "tensor operations whose tiles meet at a memory level";
  let description = [{
    Nesting says the level: what two operations inside the group hand each other
    stays in tiles that live at `level` (or in registers, for level "register").
    The group sees its operands only, as block arguments. Groups become kernels
    in phase `tile` and are never bufferized.

    - `group_c1`: there is one block argument per operand, of its type.
    - `group_c2`: the yielded values have the types of the results.
    - `group_c3`: the level differs from those of the groups around it.
    - `group_c4`: the level's name is not empty.

    Example:

    ```mlir
    func.func @f(%x: tensor<8x16xf32>) -> tensor<8x16xf32> {
      %y = tile.group "l2" (%a = %x : tensor<8x16xf32>) -> (tensor<8x16xf32>) {
        %r = tile.group "register" (%a1 = %a : tensor<8x16xf32>) -> (tensor<8x16xf32>) {
          %0 = math.exp %a1 : tensor<8x16xf32>
          tile.yield %0 : tensor<8x16xf32>
        }
        tile.yield %r : tensor<8x16xf32>
      }
      return %y : tensor<8x16xf32>
    }
    ```
  }];
  let arguments = (ins StrAttr:$level, Variadic<AnyType>:$inputs);
  let results = (outs Variadic<AnyType>:$results);
  let regions = (region SizedRegion<1>:$body);
  let skipDefaultBuilders = 1;
  let builders = [
    // Makes the block with its arguments and leaves it empty.
    OpBuilder<(ins "::llvm::StringRef":$level, "::mlir::ValueRange":$inputs,
                   "::mlir::TypeRange":$resultTypes)>,
  ];
  let extraClassDeclaration = [{
    ::mlir::Block &getBodyBlock() { return getBody().front(); }
    ::tilewright::tile::YieldOp getYield();
  }];
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let hasCanonicalizer = 1;
}

def Tile_YieldOp : Tile_Op<"yield", [
    Pure, ReturnLike, Terminator,
    ParentOneOf<["GroupOp", "AsyncOp"]>]> {
  let summary = "ends a region of the dialect";
  let description = [{
    Hands the results of a `tile.group` on; ends the body of a `tile.async`.

    - `yield_c1`: inside `tile.async` it has no operands.

    Example:

    ```mlir
    func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
      %y = tile.group "l1" (%a = %x : tensor<4xf32>) -> (tensor<4xf32>) {
        tile.yield %a : tensor<4xf32>
      }
      return %y : tensor<4xf32>
    }
    ```
  }];
  let arguments = (ins Variadic<AnyType>:$operands);
  let builders = [OpBuilder<(ins), [{ /* no operands */ }]>];
  let assemblyFormat = "attr-dict ($operands^ `:` type($operands))?";
  let hasVerifier = 1;
}

#endif // TILEWRIGHT_TILE_GRAPH_OPS
