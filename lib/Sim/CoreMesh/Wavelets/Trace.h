//===----------------------------------------------------------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the engines of chosen cores did, and when.
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_LIB_SIM_COREMESH_WAVELETS_TRACE_H
#define TILEWRIGHT_LIB_SIM_COREMESH_WAVELETS_TRACE_H

#include "lib/Sim/CoreMesh/Wavelets/Wavelets.h"

namespace twmesh::wavelets {

/// Events of one core, in the order of their ends, into room that a caller has.
class Trace {
public:
  Trace(const twmesh_program &program, twmesh_trace &into)
      : program(&program), into(&into) {}

  void add(const twmesh_instruction &what, int32_t engine, int64_t started,
           int64_t begin, int64_t end) {
    if (into->count < into->room)
      into->event[into->count] = {&what - program->instructions, engine,
                                  started, begin, end};
    ++into->count;
  }

private:
  const twmesh_program *program;
  twmesh_trace *into;
};

} // namespace twmesh::wavelets

#endif // TILEWRIGHT_LIB_SIM_COREMESH_WAVELETS_TRACE_H
