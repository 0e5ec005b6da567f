//===----------------------------------------------------------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_LIB_RUNTIME_CPUS_H
#define TILEWRIGHT_LIB_RUNTIME_CPUS_H

namespace tilewright::runtime {

/// CPUs in the affinity mask, reduced to the cgroup's quota; at least 1.
int availableCpus();

/// Asks the kernel, once per process, to let its threads use the registers of
/// AMX. Returns 0, or what errno was.
int useMatrixUnit();

} // namespace tilewright::runtime

#endif // TILEWRIGHT_LIB_RUNTIME_CPUS_H
