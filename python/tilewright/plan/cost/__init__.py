# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Roller (OSDI 2022): tiles constructed from the machine's alignment rules and ranked by a performance model.

| module | holds |
|---|---|
| `expression` | a tensor expression as data: loops, index expressions, bytes, work of a point |
| `rtile` | an rTile: what a tile of the loops reads, writes, occupies and computes |
| `rules` | the four alignment rules, as numbers that follow from a device description |
| `construct` | reuse score, scale-up and scale-out, small operators |
| `cost` | the micro-performance model |
| `choose` | candidates of an operation of the IR, ranked, and what is written about them |
"""
