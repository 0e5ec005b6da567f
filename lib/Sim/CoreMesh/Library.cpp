//===----------------------------------------------------------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Sim/CoreMesh/Library.h"

static thread_local std::string lastError;

int32_t twmesh::fail(const std::string &reason) {
  lastError = reason;
  return -1;
}

int32_t twmesh_abi_version(void) { return TWMESH_ABI_VERSION; }

const char *twmesh_error(void) { return lastError.c_str(); }
