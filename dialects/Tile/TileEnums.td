//===- TileEnums.td - enumerations of the tile dialect -----*- tablegen -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_TILE_ENUMS
#define TILEWRIGHT_TILE_ENUMS

include "dialects/Tile/TileDialect.td"
include "mlir/IR/EnumAttr.td"

// `and`, `or` and `xor` are operators in C++: their enumerators end with `_`.
def Tile_ReduceKind : I32EnumAttr<"ReduceKind", "how elements are combined", [
    I32EnumAttrCase<"add", 0>, I32EnumAttrCase<"mul", 1>,
    I32EnumAttrCase<"max", 2>, I32EnumAttrCase<"min", 3>,
    I32EnumAttrCase<"maxnum", 4>, I32EnumAttrCase<"minnum", 5>,
    I32EnumAttrCase<"umax", 6>, I32EnumAttrCase<"umin", 7>,
    I32EnumAttrCase<"and_", 8, "and">, I32EnumAttrCase<"or_", 9, "or">,
    I32EnumAttrCase<"xor_", 10, "xor">]> {
  let cppNamespace = "::tilewright::tile";
  let genSpecializedAttr = 0;
}

def Tile_ReduceKindAttr
    : EnumAttr<Tile_Dialect, Tile_ReduceKind, "reduce_kind"> {
  let description = [{
    How a reduction combines two elements.

    | kind | floats | integers |
    |---|---|---|
    | `add`, `mul` | sum, product | modulo 2^bits |
    | `max`, `min` | a NaN on either side gives NaN | signed |
    | `maxnum`, `minnum` | a NaN loses against a number | not allowed |
    | `umax`, `umin` | not allowed | unsigned |
    | `and`, `or`, `xor` | not allowed | bitwise |

    On `i1` elements `or` is the disjunction and `and` the conjunction.
  }];
}

#endif // TILEWRIGHT_TILE_ENUMS
