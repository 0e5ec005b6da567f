//===- FractalInterfaces.td - what access ops have in common ---*- tablegen -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_FRACTAL_INTERFACES
#define TILEWRIGHT_FRACTAL_INTERFACES

include "mlir/IR/OpBase.td"

def Fractal_AccessOpInterface : OpInterface<"AccessOpInterface"> {
  let cppNamespace = "::tilewright::fractal";
  let description = [{
    An op with one result that reads its source elsewhere: nothing is computed,
    and nothing needs memory. Who reads the result at an index reads the source
    where the map says.
  }];
  let methods = [
    InterfaceMethod<"What is read.", "::mlir::Value", "getSource">,
    InterfaceMethod<[{
      Leading levels of the result -> leading levels of the source; further
      levels of both are the same. Symbols: the op's operands of type index, in
      order, and after them, in maps that need it, the length of the source's
      outermost list. Null where the access is not affine: a flatten of lists
      whose length is not known.
    }], "::mlir::AffineMap", "getAccessMap">,
    InterfaceMethod<
      "What stands where the map leaves the source; null where it never does.",
      "::mlir::Value", "getFill", (ins), [{}], [{ return {}; }]>,
  ];
}

#endif // TILEWRIGHT_FRACTAL_INTERFACES
