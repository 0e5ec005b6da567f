//===- TileDialect.td - the tile dialect -------------------*- tablegen -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_TILE_DIALECT
#define TILEWRIGHT_TILE_DIALECT

include "mlir/IR/OpBase.td"

def Tile_Dialect : Dialect {
  let name = "tile";
  let cppNamespace = "::tilewright::tile";
  let summary = "Blocks of tensors at the levels of a machine's memory";
  let description = [{
    A *tile* is a block of a tensor that lives at one level of a memory
    hierarchy. The dialect has four families of operations: graph ops say which
    tensor operations meet at which level (`tile.group`), host ops start work
    (`tile.launch`), kernel ops describe the tasks of a grid (`tile.kernel` and
    everything inside it), program ops place tasks on execution units
    (`tile.program`). `arith` and `math` work on tiles as they are.

    Discardable attributes with the prefix `tile.` carry decisions: `tile.rtile`
    (tile sizes), `tile.layouts` (a layout per operand), `tile.name`, ... Each is
    declared in `TileDecisions.td`; what is not is refused.
  }];
  let extraClassDeclaration = [{
    void registerAttributes();
    void registerTypes();
  }];
  let useDefaultAttributePrinterParser = 1;
  let useDefaultTypePrinterParser = 1;
  let hasConstantMaterializer = 1;
  let hasOperationAttrVerify = 1;
  let hasRegionArgAttrVerify = 1;
  let hasRegionResultAttrVerify = 1;
  let dependentDialects = ["::mlir::arith::ArithDialect"];
}

class Tile_Op<string mnemonic, list<Trait> traits = []>
    : Op<Tile_Dialect, mnemonic, traits>;

#endif // TILEWRIGHT_TILE_DIALECT
