//===- FractalComputeOps.td - functions over lists -------------*- tablegen -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_FRACTAL_COMPUTE_OPS
#define TILEWRIGHT_FRACTAL_COMPUTE_OPS

include "dialects/Fractal/FractalTypes.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

// A region of one block that is run for elements of lists. It may use values
// from above.
class Fractal_ComputeOp<string mnemonic, list<Trait> traits = []>
    : Fractal_Op<mnemonic, !listconcat([
          RecursiveMemoryEffects, RecursivelySpeculatable, SingleBlock,
          SingleBlockImplicitTerminator<"::tilewright::fractal::YieldOp">,
          DeclareOpInterfaceMethods<OpAsmOpInterface,
                                    ["getAsmBlockArgumentNames"]>], traits)> {
  let regions = (region SizedRegion<1>:$body);
  code bodyAccess = [{
    ::mlir::Block &getBodyBlock() { return getBody().front(); }
    ::tilewright::fractal::YieldOp getYield();
    /// Length of all lists, ShapedType::kDynamic where only a run knows it.
    int64_t getLength();
  }];
  let extraClassDeclaration = bodyAccess;
  let extraClassDefinition = [{
    ::tilewright::fractal::YieldOp $cppClass::getYield() {
      return ::llvm::cast<::tilewright::fractal::YieldOp>(
          getBodyBlock().getTerminator());
    }
  }];
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
}

// A state goes through lists from one end to the other.
class Fractal_RecurrenceOp<string mnemonic> : Fractal_ComputeOp<mnemonic, [
    AttrSizedOperandSegments]> {
  let arguments = (ins Variadic<Fractal_Element>:$inits,
                       Variadic<Fractal_ArrayType>:$arrays, UnitAttr:$right);
  let extraClassDeclaration = bodyAccess # [{
    bool isLeft() { return !getRight(); }
    ::llvm::MutableArrayRef<::mlir::BlockArgument> getStates() {
      return getBodyBlock().getArguments().take_front(getInits().size());
    }
    ::llvm::MutableArrayRef<::mlir::BlockArgument> getElements() {
      return getBodyBlock().getArguments().drop_front(getInits().size());
    }
  }];
}

def Fractal_MapOp : Fractal_ComputeOp<"map"> {
  let summary = "a function of each element";
  let description = [{
    Several lists are read in step, element i of one with element i of the
    others. Result k is the list of what the region yields as value k. Elements
    are independent of each other.

    - `map_c1`: there is at least one array, and no two known lengths of the
      outermost lists differ.
    - `map_c2`: there is one block argument per array, of the array's element type.
    - `map_c3`: there is one result per yielded value, compatible with a list of
      its type as long as the arrays.

    Example:

    ```mlir
    func.func @f(%xs: !fractal.array<[4, ?] of tensor<8xf32>>, %ys: !fractal.array<[4] of tensor<8xf32>>)
        -> !fractal.array<[4, ?] of tensor<8xf32>> {
      %r = fractal.map (%x = %xs, %y = %ys)
          : (!fractal.array<[4, ?] of tensor<8xf32>>, !fractal.array<[4] of tensor<8xf32>>)
          -> !fractal.array<[4, ?] of tensor<8xf32>> {
        %s = fractal.map (%a = %x) : (!fractal.array<[?] of tensor<8xf32>>) -> !fractal.array<[?] of tensor<8xf32>> {
          %0 = arith.addf %a, %y : tensor<8xf32>
          fractal.yield %0 : tensor<8xf32>
        }
        fractal.yield %s : !fractal.array<[?] of tensor<8xf32>>
      }
      return %r : !fractal.array<[4, ?] of tensor<8xf32>>
    }
    ```
  }];
  let arguments = (ins Variadic<Fractal_ArrayType>:$arrays);
  let results = (outs Variadic<Fractal_ArrayType>:$results);
  let extraClassDeclaration = bodyAccess # [{
    ::llvm::MutableArrayRef<::mlir::BlockArgument> getElements() {
      return getBodyBlock().getArguments();
    }
  }];
}

def Fractal_ScanOp : Fractal_RecurrenceOp<"scan"> {
  let summary = "all states of a recurrence";
  let description = [{
    The region makes the next states from the last ones and the next elements,
    beginning with the inits. `left` goes from the first element to the last;
    `right` from the last to the first. Result k is the list of state k after
    each element, in the order of the elements; the init is not in it.

    - `scan_c1`: there is at least one state, and at least one array; no two
      known lengths of the outermost lists differ.
    - `scan_c2`: block arguments are the states, of the types of the inits, then
      an element of each array.
    - `scan_c3`: the yielded values have the types of the inits.
    - `scan_c4`: there is one result per state, compatible with a list of its
      type as long as the arrays.

    Example:

    ```mlir
    func.func @f(%xs: !fractal.array<[?] of tensor<8xf32>>, %h0: tensor<8xf32>)
        -> !fractal.array<[?] of tensor<8xf32>> {
      %hs = fractal.scan left (%h = %h0) over (%x = %xs)
          : (tensor<8xf32>, !fractal.array<[?] of tensor<8xf32>>) -> !fractal.array<[?] of tensor<8xf32>> {
        %0 = arith.addf %h, %x : tensor<8xf32>
        %1 = math.tanh %0 : tensor<8xf32>
        fractal.yield %1 : tensor<8xf32>
      }
      return %hs : !fractal.array<[?] of tensor<8xf32>>
    }
    ```
  }];
  let results = (outs Variadic<Fractal_ArrayType>:$results);
}

def Fractal_FoldOp : Fractal_RecurrenceOp<"fold"> {
  let summary = "the last state of a recurrence";
  let description = [{
    As `scan`, without the states in between. Lists without an element give the
    inits.

    - `fold_c1`: there is at least one state, and at least one array; no two
      known lengths of the outermost lists differ.
    - `fold_c2`: block arguments are the states, of the types of the inits, then
      an element of each array.
    - `fold_c3`: the yielded values have the types of the inits.
    - `fold_c4`: the results have the types of the inits.

    Example:

    ```mlir
    func.func @f(%xs: !fractal.array<[16] of tensor<8xf32>>, %m0: tensor<8xf32>, %s0: tensor<8xf32>)
        -> (tensor<8xf32>, tensor<8xf32>) {
      %r:2 = fractal.fold right (%m = %m0, %s = %s0) over (%x = %xs)
          : (tensor<8xf32>, tensor<8xf32>, !fractal.array<[16] of tensor<8xf32>>) -> (tensor<8xf32>, tensor<8xf32>) {
        %0 = arith.maximumf %m, %x : tensor<8xf32>
        %1 = arith.addf %s, %x : tensor<8xf32>
        fractal.yield %0, %1 : tensor<8xf32>, tensor<8xf32>
      }
      return %r#0, %r#1 : tensor<8xf32>, tensor<8xf32>
    }
    ```
  }];
  let results = (outs Variadic<Fractal_Element>:$results);
}

def Fractal_ReduceOp : Fractal_ComputeOp<"reduce", [
    AttrSizedOperandSegments]> {
  let summary = "all elements, combined by an associative function";
  let description = [{
    The region combines what lies left with what lies right of it, in any
    bracketing: it is associative, and the inits are its neutral elements, which
    stand for no element at all and may be combined any number of times. The
    order of elements is kept. Block arguments are all lefts, then all rights.

    - `reduce_c1`: there is at least one array, and one init per array; no two
      known lengths of the outermost lists differ.
    - `reduce_c2`: an init has the element type of its array.
    - `reduce_c3`: block arguments are the lefts, then the rights, each of the
      types of the inits.
    - `reduce_c4`: the yielded values have the types of the inits.
    - `reduce_c5`: the results have the types of the inits.

    Example:

    ```mlir
    func.func @f(%xs: !fractal.array<[?] of tensor<8xf32>>, %zero: tensor<8xf32>) -> tensor<8xf32> {
      %r = fractal.reduce (%a, %b = %xs) init (%zero)
          : (!fractal.array<[?] of tensor<8xf32>>, tensor<8xf32>) -> tensor<8xf32> {
        %0 = arith.addf %a, %b : tensor<8xf32>
        fractal.yield %0 : tensor<8xf32>
      }
      return %r : tensor<8xf32>
    }
    ```
  }];
  let arguments = (ins Variadic<Fractal_ArrayType>:$arrays,
                       Variadic<Fractal_Element>:$inits);
  let results = (outs Variadic<Fractal_Element>:$results);
  let extraClassDeclaration = bodyAccess # [{
    ::llvm::MutableArrayRef<::mlir::BlockArgument> getLefts() {
      return getBodyBlock().getArguments().take_front(getInits().size());
    }
    ::llvm::MutableArrayRef<::mlir::BlockArgument> getRights() {
      return getBodyBlock().getArguments().drop_front(getInits().size());
    }
  }];
}

def Fractal_FilterOp : Fractal_ComputeOp<"filter"> {
  let summary = "the elements for which a function holds";
  let description = [{
    In their order. How many these are, only a run knows.

    - `filter_c1`: there is one block argument, of the array's element type.
    - `filter_c2`: the region yields one `tensor<i1>`.
    - `filter_c3`: the result is compatible with the array, and its first length
      is `?`.

    Example:

    ```mlir
    func.func @f(%xs: !fractal.array<[8] of tensor<f32>>, %least: tensor<f32>) -> !fractal.array<[?] of tensor<f32>> {
      %r = fractal.filter (%x = %xs) : (!fractal.array<[8] of tensor<f32>>) -> !fractal.array<[?] of tensor<f32>> {
        %0 = arith.cmpf ogt, %x, %least : tensor<f32>
        fractal.yield %0 : tensor<i1>
      }
      return %r : !fractal.array<[?] of tensor<f32>>
    }
    ```
  }];
  let arguments = (ins Fractal_ArrayType:$array);
  let results = (outs Fractal_ArrayType:$result);
  let extraClassDeclaration = bodyAccess # [{
    ::mlir::BlockArgument getElement() { return getBodyBlock().getArgument(0); }
  }];
}

def Fractal_YieldOp : Fractal_Op<"yield", [
    Pure, Terminator,
    ParentOneOf<["MapOp", "ScanOp", "FoldOp", "ReduceOp", "FilterOp",
                 "RecurseOp", "BlockOp"]>]> {
  let summary = "what a function over elements returns";
  let description = [{
    Example: see `fractal.map`.
  }];
  let arguments = (ins Variadic<Fractal_Element>:$values);
  let builders = [
    OpBuilder<(ins), [{ build($_builder, $_state, ::mlir::ValueRange()); }]>,
  ];
  let assemblyFormat = "attr-dict ($values^ `:` type($values))?";
}

#endif // TILEWRIGHT_FRACTAL_COMPUTE_OPS
