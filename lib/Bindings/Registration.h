//===- Registration.h - parts of the _tilewright extension -*- C++ -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_BINDINGS_REGISTRATION_H
#define TILEWRIGHT_BINDINGS_REGISTRATION_H

#include "mlir/Bindings/Python/Nanobind.h"

#include <vector>

namespace tilewright {

/// One part of the `_tilewright` extension module. A file in this folder adds
/// bindings by a static instance, so that no central list has to name it:
///
///   static ModulePart part([](nanobind::module_ &m) { m.def("f", ...); });
struct ModulePart {
  using Populate = void (*)(nanobind::module_ &);

  explicit ModulePart(Populate populate) { all().push_back(populate); }

  static std::vector<Populate> &all() {
    static std::vector<Populate> parts;
    return parts;
  }
};

} // namespace tilewright

#endif // TILEWRIGHT_BINDINGS_REGISTRATION_H
