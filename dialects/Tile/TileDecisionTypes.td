//===- TileDecisionTypes.td - what decisions may be --------*- tablegen -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_TILE_DECISION_TYPES
#define TILEWRIGHT_TILE_DECISION_TYPES

/// What an attribute may be.
class Tile_DecisionKind<string cppType, string predicate, string what,
                        string python> {
  string storage = cppType;   // class of C++ that an accessor returns
  string check = predicate;   // C++, of `attr`
  string must = what;         // ends "must be ..."
  string accessor = python;   // class of tilewright.ir.decision
}

def Tile_Flag : Tile_DecisionKind<"::mlir::UnitAttr",
    "::llvm::isa<::mlir::UnitAttr>(attr)", "a unit", "Flag">;
def Tile_Integer : Tile_DecisionKind<"::mlir::IntegerAttr",
    "isInteger(attr)", "an i64", "Integer">;
def Tile_Terms : Tile_DecisionKind<"::mlir::IntegerAttr",
    "isTerms(attr)", "an i64: 0, or a multiple of 32", "Integer">;
def Tile_Integers : Tile_DecisionKind<"::mlir::DenseI64ArrayAttr",
    "::llvm::isa<::mlir::DenseI64ArrayAttr>(attr)", "an array<i64: ...>",
    "Integers">;
def Tile_Text : Tile_DecisionKind<"::mlir::StringAttr",
    "::llvm::isa<::mlir::StringAttr>(attr)", "a string", "Text">;
def Tile_Dictionary : Tile_DecisionKind<"::mlir::DictionaryAttr",
    "::llvm::isa<::mlir::DictionaryAttr>(attr)", "a dictionary", "Dictionary">;
def Tile_Sizes : Tile_DecisionKind<"RTileAttr",
    "::llvm::isa<RTileAttr>(attr)", "a #tile.rtile<...>", "Sizes">;
def Tile_Machine : Tile_DecisionKind<"DeviceAttr",
    "::llvm::isa<DeviceAttr>(attr)", "a #tile.device<...>", "Anything">;
def Tile_Layouts : Tile_DecisionKind<"::mlir::ArrayAttr",
    "isArrayOf<LayoutAttr, ::mlir::UnitAttr>(attr)",
    "an array of #tile.layout<...> or unit", "Array">;
def Tile_SizesOrUnits : Tile_DecisionKind<"::mlir::ArrayAttr",
    "isArrayOf<RTileAttr, ::mlir::UnitAttr>(attr)",
    "an array of #tile.rtile<...> or unit", "Array">;
def Tile_IntegerLists : Tile_DecisionKind<"::mlir::ArrayAttr",
    "isArrayOf<::mlir::DenseI64ArrayAttr>(attr)",
    "an array of array<i64: ...>", "Array">;
def Tile_Texts : Tile_DecisionKind<"::mlir::ArrayAttr",
    "isArrayOf<::mlir::StringAttr>(attr)", "an array of strings", "Texts">;
def Tile_Parameters : Tile_DecisionKind<"::mlir::ArrayAttr",
    "isParameters(attr)", "an array of dictionaries with a string kind",
    "Array">;
def Tile_Box : Tile_DecisionKind<"::mlir::DictionaryAttr",
    "hasIntegers(attr, {\"map\", \"slots\"})",
    "a dictionary with the i64 map and slots", "Dictionary">;
def Tile_FlagOrInteger : Tile_DecisionKind<"::mlir::Attribute",
    "::llvm::isa<::mlir::UnitAttr>(attr) || isInteger(attr)",
    "a unit or an i64", "Anything">;
def Tile_FlagOrDictionary : Tile_DecisionKind<"::mlir::Attribute",
    "::llvm::isa<::mlir::UnitAttr, ::mlir::DictionaryAttr>(attr)",
    "a unit or a dictionary", "Anything">;

/// What a decision may stand on: names of operations, `dialect.` for all of a
/// dialect, `argument` and `result` of a function.
class Tile_Carriers<list<string> carriers> { list<string> names = carriers; }
/// Operations on tensors that a plan is made for.
def Tile_OnTensors : Tile_Carriers<["linalg.", "tensor."]>;
/// A kernel, in each form that it takes.
def Tile_OnKernel
    : Tile_Carriers<["tile.kernel", "gpu.func", "func.func", "llvm.func"]>;
/// The same, and the roots of nests, which a plan writes it on.
def Tile_OnRootAndKernel
    : Tile_Carriers<["linalg.", "tensor.", "tile.kernel", "gpu.func",
                     "func.func", "llvm.func"]>;
def Tile_OnFunction : Tile_Carriers<["func.func", "llvm.func"]>;
def Tile_OnModule : Tile_Carriers<["builtin.module"]>;
def Tile_OnArgument : Tile_Carriers<["argument"]>;
def Tile_OnRecurrence : Tile_Carriers<["fractal.fold", "fractal.scan"]>;
class Tile_On<list<string> carriers> : Tile_Carriers<carriers>;

#endif // TILEWRIGHT_TILE_DECISION_TYPES
