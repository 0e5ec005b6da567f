//===- CoreMeshProgramOps.td - programs, buffers, routes ---*- tablegen -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_CORE_MESH_PROGRAM_OPS
#define TILEWRIGHT_CORE_MESH_PROGRAM_OPS

include "dialects/CoreMesh/CoreMeshTypes.td"
include "mlir/IR/BuiltinAttributes.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def CoreMesh_ProgramOp : CoreMesh_Op<"program", [
    IsolatedFromAbove, SymbolTable, SingleBlock, Pure]> {
  let summary = "what each core of a grid does";
  let description = [{
    Runs one list of instructions on `height` x `width` cores. Buffers, routes and
    inputs are declared first, then come the instructions, then outputs are
    collected and yielded. All cores run the same instructions in the same order,
    those excepted whose `where` they do not fulfil. What is sent on a route from
    one core arrives at another in the order in which it was sent. Attributes
    `input_names` and `output_names`, lists of strings, are for messages.

    - `program_c1`: height and width are 1 or more.
    - `program_c2`: there is one block argument per operand, of its type.
    - `program_c3`: inputs are placed before the first instruction, outputs
      collected after the last.
    - `program_c4`: the yielded values have the types of the results.
    - `program_c5`: operands and results are tensors of static shape.
    - `program_c6`: `input_names` has a name for each operand, `output_names` one
      for each result; no two of a list are equal.

    Example: each core of a row hands its tile to its left neighbour on the ring.

    ```mlir
    func.func @f(%a: tensor<4x9xf32>) -> tensor<4x9xf32> {
      %r = coremesh.program "shift" grid(2, 3) (%in = %a) : (tensor<4x9xf32>) -> tensor<4x9xf32> {
        coremesh.buffer @A : tensor<2x3xf32> slots 2
        coremesh.route @left along x ring from (p + 1) mod 3
        coremesh.place %in in @A block(y, x) ring : tensor<4x9xf32>
        %s = coremesh.send @A on @left
        %t = coremesh.recv @A[1] from @left
        coremesh.wait round %s, %t
        %out = coremesh.collect @A[1] block(y, x) ring : tensor<4x9xf32>
        coremesh.yield %out : tensor<4x9xf32>
      }
      return %r : tensor<4x9xf32>
    }
    ```
  }];
  let arguments = (ins StrAttr:$name, I64Attr:$height, I64Attr:$width,
                       Variadic<AnyType>:$inputs);
  let results = (outs Variadic<AnyType>:$outputs);
  let regions = (region SizedRegion<1>:$body);
  let extraClassDeclaration = [{
    ::mlir::Block &getBodyBlock() { return getBody().front(); }
  }];
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
}

// What stands in a program and in no other op.
class CoreMesh_ProgramPartOp<string mnemonic, list<Trait> traits = []>
    : CoreMesh_Op<mnemonic, !listconcat([HasParent<"ProgramOp">], traits)>;

def CoreMesh_BufferOp : CoreMesh_ProgramPartOp<"buffer", [Symbol]> {
  let summary = "memory of each core";
  let description = [{
    `slots` tiles of one type, in each core. `address` is the first byte in a
    core's memory, once that is allocated; slots lie one behind the other.

    - `buffer_c1`: a tile has a static shape, no size of 0, elements that are
      integers or floats of whole bytes, or `i1`, which takes one, and no encoding.
    - `buffer_c2`: there is a slot; the address is not negative.

    Example: see `coremesh.loop`
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, TypeAttrOf<AnyRankedTensor>:$tile,
                       DefaultValuedAttr<I64Attr, "1">:$slots,
                       OptionalAttr<I64Attr>:$address);
  let assemblyFormat = [{
    $sym_name `:` $tile (`slots` $slots^)? (`address` $address^)? attr-dict
  }];
  let extraClassDeclaration = [{
    ::mlir::RankedTensorType getTileType() {
      return ::llvm::cast<::mlir::RankedTensorType>(getTile());
    }
  }];
  let hasVerifier = 1;
}

def CoreMesh_RouteOp : CoreMesh_ProgramPartOp<"route", [Symbol]> {
  let summary = "paths along one axis, of one pattern";
  let description = [{
    Data arrive at position `p` from position `source` of (p, q, loops...), on a
    straight path along a row (`x`) or column (`y`). Several destinations with one
    source are a multicast, which crosses each link once. A path exists where a
    core receives on the route and its source sends on it.

    `colors` are names of virtual channels, none before they are assigned: a core
    at (p, q), counted as cores stand, listens on the color with number `color`
    of (p, q).

    - `route_c1`: the source is one expression, of p, q and at most the four
      loops that can stand around an instruction; it divides by positive numbers.
    - `route_c2`: colors are not negative and differ from each other; the
      expression that chooses one is of p and q, and gives the number of a color
      wherever a core stands.

    Example: see `coremesh.relay`
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, CoreMesh_Axis:$axis,
                       DefaultValuedAttr<CoreMesh_Order, "Order::linear">:$order,
                       AffineMapAttr:$source,
                       OptionalAttr<DenseI64ArrayAttr>:$colors,
                       OptionalAttr<AffineMapAttr>:$color);
  let assemblyFormat = [{
    $sym_name `along` $axis `` custom<Order>($order) `from` custom<RouteExpr>($source)
    (`colors` $colors^ `by` custom<RouteExpr>($color))? attr-dict
  }];
  let hasVerifier = 1;
}

def CoreMesh_PlaceOp : CoreMesh_ProgramPartOp<"place", [
    MemoryEffects<[MemWrite]>, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "where tiles of an input lie";
  let description = [{
    Before the program runs, a core at (y, x) holds in its slot the block of the
    tensor whose index is `block` of (y, x). Blocks are of the buffer's shape, the
    last ones padded by zeros. Several cores with one block hold copies.

    - `place_c1`: the buffer is one of the program.
    - `place_c2`: the slot is one of the buffer on every core.
    - `place_c3`: the tensor has the buffer's element type and rank, and `block` an
      expression of y and x per dimension.
    - `place_c4`: indices of blocks are not negative. (A block behind the tensor is
      all padding.)

    Example: see `coremesh.program`
  }];
  let arguments = (ins AnyRankedTensor:$tensor, FlatSymbolRefAttr:$buffer,
                       AffineMapAttr:$index, AffineMapAttr:$block,
                       DefaultValuedAttr<CoreMesh_Order, "Order::linear">:$order);
  let assemblyFormat = [{
    $tensor `in` custom<Slot>($buffer, $index) `block` `` custom<Block>($block)
    `` custom<Order>($order) attr-dict `:` type($tensor)
  }];
}

def CoreMesh_CollectOp : CoreMesh_ProgramPartOp<"collect", [
    MemoryEffects<[MemRead]>, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "the tensor whose tiles lie in slots";
  let description = [{
    The inverse of `coremesh.place`, after the program has run; padding is cut
    off. A core that holds several blocks names a slot for each:
    `@A[0] block(y, 2 * x), @A[1] block(y, 2 * x + 1)`. Of slots with one block
    any may be read: they hold equal tiles.

    - `collect_c1`: there is a slot, and buffers are those of the program.
    - `collect_c2`: slots are of their buffers on every core.
    - `collect_c3`: the tensor has the buffers' element type and rank; their tiles
      have one type; each `block` has an expression of y and x per dimension.
    - `collect_c4`: indices of blocks are not negative, and each block of the tensor
      lies on a core.

    Example: see `coremesh.program`
  }];
  let arguments = (ins FlatSymbolRefArrayAttr:$buffers, AffineMapArrayAttr:$indices,
                       AffineMapArrayAttr:$blocks,
                       DefaultValuedAttr<CoreMesh_Order, "Order::linear">:$order);
  let results = (outs AnyRankedTensor:$tensor);
  let assemblyFormat = [{
    custom<Pieces>($buffers, $indices, $blocks) `` custom<Order>($order)
    attr-dict `:` type($tensor)
  }];
}

#endif // TILEWRIGHT_CORE_MESH_PROGRAM_OPS
