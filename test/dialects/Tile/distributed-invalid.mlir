// RUN: tile-opt %s -split-input-file -verify-diagnostics

func.func private @distributed_c1(!tile.tile<8x8xf32,
    // expected-error @below {{a vector has 1 entries where another has 2}}
    #tile.distributed<register = [[0, 1], [2]], lane = [], warp = []>>)

// -----

// expected-error @below {{a vector is zero or has one entry, a power of two}}
func.func private @distributed_c2(!tile.tile<8x8xf32, #tile.distributed<register = [[1, 1]], lane = [], warp = []>>)

// -----

// expected-error @below {{a vector is zero or has one entry, a power of two}}
func.func private @distributed_c2_power(!tile.tile<8xf32, #tile.distributed<register = [[3]], lane = [], warp = []>>)

// -----

func.func private @distributed_c3(!tile.tile<32xf32,
    // expected-error @below {{the entry 1 of dimension 0 occurs in two vectors}}
    #tile.distributed<register = [[1]], lane = [[1], [2], [4], [8], [16]], warp = []>>)

// -----

func.func private @distributed_c3_zero(!tile.tile<32xf32,
    // expected-error @below {{the vector of a register's bit must not be zero}}
    #tile.distributed<register = [[0]], lane = [[1], [2], [4], [8], [16]], warp = []>>)

// -----

func.func private @distributed_c4(!tile.tile<32xf32,
    // expected-error @below {{entries of dimension 0 must be 1, 2, 4, ... without a gap}}
    #tile.distributed<register = [], lane = [[1], [2], [4], [8], [32]], warp = []>>)

// -----

// expected-error @below {{a distributed layout has 5 vectors for the lane and at most 5 for the warp, got 2 and 0}}
func.func private @distributed_c5(!tile.tile<4xf32, #tile.distributed<register = [], lane = [[1], [2]], warp = []>>)

// -----

// expected-error @below {{distributed layout covers 32 positions of dimension 0, which has 64}}
func.func private @tile_type_c4(!tile.tile<64xf32,
    #tile.distributed<register = [], lane = [[1], [2], [4], [8], [16]], warp = []>>)

// -----

// expected-error @below {{distributed layout has vectors of 1 entries for a tile of rank 2}}
func.func private @tile_type_c4_rank(!tile.tile<4x8xf32,
    #tile.distributed<register = [], lane = [[1], [2], [4], [8], [16]], warp = []>>)
