//===- CoreMeshOps.td - all operations of coremesh ---------*- tablegen -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_CORE_MESH_OPS
#define TILEWRIGHT_CORE_MESH_OPS

include "dialects/CoreMesh/CoreMeshCollectiveOps.td"
include "dialects/CoreMesh/CoreMeshInstructionOps.td"
include "dialects/CoreMesh/CoreMeshProductOps.td"
include "dialects/CoreMesh/CoreMeshProgramOps.td"

#endif // TILEWRIGHT_CORE_MESH_OPS
