//===- CoreMeshTypes.td - types of coremesh ----------------*- tablegen -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_CORE_MESH_TYPES
#define TILEWRIGHT_CORE_MESH_TYPES

include "dialects/CoreMesh/CoreMeshDialect.td"

def CoreMesh_TokenType : TypeDef<CoreMesh_Dialect, "Token"> {
  let mnemonic = "token";
  let summary = "that something asynchronous is done";
  let description = [{
    What `coremesh.send`, `coremesh.recv` and `coremesh.relay` return at once;
    `coremesh.wait` waits until what it stands for is done.

    Example:

    ```mlir
    func.func private @f(!coremesh.token)
    ```
  }];
}

#endif // TILEWRIGHT_CORE_MESH_TYPES
