//! QEMU's interface for plug-ins, version 1, as far as it is needed here (`qemu-plugin.h` of QEMU 7.2).
//!
//! Invariants that the arguments below stand on:
//! * What QEMU hands to a callback about a block is valid until the callback returns: so [`Block`] and
//!   [`Instruction`] live no longer than the reference that the callback makes.
//! * What is handed over for later is a number, or lives for ever: [`COUNTER`], and each [`Site`].
//! * The address of an instruction in the emulator's own memory lies in the guest's RAM, which is mapped,
//!   whole pages of it, until the emulator ends.
#![allow(unsafe_code)]

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::{ptr, slice};

use pebble_abi::map::PAGE;

type Id = u64;
type Callback = extern "C" fn(c_uint, *mut c_void);
type Access = extern "C" fn(c_uint, u32, u64, *mut c_void);

/// `QEMU_PLUGIN_CB_NO_REGS`, `QEMU_PLUGIN_MEM_RW`, `QEMU_PLUGIN_INLINE_ADD_U64`.
const NO_REGISTERS: c_int = 0;
const LOADS_AND_STORES: c_int = 3;
const ADD: c_int = 0;

#[repr(C)]
struct RawBlock(c_void);
#[repr(C)]
struct RawInstruction(c_void);
#[repr(C)]
struct RawAddress(c_void);

// SAFETY: these are the header's declarations.
unsafe extern "C" {
    fn qemu_plugin_register_vcpu_tb_trans_cb(id: Id, callback: extern "C" fn(Id, *mut RawBlock));
    fn qemu_plugin_register_atexit_cb(id: Id, callback: extern "C" fn(Id, *mut c_void), data: *mut c_void);
    fn qemu_plugin_tb_n_insns(block: *const RawBlock) -> usize;
    fn qemu_plugin_tb_get_insn(block: *const RawBlock, index: usize) -> *mut RawInstruction;
    fn qemu_plugin_insn_data(instruction: *const RawInstruction) -> *const u8;
    fn qemu_plugin_insn_size(instruction: *const RawInstruction) -> usize;
    fn qemu_plugin_insn_vaddr(instruction: *const RawInstruction) -> u64;
    fn qemu_plugin_insn_haddr(instruction: *const RawInstruction) -> *const u8;
    fn qemu_plugin_register_vcpu_tb_exec_cb(
        block: *mut RawBlock,
        callback: Callback,
        flags: c_int,
        data: *mut c_void,
    );
    fn qemu_plugin_register_vcpu_insn_exec_cb(
        instruction: *mut RawInstruction,
        callback: Callback,
        flags: c_int,
        data: *mut c_void,
    );
    fn qemu_plugin_register_vcpu_insn_exec_inline(
        instruction: *mut RawInstruction,
        operation: c_int,
        at: *mut c_void,
        operand: u64,
    );
    fn qemu_plugin_register_vcpu_mem_cb(
        instruction: *mut RawInstruction,
        callback: Access,
        flags: c_int,
        which: c_int,
        data: *mut c_void,
    );
    fn qemu_plugin_mem_is_store(info: u32) -> bool;
    fn qemu_plugin_get_hwaddr(info: u32, address: u64) -> *mut RawAddress;
    fn qemu_plugin_hwaddr_is_io(address: *const RawAddress) -> bool;
    fn qemu_plugin_hwaddr_phys_addr(address: *const RawAddress) -> u64;
}

/// Instructions that the guest has begun. QEMU's own code adds to it, in the thread that calls us.
static COUNTER: AtomicU64 = AtomicU64::new(0);
/// Where the guest's RAM is in the emulator's memory, relative to what QEMU says of accesses; 0: not known
/// yet.
static BASE: AtomicU64 = AtomicU64::new(0);

/// A block that is being translated.
pub struct Block<'a>(*mut RawBlock, PhantomData<&'a RawBlock>);
/// One of its instructions.
pub struct Instruction<'a>(*mut RawInstruction, PhantomData<&'a RawInstruction>);

impl<'a> Block<'a> {
    pub fn instructions(&self) -> impl Iterator<Item = Instruction<'a>> {
        let block = self.0;
        // SAFETY: the block is valid, and the index in it.
        let at = move |index| unsafe { qemu_plugin_tb_get_insn(block, index) };
        // SAFETY: the block is valid.
        let count = unsafe { qemu_plugin_tb_n_insns(block) };
        (0..count).map(move |index| Instruction(at(index), PhantomData))
    }

    /// [`crate::begin`] is called whenever it begins.
    pub fn on_begin(&self, number: usize) {
        // SAFETY: the block is valid; what is handed over is a number.
        unsafe {
            qemu_plugin_register_vcpu_tb_exec_cb(
                self.0,
                begin,
                NO_REGISTERS,
                ptr::without_provenance_mut(number),
            );
        }
    }
}

impl Instruction<'_> {
    pub fn address(&self) -> u64 {
        // SAFETY: the instruction is valid.
        unsafe { qemu_plugin_insn_vaddr(self.0) }
    }

    pub fn bytes(&self) -> Vec<u8> {
        // SAFETY: the instruction is valid, and QEMU keeps so many bytes of it.
        unsafe {
            slice::from_raw_parts(qemu_plugin_insn_data(self.0), qemu_plugin_insn_size(self.0)).to_vec()
        }
    }

    /// The first four bytes of it, in the guest's order.
    pub fn word(&self) -> u32 {
        let mut word = [0; 4];
        self.bytes().iter().zip(&mut word).for_each(|(from, to)| *to = *from);
        u32::from_le_bytes(word)
    }

    /// Where the page in which it begins is in the emulator's memory; `None`: it is not in RAM.
    fn host_page(&self) -> Option<u64> {
        // SAFETY: the instruction is valid.
        let host = unsafe { qemu_plugin_insn_haddr(self.0) };
        (!host.is_null()).then(|| host.addr() as u64 & !(PAGE - 1))
    }

    /// All of that page.
    pub fn page(&self) -> Vec<u8> {
        let Some(page) = self.host_page() else { return Vec::new() };
        // SAFETY: it is a page of the guest's RAM, which stays mapped. The guest, whose thread calls us, does
        // not run meanwhile.
        unsafe { slice::from_raw_parts(ptr::with_exposed_provenance(page as usize), PAGE as usize).to_vec() }
    }

    /// Counts it when it is executed.
    pub fn count(&self) {
        // SAFETY: the instruction is valid; the counter is static, and an atomic has its number's layout.
        unsafe { qemu_plugin_register_vcpu_insn_exec_inline(self.0, ADD, COUNTER.as_ptr().cast(), 1) }
    }

    /// [`crate::executed`] is called before it is executed.
    pub fn on_execution(&self, register: Option<u8>) {
        // SAFETY: the instruction is valid; the site lives for ever.
        unsafe {
            qemu_plugin_register_vcpu_insn_exec_cb(self.0, executed, NO_REGISTERS, self.site(register));
        }
    }

    /// [`crate::touched`] is called behind each access of it, with what it has loaded into the register.
    pub fn on_access(&self, register: Option<u8>) {
        let site = self.site(register);
        // SAFETY: the instruction is valid; the site lives for ever.
        unsafe { qemu_plugin_register_vcpu_mem_cb(self.0, touched, NO_REGISTERS, LOADS_AND_STORES, site) }
    }

    fn site(&self, register: Option<u8>) -> *mut c_void {
        let page = self.host_page().map(|host| (self.address() & !(PAGE - 1), host));
        ptr::from_ref(Box::leak(Box::new(Site { page, register }))).cast_mut().cast()
    }
}

/// What a callback must know of its instruction.
struct Site {
    /// Where the instruction's page is: in the guest's address space, and in the emulator's memory.
    page: Option<(u64, u64)>,
    register: Option<u8>,
}

extern "C" fn translate(_: Id, block: *mut RawBlock) {
    crate::translate(&Block(block, PhantomData));
}

extern "C" fn begin(_: c_uint, data: *mut c_void) {
    crate::begin(data.addr(), COUNTER.load(Relaxed));
}

extern "C" fn executed(_: c_uint, site: *mut c_void) {
    // SAFETY: it is what `site` has made, and is never changed.
    let site = unsafe { &*site.cast::<Site>() };
    crate::executed(site.register, COUNTER.load(Relaxed));
}

extern "C" fn touched(_: c_uint, info: u32, address: u64, site: *mut c_void) {
    // SAFETY: it is what `site` has made, and is never changed.
    let site = unsafe { &*site.cast::<Site>() };
    // SAFETY: asks about a number that QEMU has made.
    let store = unsafe { qemu_plugin_mem_is_store(info) };
    let loaded = site.register.filter(|_| !store && address.is_multiple_of(8));
    let loaded = loaded.and_then(|register| Some((register, word(info, address, site)?)));
    crate::touched(address, store, loaded);
}

/// The word that was just loaded.
///
/// QEMU tells where it is in the guest's RAM. Where that is in the emulator's memory is learned from the
/// first word that is in the page of the instruction that loads it, as constants of the boot code are.
fn word(info: u32, address: u64, site: &Site) -> Option<u64> {
    // SAFETY: called in the callback of the access, as QEMU demands.
    let told = unsafe { qemu_plugin_get_hwaddr(info, address) };
    if told.is_null() {
        return None;
    }
    // SAFETY: what QEMU has told is valid until it is asked again, and is not null.
    let (device, at) = unsafe { (qemu_plugin_hwaddr_is_io(told), qemu_plugin_hwaddr_phys_addr(told)) };
    if device {
        return None;
    }
    let page = address & !(PAGE - 1);
    if let Some((_, host)) = site.page.filter(|(guest, _)| *guest == page && BASE.load(Relaxed) == 0) {
        BASE.store((host + address % PAGE).wrapping_sub(at), Relaxed);
    }
    let base = BASE.load(Relaxed);
    let host = ptr::with_exposed_provenance::<u64>(base.wrapping_add(at) as usize);
    // SAFETY: a word of the guest's RAM, which stays mapped; it is aligned, as its address in the guest is.
    (base != 0).then(|| unsafe { ptr::read_volatile(host) })
}

extern "C" fn finish(_: Id, _: *mut c_void) {
    crate::finish(COUNTER.load(Relaxed));
}

/// The interface's version.
#[unsafe(no_mangle)]
pub static qemu_plugin_version: c_int = 1;

/// # Safety
/// QEMU calls it, with so many strings.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qemu_plugin_install(
    id: Id,
    _: *const c_void,
    count: c_int,
    arguments: *const *const c_char,
) -> c_int {
    let string = |n: usize| {
        // SAFETY: there are `count` of them, each with its end.
        unsafe { CStr::from_ptr(*arguments.add(n)) }.to_string_lossy().into_owned()
    };
    let arguments: Vec<String> = (0..count.max(0) as usize).map(string).collect();
    if let Err(error) = crate::install(&arguments) {
        eprintln!("pebble profile: {error}");
        return -1;
    }
    // SAFETY: the number is the one that QEMU has given us; the functions have the types that it calls.
    unsafe {
        qemu_plugin_register_vcpu_tb_trans_cb(id, translate);
        qemu_plugin_register_atexit_cb(id, finish, ptr::null_mut());
    }
    0
}
