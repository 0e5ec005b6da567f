//===- FractalTreeOps.td - functions over trees ----------------*- tablegen -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_FRACTAL_TREE_OPS
#define TILEWRIGHT_FRACTAL_TREE_OPS

include "dialects/Fractal/FractalTypes.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Fractal_RecurseOp : Fractal_Op<"recurse", [
    RecursiveMemoryEffects, RecursivelySpeculatable, SingleBlock,
    AttrSizedOperandSegments,
    DeclareOpInterfaceMethods<OpAsmOpInterface,
                              ["getAsmBlockArgumentNames"]>]> {
  let summary = "a function of each node of trees and of its children's results";
  let description = [{
    The first region makes the states of a leaf, the second one those of a node
    from the states of its children. Result k is the list of state k of the nodes
    that `roots` names.

    Nodes are numbered by level: those of level k are `levels[k]` up to, and
    without, `levels[k + 1]`. Level 0 are the leaves, and begins with node 0. Row
    i of `children` names the children of node i, which are in lower levels; rows
    of leaves, and those behind the last node, are not read. Nodes of one level
    are independent of each other.

    Block arguments of the first region are an element of each array in `leaves`,
    at the leaf's number; those of the second one all states of the first child,
    then those of the next ones, then an element of each array in `nodes`, at the
    node's number. Numbers that break these rules are an error in the reference
    interpreter; elsewhere results are then undefined, and nothing is read or
    written outside.

    - `recurse_c1`: how many children a node has is known, and not zero.
    - `recurse_c2`: the first region has one block argument per array in `leaves`,
      of its element type.
    - `recurse_c3`: there is at least one result; no result has a known length
      other than that of `roots`.
    - `recurse_c4`: block arguments of the second region are the states of each
      child, of the element types of the results, then an element of each array in
      `nodes`.
    - `recurse_c5`: both regions yield one value per result, of its element type.
    - `recurse_c6`: no array in `nodes` has a known length other than the number
      of rows of `children`.
    - `recurse_c7`: a known number of `levels` is two or more: those where the
      leaves begin and end are in it.

    Example:

    ```mlir
    func.func @f(%words: !fractal.array<[64] of tensor<1x8xf32>>, %children: tensor<127x2xi32>,
        %levels: tensor<8xi32>, %roots: tensor<1xi32>) -> !fractal.array<[1] of tensor<1x8xf32>> {
      %r = fractal.recurse %children, %levels, %roots leaves(%words) nodes()
          : (tensor<127x2xi32>, tensor<8xi32>, tensor<1xi32>, !fractal.array<[64] of tensor<1x8xf32>>)
          -> !fractal.array<[1] of tensor<1x8xf32>>
      leaf (%x) {
        fractal.yield %x : tensor<1x8xf32>
      } node (%left, %right) {
        %0 = arith.addf %left, %right : tensor<1x8xf32>
        %1 = math.tanh %0 : tensor<1x8xf32>
        fractal.yield %1 : tensor<1x8xf32>
      }
      return %r : !fractal.array<[1] of tensor<1x8xf32>>
    }
    ```
  }];
  let arguments = (ins 2DTensorOf<[I32, I64]>:$children,
                       1DTensorOf<[I32, I64]>:$levels,
                       1DTensorOf<[I32, I64]>:$roots,
                       Variadic<Fractal_ArrayType>:$leaves,
                       Variadic<Fractal_ArrayType>:$nodes);
  let results = (outs Variadic<Fractal_ArrayType>:$results);
  let regions = (region SizedRegion<1>:$leafBody, SizedRegion<1>:$nodeBody);
  let extraClassDeclaration = [{
    /// How many children a node has.
    int64_t getArity() { return getChildren().getType().getDimSize(1); }
    ::mlir::Block &getLeafBlock() { return getLeafBody().front(); }
    ::mlir::Block &getNodeBlock() { return getNodeBody().front(); }
    /// Of each state.
    ::llvm::SmallVector<::mlir::Type> getStateTypes();
  }];
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
}

#endif // TILEWRIGHT_FRACTAL_TREE_OPS
