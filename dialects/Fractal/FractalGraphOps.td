//===- FractalGraphOps.td - what depends on what ---------------*- tablegen -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_FRACTAL_GRAPH_OPS
#define TILEWRIGHT_FRACTAL_GRAPH_OPS

include "dialects/Fractal/FractalComputeOps.td"
include "mlir/IR/RegionKindInterface.td"
include "mlir/IR/SymbolInterfaces.td"

// Reads of buffers, in parallel lists: which value each is a piece of, the map
// to the buffer's levels, the condition (a set, or `unit` for none), and
// whether a run chooses the element.
class Fractal_ReadingOp<string mnemonic, list<Trait> traits = []>
    : Fractal_Op<mnemonic, traits> {
  dag reads = (ins Variadic<AnyType>:$sources, DenseI64ArrayAttr:$targets,
                   AffineMapArrayAttr:$maps, ArrayAttr:$conditions,
                   DenseBoolArrayAttr:$indirect);
  code readAccess = [{
    ::mlir::AffineMap getMap(int64_t read) {
      return ::llvm::cast<::mlir::AffineMapAttr>(getMaps()[read]).getValue();
    }
    /// None where the read has no condition.
    ::std::optional<::mlir::IntegerSet> getCondition(int64_t read) {
      auto set = ::llvm::dyn_cast<::mlir::IntegerSetAttr>(getConditions()[read]);
      return set ? ::std::optional(set.getValue()) : ::std::nullopt;
    }
  }];
  let hasVerifier = 1;
}

def Fractal_GraphOp : Fractal_Op<"graph", [
    IsolatedFromAbove, SingleBlock, Symbol,
    DeclareOpInterfaceMethods<RegionKindInterface>]> {
  let summary = "what a program of lists computes, reads and waits for";
  let description = [{
    The task dependence graph of a function. Its block arguments and constants,
    and what blocks write, are *buffers*: lists (or a tensor) of which an index
    names one leaf. `fractal.block` ops are nested loops over them. The graph is
    acyclic but for one case: a block may read what it has itself written, in an
    earlier iteration. It is an analysis beside the function, not a program that
    runs. `symbols` names the lengths and offsets that only a run knows; all maps
    and sets in the graph have these as their symbols. `wide`, `deep` and `refused`
    say which blocks may become one (`fractal-find-merges`); blocks are counted from
    0.

    - `graph_c1`: `inputs` has one name for each block argument.

    Example:

    ```mlir
    fractal.graph @f_graph inputs ["xs"] symbols ["length of xs"] {
    ^bb0(%xs: !fractal.array<[?] of tensor<8xf32>>):
      %zero = arith.constant dense<0.0> : tensor<8xf32>
      %hs = fractal.block ["scan left"] to affine_map<(d0)[s0] -> (s0)>
          in affine_set<(d0)[s0] : (d0 >= 0, s0 - d0 - 1 >= 0)>
          reads (%zero for 0 at affine_map<(d0)[s0] -> ()> where affine_set<(d0)[s0] : (d0 == 0)> : tensor<8xf32>,
                 %hs for 0 at affine_map<(d0)[s0] -> (d0 - 1)> where affine_set<(d0)[s0] : (d0 - 1 >= 0)>
                     : !fractal.array<[?] of tensor<8xf32>>,
                 %xs for 1 at affine_map<(d0)[s0] -> (d0)> : !fractal.array<[?] of tensor<8xf32>>)
          writes [affine_map<(d0)[s0] -> (d0)>] -> !fractal.array<[?] of tensor<8xf32>> {
      ^bb0(%h: tensor<8xf32>, %x: tensor<8xf32>):
        %n = arith.addf %h, %x : tensor<8xf32>
        fractal.yield %n : tensor<8xf32>
      } {distances = [array<i64: 1>]}
      fractal.outputs (%hs for 0 at affine_map<(d0)[s0] -> (d0)> : !fractal.array<[?] of tensor<8xf32>>)
    }
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, StrArrayAttr:$inputs,
                       StrArrayAttr:$symbols, OptionalAttr<ArrayAttr>:$wide,
                       OptionalAttr<ArrayAttr>:$deep,
                       OptionalAttr<StrArrayAttr>:$refused);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $sym_name `inputs` $inputs `symbols` $symbols $body attr-dict
  }];
  let hasVerifier = 1;
}

def Fractal_BlockOp : Fractal_ReadingOp<"block", [
    SingleBlock, RecursiveMemoryEffects,
    ParentOneOf<["::tilewright::fractal::GraphOp"]>]> {
  let summary = "nested loops around a leaf computation";
  let description = [{
    Runs its body once for each point of its domain. A dimension is a `map`
    (iterations are independent), or carries a state: `fold left`, `fold right`,
    `scan left`, `scan right`, or `reduce`, whose states may be combined in any
    bracketing. Iterations in lexicographic order, `right` ones from the last,
    compute what the program says; `distances` say what other orders are right.

    A read is a piece of the value of block argument `for`: where `where` holds,
    the leaf `at` that place of a buffer. Dimensions after those of the block are
    levels of a list that the body takes whole. A run chooses the element of an
    `indirect` read: the map says what it may be. The domain is exact, except
    that a ragged level counts with its longest list.

    Attributes that passes add: `distances` (and `nonuniform`, if these are not
    all), `region_domains` and `region_reads` (`fractal-split-regions`),
    `schedule`, `schedule_distances`, `hyperplanes` and bounds
    (`fractal-find-wavefronts`).

    - `block_c1`: a kind is one of the six.
    - `block_c2`: extents, domain and writes have a dimension per kind, and the
      graph's symbols; there is an extent per kind.
    - `block_c3`: there are a target, a map, a condition and a mark per read.
    - `block_c4`: the target is a block argument; map and condition have the
      block's dimensions, or these and more; the map has no more results than an
      array has levels and its leaf dimensions.
    - `block_c5`: what is read stands before the block, or is its own result.
    - `block_c6`: a result has a level per dimension, then those of the yielded
      value, and its leaf.

    Example: see `fractal.graph`.
  }];
  let arguments = !con((ins StrArrayAttr:$kinds, AffineMapAttr:$extents,
                            IntegerSetAttr:$domain), reads,
                       (ins AffineMapArrayAttr:$writes,
                            OptionalAttr<ArrayAttr>:$distances,
                            UnitAttr:$nonuniform,
                            OptionalAttr<ArrayAttr>:$region_domains,
                            OptionalAttr<ArrayAttr>:$region_reads,
                            OptionalAttr<AffineMapAttr>:$schedule,
                            OptionalAttr<ArrayAttr>:$schedule_distances,
                            OptionalAttr<AffineMapAttr>:$hyperplanes,
                            OptionalAttr<AffineMapArrayAttr>:$schedule_lower,
                            OptionalAttr<AffineMapArrayAttr>:$schedule_upper,
                            OptionalAttr<ArrayAttr>:$region_lower,
                            OptionalAttr<ArrayAttr>:$region_upper));
  let results = (outs Variadic<AnyType>:$buffers);
  let regions = (region SizedRegion<1>:$body);
  let builders = [
    // Without what passes add.
    OpBuilder<(ins "::mlir::TypeRange":$buffers, "::mlir::ArrayAttr":$kinds,
                   "::mlir::AffineMap":$extents, "::mlir::IntegerSet":$domain,
                   "::mlir::ValueRange":$sources,
                   "::llvm::ArrayRef<int64_t>":$targets,
                   "::mlir::ArrayAttr":$maps, "::mlir::ArrayAttr":$conditions,
                   "::llvm::ArrayRef<bool>":$indirect,
                   "::mlir::ArrayAttr":$writes), [{
      build($_builder, $_state, buffers, kinds, extents, domain, sources,
            targets, maps, conditions, indirect, writes, nullptr, false,
            nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr,
            nullptr, nullptr);
    }]>,
  ];
  let extraClassDeclaration = readAccess # [{
    unsigned getNumLoops() { return getKinds().size(); }
    /// Whether a read is of what the block itself writes.
    bool isOwn(int64_t read) {
      return getSources()[read].getDefiningOp() == getOperation();
    }
  }];
  let assemblyFormat = [{
    $kinds `to` $extents `in` $domain
    `reads` custom<Reads>($sources, type($sources), $targets, $maps, $conditions, $indirect)
    `writes` $writes (`->` type($buffers)^)? $body attr-dict
  }];
}

def Fractal_OutputsOp : Fractal_ReadingOp<"outputs", [
    Pure, Terminator, ParentOneOf<["::tilewright::fractal::GraphOp"]>]> {
  let summary = "where the results of the function are";
  let description = [{
    Reads as those of a block: what result `for` of the function is, by its
    levels.

    - `outputs_c1`: there are a target, a map, a condition and a mark per read.

    Example: see `fractal.graph`.
  }];
  let arguments = reads;
  let extraClassDeclaration = readAccess;
  let assemblyFormat = [{
    custom<Reads>($sources, type($sources), $targets, $maps, $conditions, $indirect) attr-dict
  }];
}

#endif // TILEWRIGHT_FRACTAL_GRAPH_OPS
