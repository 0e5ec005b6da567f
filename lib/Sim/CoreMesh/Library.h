//===----------------------------------------------------------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What all parts of libtwmesh share: the version of its ABI, and why a call
// failed. Each part has a header of its own beside it.
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_LIB_SIM_COREMESH_LIBRARY_H
#define TILEWRIGHT_LIB_SIM_COREMESH_LIBRARY_H

#include <stdint.h>

#define TWMESH_EXPORT __attribute__((visibility("default")))

/// Version of this ABI, of all parts together.
#define TWMESH_ABI_VERSION 2

#ifdef __cplusplus
#include <string>

namespace twmesh {
/// Keeps the reason for which the current call of this thread fails; returns
/// -1, what such a call returns.
int32_t fail(const std::string &reason);
} // namespace twmesh

extern "C" {
#endif

TWMESH_EXPORT int32_t twmesh_abi_version(void);

/// Why the last failed call of this thread failed.
TWMESH_EXPORT const char *twmesh_error(void);

#ifdef __cplusplus
}
#endif

#endif // TILEWRIGHT_LIB_SIM_COREMESH_LIBRARY_H
