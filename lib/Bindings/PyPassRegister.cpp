//===- PyPassRegister.cpp - registration of Python passes and pipelines -*- C++
//-*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Bindings/PyPass.h"
#include "lib/Bindings/PyPassDialects.h"
#include "lib/Bindings/Registration.h"
#include "lib/RegisterPasses.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "llvm/ADT/StringMap.h"

#include <mutex>

namespace nb = nanobind;
using namespace mlir;

namespace tilewright {
namespace {

/// What is registered under each name now. MLIR's own registry keeps the first
/// entry of a name; it asks here for the newest, so that a pass may be defined
/// again (in a notebook). Leaked: a tool may leave through exit().
struct PythonRegistry {
  std::mutex mutex;
  llvm::StringMap<std::shared_ptr<const PyPassSpec>> passes;
  llvm::StringMap<std::string> pipelines;

  static PythonRegistry &get() {
    static auto *registry = new PythonRegistry();
    return *registry;
  }
};

std::unique_ptr<Pass> createByName(const std::string &argument) {
  PythonRegistry &registry = PythonRegistry::get();
  std::shared_ptr<const PyPassSpec> spec;
  {
    std::lock_guard<std::mutex> lock(registry.mutex);
    spec = registry.passes.lookup(argument);
  }
  return createPyPass(std::move(spec));
}

OptionSpec::Value parseDefault(const std::string &kind, nb::handle value) {
  if (kind == "bool")
    return nb::cast<bool>(value);
  if (kind == "int")
    return nb::cast<int64_t>(value);
  if (kind == "float")
    return nb::cast<double>(value);
  if (kind == "str")
    return nb::cast<std::string>(value);
  if (kind == "ints")
    return nb::cast<std::vector<int64_t>>(value);
  if (kind == "strs")
    return nb::cast<std::vector<std::string>>(value);
  throw nb::value_error(("unknown kind of pass option: " + kind).c_str());
}

/// (name, kind, default, help) per option.
using RawOption = std::tuple<std::string, std::string, nb::object, std::string>;

std::vector<OptionSpec> parseOptions(const std::vector<RawOption> &raw) {
  std::vector<OptionSpec> options;
  for (const auto &[name, kind, value, help] : raw)
    options.push_back({name, help, parseDefault(kind, value)});
  return options;
}

void checkName(const std::string &name, bool known) {
  if (name.empty())
    throw nb::value_error("a pass or pipeline needs a name");
  if (!known && (PassInfo::lookup(name) || PassPipelineInfo::lookup(name)))
    throw nb::value_error(
        ("a pass or pipeline named '" + name +
         "' exists already (not from Python): choose another name")
            .c_str());
}

void checkDialects(const PyPassSpec &spec) {
  for (const std::string &dialect : spec.dialects)
    if (!isDialect(dialect))
      throw nb::value_error(("python pass '" + spec.argument +
                             "' depends on the unknown dialect '" + dialect +
                             "'")
                                .c_str());
}

void registerPyPass(const std::string &argument, const std::string &summary,
                    std::optional<std::string> anchor,
                    std::vector<std::string> dialects,
                    const std::vector<RawOption> &options,
                    nb::object callable) {
  auto spec = std::make_shared<PyPassSpec>();
  spec->argument = argument;
  spec->summary = summary;
  spec->anchor = std::move(anchor);
  spec->dialects = std::move(dialects);
  spec->options = parseOptions(options);
  spec->callable = std::make_unique<PyCallable>(std::move(callable));
  checkDialects(*spec);
  PythonRegistry &registry = PythonRegistry::get();
  std::shared_ptr<const PyPassSpec> previous; // released after the lock
  {
    std::lock_guard<std::mutex> lock(registry.mutex);
    checkName(argument, registry.passes.contains(argument));
    auto &entry = registry.passes[argument];
    previous = std::exchange(entry, std::move(spec));
  }
  if (!previous)
    registerPass([argument] { return createByName(argument); });
}

LogicalResult
buildPipeline(const std::string &name, OpPassManager &manager,
              StringRef options,
              function_ref<LogicalResult(const Twine &)> errorHandler) {
  if (!options.empty())
    return errorHandler("pipeline '" + name + "' has no options");
  std::string text;
  {
    PythonRegistry &registry = PythonRegistry::get();
    std::lock_guard<std::mutex> lock(registry.mutex);
    text = registry.pipelines.lookup(name);
  }
  if (text.empty())
    return success();
  std::string message;
  llvm::raw_string_ostream stream(message);
  if (succeeded(parsePassPipeline(text, manager, stream)))
    return success();
  return errorHandler("in pipeline '" + name + "': " + message);
}

/// `text` is a list of passes without an anchor: "canonicalize,func.func(cse)".
void registerPyPipeline(const std::string &name, const std::string &summary,
                        const std::string &text) {
  PythonRegistry &registry = PythonRegistry::get();
  bool known;
  {
    std::lock_guard<std::mutex> lock(registry.mutex);
    known = registry.pipelines.contains(name);
    checkName(name, known);
    registry.pipelines[name] = text;
  }
  if (known)
    return;
  registerPassPipeline(
      name, summary,
      [name](OpPassManager &manager, StringRef options,
             function_ref<LogicalResult(const Twine &)> errorHandler) {
        return buildPipeline(name, manager, options, errorHandler);
      },
      [](function_ref<void(const mlir::detail::PassOptions &)>) {});
}

/// Called at interpreter exit: classes that passes keep alive would otherwise
/// outlive the modules that they need.
void releaseCallables() {
  PythonRegistry &registry = PythonRegistry::get();
  std::vector<std::shared_ptr<const PyPassSpec>> specs;
  {
    std::lock_guard<std::mutex> lock(registry.mutex);
    for (auto &entry : registry.passes)
      specs.push_back(entry.second);
  }
  for (const auto &spec : specs)
    spec->callable->clear();
}

ModulePart part([](nb::module_ &m) {
  registerAllPasses();
  m.def("register_pass", &registerPyPass, nb::arg("argument"),
        nb::arg("summary"), nb::arg("anchor").none(), nb::arg("dialects"),
        nb::arg("options"), nb::arg("callable"),
        "Register a Python pass. Options are (name, kind, default, help) with "
        "kind one of bool, int, float, str, ints, strs.");
  m.def("register_pipeline", &registerPyPipeline, nb::arg("name"),
        nb::arg("summary"), nb::arg("text"),
        "Register a name for a list of passes.");
  m.def(
      "is_pass",
      [](const std::string &name) {
        return PassInfo::lookup(name) || PassPipelineInfo::lookup(name);
      },
      nb::arg("name"), "Whether a pass or pipeline of that name exists.");
  nb::module_::import_("atexit").attr("register")(
      nb::cpp_function(&releaseCallables));
});

} // namespace
} // namespace tilewright
