//===- CoreMeshDialect.td - the coremesh dialect -----------*- tablegen -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_CORE_MESH_DIALECT
#define TILEWRIGHT_CORE_MESH_DIALECT

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/OpBase.td"

def CoreMesh_Dialect : Dialect {
  let name = "coremesh";
  let cppNamespace = "::tilewright::coremesh";
  let summary = "Programs for a mesh of cores";
  let description = [{
    A grid of cores, each with a small memory of its own, that send each other
    tiles along rows and columns (Cerebras WSE, Tesla Dojo, Tenstorrent: the PLMR
    machines of WaferLLM, OSDI 2025).

    There are two levels. Of *collectives*, values are tensors whose type says
    where they lie (`#coremesh.layout`), and ops move, reduce and multiply them:
    what is computed, with an algorithm by name.

    A *program* (`coremesh.program`) says what each core does: one list of instructions for
    all, symbolic in where a core stands, with buffers, routes, and asynchronous
    communication. Its ops are one by one what the simulator takes.

    Affine expressions name the row `y`, the column `x`, and the indices of the
    loops around, `i` the outermost, then `j`, `k`, `l`; those of routes `p`, the
    position along the route's axis, `q`, that along the other axis, and the
    loops. Positions count cores as they stand (`linear`), or along the folded
    ring (`ring`), in which neighbours are two hops apart: position 0, 1, 2, ...
    of a line of five cores is core 0, 2, 4, 3, 1.
  }];
  let extraClassDeclaration = [{
    void registerAttributes();
    void registerTypes();
  }];
  let useDefaultAttributePrinterParser = 1;
  let useDefaultTypePrinterParser = 1;
}

class CoreMesh_Op<string mnemonic, list<Trait> traits = []>
    : Op<CoreMesh_Dialect, mnemonic, traits>;

class CoreMesh_Enum<string name, string summary, list<I32EnumAttrCase> cases>
    : I32EnumAttr<name, summary, cases> {
  let cppNamespace = "::tilewright::coremesh";
}

def CoreMesh_Order : CoreMesh_Enum<"Order", "how positions are counted", [
    I32EnumAttrCase<"linear", 0>, I32EnumAttrCase<"ring", 1>]>;

def CoreMesh_Axis : CoreMesh_Enum<"Axis", "an axis of the grid of cores", [
    I32EnumAttrCase<"y", 0>, I32EnumAttrCase<"x", 1>]>;

def CoreMesh_Combine : CoreMesh_Enum<"Combine", "how two numbers become one", [
    I32EnumAttrCase<"add", 0>, I32EnumAttrCase<"max", 1>,
    I32EnumAttrCase<"min", 2>, I32EnumAttrCase<"umax", 3>,
    I32EnumAttrCase<"umin", 4>, I32EnumAttrCase<"mul", 5>]>;

def CoreMesh_Overhead : CoreMesh_Enum<"Overhead", "a fixed cost of switching tasks", [
    I32EnumAttrCase<"none", 0>, I32EnumAttrCase<"round", 1>,
    I32EnumAttrCase<"collective", 2>]>;

#endif // TILEWRIGHT_CORE_MESH_DIALECT
