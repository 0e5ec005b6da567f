//===- MachineCode.cpp - LLVM dialect to machine code ---------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Target/MachineCode.h"

#include "lib/RegisterDialects.h"
#include "lib/Target/GatheredAddresses.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/CodeGen/MachineModuleInfo.h"
#include "llvm/CodeGen/Passes.h"
#include "llvm/CodeGen/TargetPassConfig.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/PassInstrumentation.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/Transforms/Instrumentation/AddressSanitizer.h"

#include <mutex>

using llvm::createStringError;
using llvm::Expected;
using llvm::StringRef;

namespace {

using namespace tilewright;

/// Whether code generation keeps the order of the IR. Kernels come in one that
/// keeps the registers: a row of accumulators after the other, each operand
/// read right before its use. With 32 registers the scheduler before register
/// allocation moves loads upwards and then spills (up to 76 times in a loop of
/// 96 multiply-adds); out-of-order cores gain nothing from it. With 16, all of
/// which a tile takes, the order in which instructions are selected is already
/// too wide (operands of the next step are read before this one ends), and the
/// scheduler, which counts registers, mends that: it then spills less.
bool keepsOrder(const llvm::TargetMachine &machine) {
  return !machine.getTargetTriple().isX86() ||
         machine.getMCSubtargetInfo()->checkFeatures("+avx512f");
}

/// What `TargetMachine::addPassesToEmitFile` adds, with or without the
/// scheduler before register allocation: that has no switch but an option of
/// the process, and machines of both kinds may be compiled for side by side.
bool addCodeGeneration(llvm::TargetMachine &machine,
                       llvm::legacy::PassManager &passes,
                       llvm::raw_pwrite_stream &stream,
                       llvm::CodeGenFileType type) {
  auto *info = new llvm::MachineModuleInfoWrapperPass(&machine);
  llvm::TargetPassConfig *config = machine.createPassConfig(passes);
  config->setDisableVerify(true);
  if (keepsOrder(machine))
    config->disablePass(&llvm::MachineSchedulerID);
  passes.add(config);
  passes.add(info);
  if (config->addISelPasses())
    return false;
  config->addMachinePasses();
  config->setInitialized();
  if (machine.addAsmPrinter(passes, stream, nullptr, type,
                            info->getMMI().getContext()))
    return false;
  passes.add(llvm::createFreeMachineFunctionPass());
  return true;
}

void initializeTargets() {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
  });
}

/// Pairs of accesses that `LoopLoadEliminationPass` may compare.
constexpr size_t mostPairs = 1024;

/// Whether a pass is worth its time on a piece of IR. What a loop stores and
/// loads again in its next iteration is looked for among all pairs of its
/// accesses of which one is a store: on an unrolled copy of 60 vectors that
/// took 60 of 80 ms, on one that fills 128 vectors 150 of 170, in vain. The
/// pass itself gives up where it meets more than a hundred dependences, but
/// only after it has found them.
bool worthRunning(StringRef pass, const llvm::Any &ir) {
  auto *const *function = llvm::any_cast<const llvm::Function *>(&ir);
  if (pass != "LoopLoadEliminationPass" || !function)
    return true;
  size_t loads = 0, stores = 0;
  for (const llvm::Instruction &instruction : llvm::instructions(**function)) {
    loads += llvm::isa<llvm::LoadInst>(instruction);
    stores += llvm::isa<llvm::StoreInst>(instruction);
  }
  return (loads + stores) * stores <= mostPairs;
}

/// What optimizations may make calls of. The passes of code generation are
/// added without what knows a library: stores of zeros that became a `memset`
/// would be a loop over bytes, which writes 3 GB/s where vectors write 17.
llvm::TargetLibraryInfoImpl librariesOf(const llvm::TargetMachine &machine) {
  llvm::TargetLibraryInfoImpl library(machine.getTargetTriple());
  for (llvm::LibFunc function :
       {llvm::LibFunc_memset, llvm::LibFunc_memset_pattern16,
        llvm::LibFunc_memcpy, llvm::LibFunc_memmove})
    library.setUnavailable(function);
  return library;
}

llvm::CodeGenOptLevel codeGenLevel(unsigned level) {
  return level == 0   ? llvm::CodeGenOptLevel::None
         : level == 1 ? llvm::CodeGenOptLevel::Less
         : level == 2 ? llvm::CodeGenOptLevel::Default
                      : llvm::CodeGenOptLevel::Aggressive;
}

Expected<std::unique_ptr<llvm::TargetMachine>>
makeMachine(const MachineOptions &options) {
  initializeTargets();
  llvm::Triple triple(options.triple.empty()
                          ? llvm::sys::getDefaultTargetTriple()
                          : options.triple);
  std::string message;
  const llvm::Target *target =
      llvm::TargetRegistry::lookupTarget(triple, message);
  if (!target)
    return createStringError("no code generator for " + triple.str() + ": " +
                             message);
  std::unique_ptr<llvm::MCSubtargetInfo> info(
      target->createMCSubtargetInfo(triple, "", ""));
  if (!options.cpu.empty() && !info->isCPUStringValid(options.cpu))
    return createStringError("LLVM knows no CPU named '" + options.cpu +
                             "' for " + triple.str());
  llvm::TargetOptions targetOptions;
  targetOptions.FunctionSections = true;
  targetOptions.DataSections = true;
  targetOptions.UseInitArray = true; // the loader runs no .ctors
  std::unique_ptr<llvm::TargetMachine> machine(target->createTargetMachine(
      triple, options.cpu, options.features, targetOptions, llvm::Reloc::PIC_,
      std::nullopt, codeGenLevel(options.optLevel)));
  if (!machine)
    return createStringError("LLVM cannot make a target machine for " +
                             triple.str());
  return machine;
}

/// One compilation: from the module's bytes to optimized LLVM IR.
class Translation {
public:
  explicit Translation(const MachineOptions &options) : options(options) {}

  llvm::Error run(StringRef module) {
    auto made = makeMachine(options);
    if (!made)
      return made.takeError();
    machine = std::move(*made);
    if (llvm::Error error = translate(module))
      return error;
    setAttributes();
    optimize();
    return llvm::Error::success();
  }

  Expected<std::string> generate(llvm::CodeGenFileType type) {
    llvm::SmallVector<char, 0> bytes;
    llvm::raw_svector_ostream stream(bytes);
    llvm::legacy::PassManager passes;
    if (!addCodeGeneration(*machine, passes, stream, type))
      return createStringError("the target machine cannot write this file");
    passes.run(*llvmModule);
    return std::string(bytes.begin(), bytes.end());
  }

  std::string print() {
    std::string text;
    llvm::raw_string_ostream stream(text);
    llvmModule->print(stream, nullptr);
    return text;
  }

private:
  llvm::Error translate(StringRef source) {
    mlir::DialectRegistry registry;
    tilewright::registerAllDialects(registry);
    mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
    std::string messages;
    mlir::ScopedDiagnosticHandler handler(
        &context, [&](mlir::Diagnostic &diagnostic) {
          llvm::raw_string_ostream stream(messages);
          stream << diagnostic.getLocation() << ": " << diagnostic << "\n";
          for (mlir::Diagnostic &note : diagnostic.getNotes())
            stream << "  note: " << note << "\n";
        });
    auto parsed = mlir::parseSourceString<mlir::ModuleOp>(source, &context);
    if (!parsed)
      return createStringError("the module cannot be read:\n" + messages);
    // Code for a device is a module of its own inside the host's.
    mlir::Operation *code = *parsed;
    if (auto device = parsed->getOps<mlir::gpu::GPUModuleOp>(); !device.empty())
      code = *device.begin();
    llvmModule = mlir::translateModuleToLLVMIR(code, llvmContext);
    if (!llvmModule)
      return createStringError("the module is not all LLVM dialect:\n" +
                               messages);
    return llvm::Error::success();
  }

  void setAttributes() {
    llvmModule->setTargetTriple(machine->getTargetTriple());
    llvmModule->setDataLayout(machine->createDataLayout());
    bool isX86 = machine->getTargetTriple().isX86();
    // The sanitizer guards no constant of a larger alignment.
    if (isSanitized())
      for (llvm::GlobalVariable &global : llvmModule->globals())
        if (global.getAlign().valueOrOne() > llvm::Align(32))
          global.setAlignment(llvm::Align(32));
    for (llvm::Function &function : *llvmModule) {
      if (function.isDeclaration())
        continue;
      function.addFnAttr("target-cpu", machine->getTargetCPU());
      if (!options.features.empty())
        function.addFnAttr("target-features", options.features);
      // LLVM's tuning of Intel CPUs prefers 256 bits; the kernels are cut for
      // full registers.
      if (isX86 && machine->getMCSubtargetInfo()->checkFeatures("+avx512f"))
        function.addFnAttr("prefer-vector-width", "512");
    }
  }

  void optimize() {
    llvm::LoopAnalysisManager loops;
    llvm::FunctionAnalysisManager functions;
    llvm::CGSCCAnalysisManager sccs;
    llvm::ModuleAnalysisManager modules;
    llvm::TargetLibraryInfoImpl library = librariesOf(*machine);
    functions.registerPass(
        [&] { return llvm::TargetLibraryAnalysis(library); });
    llvm::PassInstrumentationCallbacks callbacks;
    callbacks.registerShouldRunOptionalPassCallback(worthRunning);
    llvm::PassBuilder builder(machine.get(), llvm::PipelineTuningOptions(),
                              std::nullopt, &callbacks);
    builder.registerModuleAnalyses(modules);
    builder.registerCGSCCAnalyses(sccs);
    builder.registerFunctionAnalyses(functions);
    builder.registerLoopAnalyses(loops);
    builder.crossRegisterProxies(loops, functions, sccs, modules);
    const llvm::OptimizationLevel levels[] = {
        llvm::OptimizationLevel::O0, llvm::OptimizationLevel::O1,
        llvm::OptimizationLevel::O2, llvm::OptimizationLevel::O3};
    llvm::OptimizationLevel level = levels[std::min(options.optLevel, 3u)];
    llvm::ModulePassManager passes =
        options.optLevel == 0 ? builder.buildO0DefaultPipeline(level)
                              : builder.buildPerModuleDefaultPipeline(level);
    if (isSanitized())
      passes.addPass(llvm::AddressSanitizerPass(llvm::AddressSanitizerOptions(),
                                                /*UseGlobalGC=*/false));
    passes.run(*llvmModule, modules);
    if (options.optLevel > 0 && machine->getTargetTriple().isX86())
      holdGatheredAddresses(*llvmModule);
  }

  /// Whether a function asks for checked accesses (`tile-sanitize`): the code
  /// then calls the run-time of the sanitizer.
  bool isSanitized() const {
    return llvm::any_of(*llvmModule, [](const llvm::Function &function) {
      return function.hasFnAttribute(llvm::Attribute::SanitizeAddress);
    });
  }

  MachineOptions options;
  std::unique_ptr<llvm::TargetMachine> machine;
  llvm::LLVMContext llvmContext;
  std::unique_ptr<llvm::Module> llvmModule;
};

Expected<std::string> generate(StringRef module, const MachineOptions &options,
                               llvm::CodeGenFileType type) {
  Translation translation(options);
  if (llvm::Error error = translation.run(module))
    return error;
  return translation.generate(type);
}

} // namespace

Expected<std::string> tilewright::emitObject(StringRef module,
                                             const MachineOptions &options) {
  return generate(module, options, llvm::CodeGenFileType::ObjectFile);
}

Expected<std::string> tilewright::emitAssembly(StringRef module,
                                               const MachineOptions &options) {
  return generate(module, options, llvm::CodeGenFileType::AssemblyFile);
}

Expected<std::string> tilewright::emitLLVMIR(StringRef module,
                                             const MachineOptions &options) {
  Translation translation(options);
  if (llvm::Error error = translation.run(module))
    return error;
  return translation.print();
}
