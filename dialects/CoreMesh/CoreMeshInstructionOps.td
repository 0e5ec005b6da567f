//===- CoreMeshInstructionOps.td - what cores do -----------*- tablegen -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_CORE_MESH_INSTRUCTION_OPS
#define TILEWRIGHT_CORE_MESH_INSTRUCTION_OPS

include "dialects/CoreMesh/CoreMeshProgramOps.td"

// Run by the cores for which the constraints of `cores` on (y, x, loops...)
// hold, counted by `order`; by all without. Expressions of slots count alike.
class CoreMesh_InstructionOp<string mnemonic, list<Trait> traits = []>
    : CoreMesh_Op<mnemonic, !listconcat([
          ParentOneOf<["ProgramOp", "LoopOp"]>,
          DeclareOpInterfaceMethods<SymbolUserOpInterface>], traits)> {
  dag cores = (ins
      DefaultValuedAttr<CoreMesh_Order, "Order::linear">:$order,
      OptionalAttr<IntegerSetAttr>:$cores);
}

def CoreMesh_ComputeOp : CoreMesh_InstructionOp<"compute", [
    MemoryEffects<[MemRead, MemWrite]>, SingleBlock, IsolatedFromAbove]> {
  let summary = "a kernel on tiles of the core's own memory";
  let description = [{
    Reads slots, as block arguments, runs the body on them (`linalg`, `tensor`,
    `arith` and `math` on tensors), and writes what it yields to slots. It is done
    when the next instruction starts.

    - `compute_c1`: buffers are those of the program.
    - `compute_c2`: slots are of their buffers wherever the instruction runs.
    - `compute_c3`: there is one block argument per slot that is read, and one
      yielded value per slot that is written, of the buffer's type.
    - `compute_c4`: constraints and expressions are of y, x and the loops around,
      and divide by positive numbers.
    - `compute_c5`: there is a slot to write, and none is written twice.
    - `compute_c6`: ops of the body have no effect but their results: a kernel is a
      function of what it reads.

    Example:

    ```mlir
    func.func @f(%a: tensor<4x6xf32>, %b: tensor<6x5xf32>) -> tensor<4x5xf32> {
      %r = coremesh.program "multiply" grid(1, 1) (%x = %a, %y = %b)
          : (tensor<4x6xf32>, tensor<6x5xf32>) -> tensor<4x5xf32> {
        coremesh.buffer @A : tensor<4x6xf32>
        coremesh.buffer @B : tensor<6x5xf32>
        coremesh.buffer @C : tensor<4x5xf32>
        coremesh.place %x in @A block(0, 0) : tensor<4x6xf32>
        coremesh.place %y in @B block(0, 0) : tensor<6x5xf32>
        coremesh.compute "multiply" (%u = @A : tensor<4x6xf32>, %v = @B : tensor<6x5xf32>, %w = @C : tensor<4x5xf32>)
            to (@C) where (y == 0, x >= 0) {
          %0 = linalg.matmul ins(%u, %v : tensor<4x6xf32>, tensor<6x5xf32>) outs(%w : tensor<4x5xf32>)
              -> tensor<4x5xf32>
          coremesh.yield %0 : tensor<4x5xf32>
        }
        %c = coremesh.collect @C block(0, 0) : tensor<4x5xf32>
        coremesh.yield %c : tensor<4x5xf32>
      }
      return %r : tensor<4x5xf32>
    }
    ```
  }];
  let arguments = !con((ins StrAttr:$name, FlatSymbolRefArrayAttr:$reads,
      AffineMapArrayAttr:$read_indices, FlatSymbolRefArrayAttr:$writes,
      AffineMapArrayAttr:$write_indices), cores);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
}

// Something asynchronous: the token says that it is done.
class CoreMesh_AsyncOp<string mnemonic> : CoreMesh_InstructionOp<mnemonic, [
    MemoryEffects<[MemRead, MemWrite]>]> {
  let results = (outs CoreMesh_TokenType:$token);
  let hasVerifier = 1;
}

def CoreMesh_SendOp : CoreMesh_AsyncOp<"send"> {
  let summary = "start to send a slot on a route";
  let description = [{
    The token: the slot may be written again.

    - `send_c1`: buffer and route are those of the program.
    - `send_c2`: the slot is one of the buffer wherever the instruction runs.
    - `send_c3`: constraints and expressions are of y, x and the loops around,
      and divide by positive numbers.
    - `send_c4`: a `coremesh.wait` waits for the token, in the same block.

    Example: see `coremesh.loop`
  }];
  let arguments = !con((ins FlatSymbolRefAttr:$buffer, AffineMapAttr:$index,
                            FlatSymbolRefAttr:$route), cores);
  let assemblyFormat = [{
    custom<Slot>($buffer, $index) `on` $route `` custom<Cores>($order, $cores) attr-dict
  }];
}

def CoreMesh_RecvOp : CoreMesh_AsyncOp<"recv"> {
  let summary = "start to receive into a slot from a route";
  let description = [{
    The token: all of it is there. What arrives is stored; with `combine`, it is
    combined with what is there, as numbers arrive. Several that combine into one
    slot do so in the order of the program, whichever arrives first: results do
    not depend on timing.

    - `recv_c1`: buffer and route are those of the program.
    - `recv_c2`: the slot is one of the buffer wherever the instruction runs.
    - `recv_c3`: constraints and expressions are of y, x and the loops around,
      and divide by positive numbers.
    - `recv_c4`: a `coremesh.wait` waits for the token, in the same block.

    Example: see `coremesh.relay`
  }];
  let arguments = !con((ins FlatSymbolRefAttr:$buffer, AffineMapAttr:$index,
                            FlatSymbolRefAttr:$route,
                            OptionalAttr<CoreMesh_Combine>:$combine), cores);
  let assemblyFormat = [{
    custom<Slot>($buffer, $index) `from` $route (`combine` $combine^)?
    `` custom<Cores>($order, $cores) attr-dict
  }];
}

def CoreMesh_RelayOp : CoreMesh_AsyncOp<"relay"> {
  let summary = "receive, combine with a slot, send on";
  let description = [{
    One software stage of a streaming reduction (WaferLLM, OSDI 2025, section 6):
    what arrives on the incoming route is combined with the slot and sent on, one
    number per cycle; nothing is stored. Both routes may be one. The token: all
    has been sent on.

    - `relay_c1`: buffer and routes are those of the program.
    - `relay_c2`: the slot is one of the buffer wherever the instruction runs.
    - `relay_c3`: constraints and expressions are of y, x and the loops around,
      and divide by positive numbers.
    - `relay_c4`: a `coremesh.wait` waits for the token, in the same block.

    Example: a sum along each row arrives at the last core of it.

    ```mlir
    func.func @f(%a: tensor<2x28xf32>) -> tensor<2x7xf32> {
      %r = coremesh.program "chain" grid(2, 4) (%in = %a) : (tensor<2x28xf32>) -> tensor<2x7xf32> {
        coremesh.buffer @A : tensor<1x7xf32>
        coremesh.route @right along x from p - 1 colors [3, 4] by p mod 2
        coremesh.place %in in @A block(y, x) : tensor<2x28xf32>
        %s = coremesh.send @A on @right where (x == 0)
        %t = coremesh.relay @A from @right to @right combine add where (x >= 1, x <= 2)
        %u = coremesh.recv @A from @right combine add where (x == 3)
        coremesh.wait collective %s, %t, %u
        %c = coremesh.collect @A block(y, 0) : tensor<2x7xf32>
        coremesh.yield %c : tensor<2x7xf32>
      }
      return %r : tensor<2x7xf32>
    }
    ```
  }];
  let arguments = !con((ins FlatSymbolRefAttr:$buffer, AffineMapAttr:$index,
                            FlatSymbolRefAttr:$incoming, FlatSymbolRefAttr:$outgoing,
                            CoreMesh_Combine:$combine), cores);
  let assemblyFormat = [{
    custom<Slot>($buffer, $index) `from` $incoming `to` $outgoing `combine` $combine
    `` custom<Cores>($order, $cores) attr-dict
  }];
}

def CoreMesh_WaitOp : CoreMesh_Op<"wait", [
    ParentOneOf<["ProgramOp", "LoopOp"]>, MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "wait until what was started is done";
  let description = [{
    Each core waits until those of its instructions that made these tokens are
    done. `overhead` is the fixed cost of the machine that a core pays here, where
    tasks are switched: once per compute-shift round, once per collective, or
    none.

    - `wait_c1`: there is a token, and each was made in the same block.

    Example: see `coremesh.loop`
  }];
  let arguments = (ins Variadic<CoreMesh_TokenType>:$tokens,
      DefaultValuedAttr<CoreMesh_Overhead, "Overhead::none">:$overhead);
  let assemblyFormat = "`` custom<Overhead>($overhead) $tokens attr-dict";
  let hasVerifier = 1;
}

def CoreMesh_LoopOp : CoreMesh_Op<"loop", [
    ParentOneOf<["ProgramOp", "LoopOp"]>, RecursiveMemoryEffects, SingleBlock,
    NoTerminator]> {
  let summary = "the same instructions several times";
  let description = [{
    The index, from 0 to `count` - 1, is one more dimension of expressions inside:
    `i` in the outermost loop, `j`, `k` and `l` in those inside.

    - `loop_c1`: the count is not negative.
    - `loop_c2`: at most four loops stand in each other.

    Example: each core's tile goes once around the ring of its row.

    ```mlir
    func.func @f(%a: tensor<4x9xf32>) -> tensor<4x9xf32> {
      %r = coremesh.program "around" grid(2, 3) (%in = %a) : (tensor<4x9xf32>) -> tensor<4x9xf32> {
        coremesh.buffer @A : tensor<2x3xf32> slots 2 address 128
        coremesh.route @left along x ring from (p + 1) mod 3
        coremesh.place %in in @A block(y, x) ring : tensor<4x9xf32>
        coremesh.loop 3 {
          %s = coremesh.send @A[i mod 2] on @left
          %t = coremesh.recv @A[(i + 1) mod 2] from @left
          coremesh.wait round %s, %t
        }
        %out = coremesh.collect @A[1] block(y, x) ring : tensor<4x9xf32>
        coremesh.yield %out : tensor<4x9xf32>
      }
      return %r : tensor<4x9xf32>
    }
    ```
  }];
  let arguments = (ins I64Attr:$count);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$count $body attr-dict";
  let hasVerifier = 1;
}

def CoreMesh_YieldOp : CoreMesh_Op<"yield", [
    Pure, Terminator, ParentOneOf<["ProgramOp", "ComputeOp", "LocalOp", "BlockGemmOp"]>]> {
  let summary = "what a program or a kernel returns";
  let description = [{
    Example: see `coremesh.compute`
  }];
  let arguments = (ins Variadic<AnyType>:$values);
  let assemblyFormat = "attr-dict ($values^ `:` type($values))?";
}

#endif // TILEWRIGHT_CORE_MESH_INSTRUCTION_OPS
