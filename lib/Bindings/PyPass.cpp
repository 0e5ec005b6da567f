//===- PyPass.cpp - a pass whose body is a Python callable -*- C++ -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// A Python pass is a full citizen: its options are real pass options (so that
// --help, textual pipelines, reproducers and pipeline dumps show them), it may
// be nested, cloned for threads, timed and printed. The GIL is held only while
// the Python body runs: whoever runs a pipeline must have released it.

#include "lib/Bindings/PyPass.h"

#include "lib/Bindings/PyPassDialects.h"
#include "mlir/Bindings/Python/NanobindAdaptors.h"
#include "mlir/CAPI/IR.h"
#include "mlir/IR/Diagnostics.h"

#include <atomic>
#include <mutex>
#include <set>

namespace nb = nanobind;
using namespace mlir;

namespace tilewright {

//===----------------------------------------------------------------------===//
// PyCallable
//===----------------------------------------------------------------------===//

PyCallable::PyCallable(nb::object object) : callable(object.release()) {}

PyCallable::~PyCallable() {
  if (!callable.is_valid() || !Py_IsInitialized())
    return;
  nb::gil_scoped_acquire gil;
  callable.dec_ref();
}

void PyCallable::clear() {
  nb::gil_scoped_acquire gil;
  nb::handle dropped = std::exchange(callable, nb::handle());
  dropped.dec_ref();
}

//===----------------------------------------------------------------------===//
// Failures and contexts
//===----------------------------------------------------------------------===//

namespace {

/// Guarded by the GIL. Leaked on purpose: a tool may leave through exit().
std::vector<std::pair<MLIRContext *, PyFailure>> &failures() {
  static auto *all = new std::vector<std::pair<MLIRContext *, PyFailure>>();
  return *all;
}

std::atomic<bool> contextsOwnedByCpp = false;

/// A Python wrapper of a context destroys the context when it dies. Where C++
/// owns the contexts, each wrapper is therefore kept alive for ever.
void keepContextWrapper(MLIRContext *context, nb::handle operation) {
  if (!contextsOwnedByCpp)
    return;
  static auto *kept = new std::set<MLIRContext *>(); // guarded by the GIL
  nb::object wrapper = operation.attr("context");
  if (kept->insert(context).second)
    wrapper.release();
}

} // namespace

std::vector<PyFailure> takePyFailures(MLIRContext *context) {
  std::vector<PyFailure> taken;
  auto &all = failures();
  for (auto &[owner, failure] : all)
    if (owner == context)
      taken.push_back(std::move(failure));
  llvm::erase_if(all,
                 [&](const auto &entry) { return entry.first == context; });
  return taken;
}

void setContextsOwnedByCpp() { contextsOwnedByCpp = true; }

//===----------------------------------------------------------------------===//
// Options
//===----------------------------------------------------------------------===//

namespace {

struct PyOption {
  virtual ~PyOption() = default;
  virtual nb::object value() const = 0;
};

template <typename T> struct ScalarOption : PyOption {
  ScalarOption(Pass &pass, const OptionSpec &spec, const T &init)
      : option(pass, spec.name, llvm::cl::desc(spec.help),
               llvm::cl::init(init)) {}
  nb::object value() const override { return nb::cast(option.getValue()); }
  Pass::Option<T> option;
};

template <typename T> struct ListOption : PyOption {
  ListOption(Pass &pass, const OptionSpec &spec, const std::vector<T> &init)
      : option(pass, spec.name, llvm::cl::desc(spec.help),
               llvm::cl::list_init<T>(init)) {}
  nb::object value() const override {
    nb::list values;
    for (const T &element : option)
      values.append(nb::cast(element));
    return nb::tuple(values);
  }
  Pass::ListOption<T> option;
};

template <typename T>
std::unique_ptr<PyOption> makeOption(Pass &pass, const OptionSpec &spec,
                                     const T &init) {
  return std::make_unique<ScalarOption<T>>(pass, spec, init);
}
template <typename T>
std::unique_ptr<PyOption> makeOption(Pass &pass, const OptionSpec &spec,
                                     const std::vector<T> &init) {
  return std::make_unique<ListOption<T>>(pass, spec, init);
}

//===----------------------------------------------------------------------===//
// PyPass
//===----------------------------------------------------------------------===//

/// What the Python side says about a failed run.
struct Failure {
  std::string message;
  std::optional<Location> location;
  std::vector<std::string> notes;
};

class PyPass : public Pass {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(PyPass)

  explicit PyPass(std::shared_ptr<const PyPassSpec> spec)
      : Pass(TypeID::get<PyPass>(), anchorOf(*spec)), spec(std::move(spec)) {
    for (const OptionSpec &option : this->spec->options)
      options.push_back(std::visit(
          [&](const auto &init) { return makeOption(*this, option, init); },
          option.defaultValue));
  }

  StringRef getName() const override { return spec->argument; }
  StringRef getArgument() const override { return spec->argument; }
  StringRef getDescription() const override { return spec->summary; }

  void getDependentDialects(DialectRegistry &registry) const override {
    for (const std::string &name : spec->dialects)
      insertDialect(name, registry);
  }

  bool canScheduleOn(RegisteredOperationName name) const override {
    return !spec->anchor || name.getStringRef() == *spec->anchor;
  }

  void runOnOperation() override {
    std::optional<Failure> failure = runPython();
    if (!failure)
      return;
    // The GIL is free here: a diagnostic handler may want it.
    Location location = failure->location.value_or(getOperation()->getLoc());
    {
      InFlightDiagnostic diagnostic = emitError(location, failure->message);
      for (const std::string &note : failure->notes)
        diagnostic.attachNote() << note;
    }
    signalPassFailure();
  }

protected:
  std::unique_ptr<Pass> clonePass() const override {
    return std::make_unique<PyPass>(spec);
  }

private:
  static std::optional<StringRef> anchorOf(const PyPassSpec &spec) {
    if (!spec.anchor)
      return std::nullopt;
    return StringRef(*spec.anchor);
  }

  std::optional<Failure> runPython();
  std::optional<Failure> callBody();

  std::shared_ptr<const PyPassSpec> spec;
  std::vector<std::unique_ptr<PyOption>> options;
};

/// Never lets a C++ exception out: the pass manager is compiled without them.
std::optional<Failure> PyPass::runPython() {
  nb::gil_scoped_acquire gil;
  try {
    return callBody();
  } catch (nb::python_error &error) {
    Failure failure{"python pass '" + spec->argument + "': " + error.what(),
                    std::nullopt,
                    {}};
    failures().push_back(
        {&getContext(), {failure.message, nb::borrow(error.value())}});
    return failure;
  } catch (std::exception &error) {
    return Failure{"python pass '" + spec->argument + "': " + error.what(),
                   std::nullopt,
                   {}};
  }
}

/// The callable returns None, or (message, location or None, notes, exception).
std::optional<Failure> PyPass::callBody() {
  nb::handle callable = spec->callable->get();
  if (!callable.is_valid())
    return Failure{"python pass '" + spec->argument +
                       "' cannot run: the interpreter is shutting down",
                   std::nullopt,
                   {}};
  nb::object operation = nb::cast(wrap(getOperation()));
  keepContextWrapper(&getContext(), operation);
  nb::dict values;
  for (auto [option, value] : llvm::zip_equal(spec->options, options))
    values[option.name.c_str()] = value->value();
  nb::object result = callable(operation, values);
  if (result.is_none())
    return std::nullopt;
  Failure failure;
  failure.message = nb::cast<std::string>(result[0]);
  if (nb::object location = result[1]; !location.is_none())
    failure.location = unwrap(nb::cast<MlirLocation>(location));
  for (nb::handle note : nb::object(result[2]))
    failure.notes.push_back(nb::cast<std::string>(note));
  failures().push_back({&getContext(), {failure.message, result[3]}});
  return failure;
}

} // namespace

std::unique_ptr<Pass> createPyPass(std::shared_ptr<const PyPassSpec> spec) {
  return std::make_unique<PyPass>(std::move(spec));
}

} // namespace tilewright
