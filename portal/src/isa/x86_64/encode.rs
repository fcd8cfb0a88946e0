//! Encoder of the x86-64 instructions of portal code. Registers are numbers 0 to 15 (rax rcx rdx rbx rsp rbp
//! rsi rdi r8-r15).
//!
//! Each function appends one instruction; displacements are always as short as they can be, so encodings are
//! unique.

use crate::asm::{Asm, Label};

pub type Reg = u8;

pub const RAX: Reg = 0;
pub const RCX: Reg = 1;
pub const RDX: Reg = 2;
pub const RSP: Reg = 4;
pub const RBP: Reg = 5;
pub const RSI: Reg = 6;
pub const RDI: Reg = 7;
pub const R10: Reg = 10;
pub const R11: Reg = 11;

impl<const N: usize> Asm<'_, u8, N> {
    fn rex(&mut self, wide: bool, reg: Reg, base: Reg) {
        let rex = 0x40 | u8::from(wide) << 3 | reg >> 3 << 2 | base >> 3;
        if rex != 0x40 {
            self.put_all(&[rex]);
        }
    }

    /// `[base + disp]` in the r/m field.
    fn memory(&mut self, reg: Reg, base: Reg, disp: i32) {
        let (reg, low) = ((reg & 7) << 3, base & 7);
        let short = i8::try_from(disp).is_ok();
        let mode = match disp {
            0 if low != 5 => 0x00,
            _ if short => 0x40,
            _ => 0x80,
        };
        self.put_all(&[mode | reg | low]);
        if low == 4 {
            self.put_all(&[0x24]);
        }
        match mode {
            0x40 => self.put_all(&[disp as u8]),
            0x80 => self.put_all(&disp.to_le_bytes()),
            _ => {}
        }
    }

    fn access(&mut self, wide: bool, opcode: &[u8], reg: Reg, base: Reg, disp: i32) {
        self.rex(wide, reg, base);
        self.put_all(opcode);
        self.memory(reg, base, disp);
    }

    pub fn load(&mut self, to: Reg, base: Reg, disp: i32) {
        self.access(true, &[0x8b], to, base, disp);
    }
    pub fn load32(&mut self, to: Reg, base: Reg, disp: i32) {
        self.access(false, &[0x8b], to, base, disp);
    }
    pub fn store(&mut self, base: Reg, disp: i32, from: Reg) {
        self.access(true, &[0x89], from, base, disp);
    }
    pub fn lea(&mut self, to: Reg, base: Reg, disp: i32) {
        self.access(true, &[0x8d], to, base, disp);
    }
    /// `cmpl $imm, disp(base)`.
    pub fn compare32(&mut self, base: Reg, disp: i32, imm: u32) {
        self.access(false, &[0x81], 7, base, disp);
        self.put_all(&imm.to_le_bytes());
    }
    /// `cmpq from, disp(base)` compares memory with the register.
    pub fn compare(&mut self, base: Reg, disp: i32, with: Reg) {
        self.access(true, &[0x39], with, base, disp);
    }
    /// `movl $imm, disp(base)`.
    pub fn store_zero32(&mut self, base: Reg, disp: i32) {
        self.access(false, &[0xc7], 0, base, disp);
        self.put_all(&[0; 4]);
    }
    pub fn push(&mut self, reg: Reg) {
        self.rex(false, 0, reg);
        self.put_all(&[0x50 | reg & 7]);
    }
    pub fn pop(&mut self, reg: Reg) {
        self.rex(false, 0, reg);
        self.put_all(&[0x58 | reg & 7]);
    }
    pub fn push_memory(&mut self, base: Reg, disp: i32) {
        self.access(false, &[0xff], 6, base, disp);
    }
    pub fn pop_memory(&mut self, base: Reg, disp: i32) {
        self.access(false, &[0x8f], 0, base, disp);
    }
    pub fn mov(&mut self, to: Reg, from: Reg) {
        self.rex(true, from, to);
        self.put_all(&[0x89, 0xc0 | (from & 7) << 3 | to & 7]);
    }
    pub fn mov32(&mut self, to: Reg, imm: u32) {
        self.rex(false, 0, to);
        self.put_all(&[0xb8 | to & 7]);
        self.put_all(&imm.to_le_bytes());
    }
    pub fn mov64(&mut self, to: Reg, imm: u64) {
        self.rex(true, 0, to);
        self.put_all(&[0xb8 | to & 7]);
        self.put_all(&imm.to_le_bytes());
    }
    pub fn zero(&mut self, reg: Reg) {
        self.rex(false, reg, reg);
        self.put_all(&[0x31, 0xc0 | (reg & 7) << 3 | reg & 7]);
    }
    pub fn test(&mut self, reg: Reg) {
        self.rex(true, reg, reg);
        self.put_all(&[0x85, 0xc0 | (reg & 7) << 3 | reg & 7]);
    }
    /// `orq $imm, reg`, `addq`, `andq`: /1, /0, /4.
    fn immediate(&mut self, operation: u8, reg: Reg, imm: i32) {
        self.rex(true, 0, reg);
        match i8::try_from(imm) {
            Ok(short) => self.put_all(&[0x83, 0xc0 | operation << 3 | reg & 7, short as u8]),
            Err(_) => {
                self.put_all(&[0x81, 0xc0 | operation << 3 | reg & 7]);
                self.put_all(&imm.to_le_bytes());
            }
        }
    }
    pub fn or(&mut self, reg: Reg, imm: i32) {
        self.immediate(1, reg, imm);
    }
    pub fn add(&mut self, reg: Reg, imm: i32) {
        self.immediate(0, reg, imm);
    }
    pub fn and(&mut self, reg: Reg, imm: i32) {
        self.immediate(4, reg, imm);
    }
    /// `orq from, to`.
    pub fn or_reg(&mut self, to: Reg, from: Reg) {
        self.rex(true, from, to);
        self.put_all(&[0x09, 0xc0 | (from & 7) << 3 | to & 7]);
    }
    pub fn shl(&mut self, reg: Reg, by: u8) {
        self.rex(true, 0, reg);
        self.put_all(&[0xc1, 0xe0 | reg & 7, by]);
    }
    /// `movq %fs:disp, reg`.
    pub fn load_fs(&mut self, to: Reg, disp: i32) {
        self.put_all(&[0x64]);
        self.rex(true, to, 0);
        self.put_all(&[0x8b, 0x04 | (to & 7) << 3, 0x25]);
        self.put_all(&disp.to_le_bytes());
    }
    pub fn store_fs(&mut self, disp: i32, from: Reg) {
        self.put_all(&[0x64]);
        self.rex(true, from, 0);
        self.put_all(&[0x89, 0x04 | (from & 7) << 3, 0x25]);
        self.put_all(&disp.to_le_bytes());
    }
    /// `cmpq reg, %fs:disp`.
    pub fn compare_fs(&mut self, disp: i32, with: Reg) {
        self.put_all(&[0x64]);
        self.rex(true, with, 0);
        self.put_all(&[0x39, 0x04 | (with & 7) << 3, 0x25]);
        self.put_all(&disp.to_le_bytes());
    }
    /// `cmpl $imm, %fs:disp` and `movl $imm, %fs:disp`.
    pub fn compare_fs32(&mut self, disp: i32, imm: u32) {
        self.put_all(&[0x64, 0x81, 0x3c, 0x25]);
        self.put_all(&disp.to_le_bytes());
        self.put_all(&imm.to_le_bytes());
    }
    pub fn store_fs32(&mut self, disp: i32, imm: u32) {
        self.put_all(&[0x64, 0xc7, 0x04, 0x25]);
        self.put_all(&disp.to_le_bytes());
        self.put_all(&imm.to_le_bytes());
    }
    /// `addl $imm, %fs:disp`.
    pub fn add_fs32(&mut self, disp: i32, imm: i32) {
        self.put_all(&[0x64, 0x81, 0x04, 0x25]);
        self.put_all(&disp.to_le_bytes());
        self.put_all(&imm.to_le_bytes());
    }
    /// `subq disp(base), from`.
    pub fn subtract(&mut self, from: Reg, base: Reg, disp: i32) {
        self.access(true, &[0x2b], from, base, disp);
    }
    pub fn shr(&mut self, reg: Reg, by: u8) {
        self.rex(true, 0, reg);
        self.put_all(&[0xc1, 0xe8 | reg & 7, by]);
    }
    pub fn ud2(&mut self) {
        self.put_all(&[0x0f, 0x0b]);
    }
    pub fn wrgsbase(&mut self, from: Reg) {
        self.put_all(&[0xf3]);
        self.rex(true, 0, from);
        self.put_all(&[0x0f, 0xae, 0xd8 | from & 7]);
    }
    pub fn rdtsc(&mut self) {
        self.put_all(&[0x0f, 0x31]);
    }
    pub fn ret(&mut self) {
        self.put_all(&[0xc3]);
    }
    /// The upper halves of all vector registers.
    pub fn vzeroupper(&mut self) {
        self.put_all(&[0xc5, 0xf8, 0x77]);
    }
    /// `xorps reg, reg`.
    pub fn zero_vector(&mut self, reg: u8) {
        self.rex(false, reg, reg);
        self.put_all(&[0x0f, 0x57, 0xc0 | (reg & 7) << 3 | reg & 7]);
    }
    pub fn fnclex(&mut self) {
        self.put_all(&[0xdb, 0xe2]);
    }
    pub fn emms(&mut self) {
        self.put_all(&[0x0f, 0x77]);
    }
    pub fn fldz(&mut self) {
        self.put_all(&[0xd9, 0xee]);
    }
    pub fn fxam(&mut self) {
        self.put_all(&[0xd9, 0xe5]);
    }
    pub fn stmxcsr(&mut self, base: Reg, disp: i32) {
        self.access(false, &[0x0f, 0xae], 3, base, disp);
    }
    pub fn ldmxcsr(&mut self, base: Reg, disp: i32) {
        self.access(false, &[0x0f, 0xae], 2, base, disp);
    }
    pub fn fnstcw(&mut self, base: Reg, disp: i32) {
        self.access(false, &[0xd9], 7, base, disp);
    }
    pub fn fldcw(&mut self, base: Reg, disp: i32) {
        self.access(false, &[0xd9], 5, base, disp);
    }

    /// Instructions with a 32-bit distance, filled in by [`Asm::aim`]; the result is the place to fill.
    pub fn call_pool(&mut self) -> Label {
        self.put_all(&[0xff, 0x15]);
        self.hole()
    }
    pub fn jump_pool(&mut self) -> Label {
        self.put_all(&[0xff, 0x25]);
        self.hole()
    }
    pub fn load_pool(&mut self, to: Reg) -> Label {
        self.rex(true, to, 0);
        self.put_all(&[0x8b, 0x05 | (to & 7) << 3]);
        self.hole()
    }
    pub fn ldmxcsr_pool(&mut self) -> Label {
        self.put_all(&[0x0f, 0xae, 0x15]);
        self.hole()
    }
    pub fn fldcw_pool(&mut self) -> Label {
        self.put_all(&[0xd9, 0x2d]);
        self.hole()
    }
    /// `leaq start(%rip), reg`.
    pub fn lea_here(&mut self, to: Reg) -> Label {
        self.rex(true, to, 0);
        self.put_all(&[0x8d, 0x05 | (to & 7) << 3]);
        self.hole()
    }
    pub fn jump_not_equal(&mut self) -> Label {
        self.put_all(&[0x0f, 0x85]);
        self.hole()
    }
    pub fn jump_equal(&mut self) -> Label {
        self.put_all(&[0x0f, 0x84]);
        self.hole()
    }
    pub fn jump(&mut self) -> Label {
        self.put_all(&[0xe9]);
        self.hole()
    }
    fn hole(&mut self) -> Label {
        let hole = self.label();
        self.put_all(&[0; 4]);
        hole
    }
    /// The distance at `hole` leads to `target`.
    pub fn aim(&mut self, hole: Label, target: usize) {
        let distance = (target as i32).wrapping_sub(self.here() as i32 - self.distance(hole) + 4);
        if let Some(bytes) = self.from(hole).first_chunk_mut() {
            *bytes = distance.to_le_bytes();
        }
    }
    /// It leads here.
    pub fn join(&mut self, hole: Label) {
        self.aim(hole, self.here());
    }
}
