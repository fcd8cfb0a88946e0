//! 64-bit MIPS, release 2, kernel mode. Four files of assembly: [`boot`], [`refill`], [`trap`], [`panic`];
//! all else that is privileged is generated.
//!
//! Privileged code runs at addresses that need no translation, with `EXL` set. It touches `k0` and `k1`
//! alone, which are 0 whenever user mode runs, until a portal has kept the rest.
mod boot;
mod panic;
mod refill;
mod trap;
