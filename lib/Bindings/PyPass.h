//===- PyPass.h - a pass whose body is a Python callable -*- C++ -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_BINDINGS_PYPASS_H
#define TILEWRIGHT_BINDINGS_PYPASS_H

#include "mlir/Bindings/Python/Nanobind.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Pass/Pass.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace tilewright {

/// A strong reference to a Python callable that any thread may copy or drop:
/// the last owner takes the GIL to release it, and `clear` drops it early (at
/// interpreter exit, when releasing it later would be too late).
class PyCallable {
public:
  explicit PyCallable(nanobind::object callable);
  ~PyCallable();
  PyCallable(const PyCallable &) = delete;
  PyCallable &operator=(const PyCallable &) = delete;

  /// Needs the GIL. Null after `clear`.
  nanobind::handle get() const { return callable; }
  void clear();

private:
  nanobind::handle callable;
};

/// One option of a Python pass; the type of the default is the option's type.
struct OptionSpec {
  using Value = std::variant<bool, int64_t, double, std::string,
                             std::vector<int64_t>, std::vector<std::string>>;
  std::string name;
  std::string help;
  Value defaultValue;
};

/// All that MLIR has to know of a Python pass. Immutable once registered and
/// shared by every instance of the pass.
struct PyPassSpec {
  std::string argument;
  std::string summary;
  /// The op that the pass runs on; any op if not set.
  std::optional<std::string> anchor;
  std::vector<std::string> dialects;
  std::vector<OptionSpec> options;
  std::unique_ptr<PyCallable> callable;
};

/// Makes a new pass instance with default options.
std::unique_ptr<mlir::Pass>
createPyPass(std::shared_ptr<const PyPassSpec> spec);

/// An exception that a Python pass raised, with the message of its diagnostic.
using PyFailure = std::pair<std::string, nanobind::object>;

/// Returns and forgets the exceptions that Python passes raised while they ran
/// in `context`. Needs the GIL.
std::vector<PyFailure> takePyFailures(mlir::MLIRContext *context);

/// Declares that MLIR contexts are made by C++ from now on (in a tool's main):
/// a Python object that wraps one must never destroy it.
void setContextsOwnedByCpp();

} // namespace tilewright

#endif // TILEWRIGHT_BINDINGS_PYPASS_H
