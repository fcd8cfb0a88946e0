//! rv64, S-mode. Three files of assembly: [`boot`], [`trap`], [`panic`]; all else that is privileged is
//! generated.
mod boot;
mod panic;
mod trap;
