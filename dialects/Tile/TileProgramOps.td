//===- TileProgramOps.td - tasks on execution units --------*- tablegen -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_TILE_PROGRAM_OPS
#define TILEWRIGHT_TILE_PROGRAM_OPS

include "dialects/Tile/TileKernelOps.td"

def Tile_ProgramOp : Tile_Op<"program", [
    FunctionOpInterface, IsolatedFromAbove, SingleBlock,
    SingleBlockImplicitTerminator<"::tilewright::tile::ReturnOp">]> {
  let summary = "tasks of several kernels, packed on execution units";
  let description = [{
    The body is the script of all units together: each unit runs, in order, the
    operations that name it, at the same time as the others; signals and waits
    are all that orders units. A program is started by `tile.launch` without a
    grid.

    - `program_c1`: the function type has memrefs and scalars as inputs and no
      results.
    - `program_c2`: there is at least one unit.
    - `program_c3`: the body holds `tile.place`, `tile.signal`, `tile.wait` and
      operations without memory effects only.
    - `program_c4`: every unit comes to its end: no wait lasts forever.

    Example:

    ```mlir
    tile.kernel @step(%x: memref<8xf32>) grid(%i) {
      tile.return
    }
    tile.program @two(%x: memref<8xf32>) units 2 {
      tile.place @step tasks [0, 4] of [8] on 0 (%x : memref<8xf32>)
      tile.signal 0 on 0
      tile.place @step tasks [4, 8] of [8] on 1 (%x : memref<8xf32>)
      tile.wait 0 count 1 on 1
      tile.place @step tasks [0, 8] of [8] on 1 (%x : memref<8xf32>)
    }
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name,
                       TypeAttrOf<FunctionType>:$function_type,
                       I64Attr:$units,
                       OptionalAttr<DictArrayAttr>:$arg_attrs,
                       OptionalAttr<DictArrayAttr>:$res_attrs,
                       OptionalAttr<StrAttr>:$sym_visibility);
  let regions = (region SizedRegion<1>:$body);
  let skipDefaultBuilders = 1;
  let builders = [
    // Makes the entry block with all its arguments and leaves it empty.
    OpBuilder<(ins "::llvm::StringRef":$name, "::mlir::FunctionType":$type,
                   "int64_t":$units)>,
  ];
  let extraClassDeclaration = [{
    ::mlir::Region *getCallableRegion() { return &getBody(); }
    ::llvm::ArrayRef<::mlir::Type> getArgumentTypes() {
      return getFunctionType().getInputs();
    }
    ::llvm::ArrayRef<::mlir::Type> getResultTypes() {
      return getFunctionType().getResults();
    }
    ::llvm::LogicalResult verifyType();
  }];
  let hasCustomAssemblyFormat = 1;
  let hasRegionVerifier = 1;
}

class Tile_ProgramStep<string mnemonic, list<Trait> traits = []>
    : Tile_Op<mnemonic, !listconcat(traits, [
          HasParent<"ProgramOp">, MemoryEffects<[MemRead, MemWrite]>])>;

def Tile_PlaceOp : Tile_ProgramStep<"place", [
    DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "runs a range of a kernel's tasks on a unit";
  let description = [{
    `tasks [b, e] of [g0, g1, ...]`: tasks `b <= t < e` of the grid with these
    bounds, counted with the first coordinate varying slowest.

    - `place_c1`: the symbol names a `tile.kernel` with a coordinate per bound.
    - `place_c2`: operands have the types of the kernel's arguments.
    - `place_c3`: `0 <= b <= e <=` the number of tasks of the grid.
    - `place_c4`: the unit is one of the program's.

    Example: see `tile.program`.
  }];
  let arguments = (ins FlatSymbolRefAttr:$kernel, DenseI64ArrayAttr:$tasks,
                       DenseI64ArrayAttr:$grid, I64Attr:$unit,
                       Variadic<AnyType>:$operands);
  let assemblyFormat = [{
    $kernel `tasks` $tasks `of` $grid `on` $unit
    (`(` $operands^ `:` type($operands) `)`)? attr-dict
  }];
  let hasVerifier = 1;
}

def Tile_SignalOp : Tile_ProgramStep<"signal"> {
  let summary = "tells that a unit has come this far";
  let description = [{
    Adds one to the count of `event`, after all that the unit did before.

    - `signal_c1`: the unit is one of the program's.
    - `signal_c2`: `event` is not negative.

    Example: see `tile.program`.
  }];
  let arguments = (ins I64Attr:$event, I64Attr:$unit);
  let assemblyFormat = "$event `on` $unit attr-dict";
  let hasVerifier = 1;
}

def Tile_WaitOp : Tile_ProgramStep<"wait"> {
  let summary = "a unit waits for signals";
  let description = [{
    Holds the unit until the count of `event` is at least `count`.

    - `wait_c1`: the unit is one of the program's.
    - `wait_c2`: `event` is not negative and `count` is positive.

    Example: see `tile.program`.
  }];
  let arguments = (ins I64Attr:$event, I64Attr:$count, I64Attr:$unit);
  let assemblyFormat = "$event `count` $count `on` $unit attr-dict";
  let hasVerifier = 1;
}

#endif // TILEWRIGHT_TILE_PROGRAM_OPS
