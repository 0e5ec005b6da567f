//===- CoreMeshOps.td - entry point of the bindings --------*- tablegen -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_BINDINGS_CORE_MESH_OPS
#define TILEWRIGHT_BINDINGS_CORE_MESH_OPS

include "dialects/CoreMesh/CoreMeshOps.td"

#endif // TILEWRIGHT_BINDINGS_CORE_MESH_OPS
