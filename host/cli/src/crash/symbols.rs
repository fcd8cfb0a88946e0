//! What a program's file says of addresses: functions, lines, and how a stack is unwound.

use std::path::Path;
use std::rc::Rc;

use addr2line::Context;
use anyhow::{Context as _, Result, ensure};
use gimli::{
    BaseAddresses, CfaRule, DebugFrame, Dwarf, EndianRcSlice, LittleEndian, Register, RegisterRule,
    SectionId, UnwindContext, UnwindSection,
};
use object::{Object, ObjectSection};
use pebble_process::crash::Code;
use pebble_process::elf::symbol;

use super::record::{LINK, PC, Record, STACK};
use crate::isa::Isa;

type Bytes = EndianRcSlice<LittleEndian>;

/// Frames of a backtrace.
const MOST_FRAMES: usize = 64;

pub struct Symbols {
    isa: &'static Isa,
    file: Vec<u8>,
    lines: Context<Bytes>,
    frames: DebugFrame<Bytes>,
}

/// One function under way.
#[derive(Debug, PartialEq, Eq)]
pub struct Frame {
    pub address: u64,
    /// The address stands behind the call that is under way.
    pub called: bool,
    /// Found by its look on the stack: the file does not say how to unwind what it called.
    pub guessed: bool,
}

impl Symbols {
    pub fn load(path: &Path, isa: &'static Isa) -> Result<Symbols> {
        let file = std::fs::read(path).with_context(|| path.display().to_string())?;
        Symbols::of(file, isa).with_context(|| path.display().to_string())
    }

    pub fn of(file: Vec<u8>, isa: &'static Isa) -> Result<Symbols> {
        let object = object::File::parse(&*file)?;
        let section = |name: &str| -> Bytes {
            let data = object.section_by_name(name).and_then(|section| section.data().ok());
            EndianRcSlice::new(Rc::from(data.unwrap_or_default()), LittleEndian)
        };
        let dwarf = Dwarf::load(|id: SectionId| Ok::<_, gimli::Error>(section(id.name())))?;
        let (lines, frames) = (Context::from_dwarf(dwarf)?, DebugFrame::from(section(".debug_frame")));
        Ok(Symbols { isa, file, lines, frames })
    }

    /// Whether this is the file whose code ran.
    pub fn check(&self, text: u64) -> Result<()> {
        let image = self.isa.program(&self.file).map_err(|problem| anyhow::anyhow!("{problem}"))?;
        let own = Code(Some(&image)).number();
        ensure!(own == text, "its code is another (text {own:x}) than that which ran (text {text:x})");
        Ok(())
    }

    /// Functions and lines at an address, the innermost of those that are inlined there first.
    pub fn describe(&self, address: u64, called: bool) -> Vec<String> {
        // A call may be the last instruction of its function.
        let at = address - u64::from(called && address > 0);
        let mut all = Vec::new();
        if let Ok(mut frames) = self.lines.find_frames(at).skip_all_loads() {
            while let Ok(Some(frame)) = frames.next() {
                let name =
                    frame.function.as_ref().and_then(|f| f.raw_name().ok().map(|name| name.into_owned()));
                let place = frame.location.and_then(|l| Some(format!("{}:{}", l.file?, l.line.unwrap_or(0))));
                all.push((name, place));
            }
        }
        let last = symbol(&self.file, at).map(|(name, offset)| (name, offset + address - at));
        if all.is_empty() {
            all.push((None, None));
        }
        let count = all.len();
        let describe = |(n, (name, place)): (usize, (Option<String>, Option<String>))| {
            let name = match last {
                Some((name, offset)) if n + 1 == count => format!("{}+{offset:#x}", plain(name)),
                _ => name.map_or("?".into(), |name| plain(&name)),
            };
            let inlined = if n + 1 < count { " (inlined)" } else { "" };
            let place = place.map_or(String::new(), |place| format!("  {place}"));
            format!("{name}{inlined}{place}").chars().filter(|c| !c.is_control()).collect()
        };
        all.into_iter().enumerate().map(describe).collect()
    }

    /// The functions under way.
    pub fn unwind(&self, record: &Record) -> Vec<Frame> {
        let Some(pc) = record.register(PC) else { return Vec::new() };
        let image = self.isa.program(&self.file).ok();
        let returns = |address: u64| image.as_ref().is_some_and(|image| self.isa.returns(image, address));
        let mut registers: Vec<_> = (0..record.registers.len()).map(|n| record.register(n)).collect();
        let mut frames = vec![Frame { address: pc, called: false, guessed: false }];
        while frames.len() < MOST_FRAMES {
            let last = &frames[frames.len() - 1];
            let before = registers[STACK];
            let at = last.address - u64::from(last.called && last.address > 0);
            let mut guessed = true;
            if let Some(callers) = self.caller(at, last.called, &registers, record) {
                (registers, guessed) = (callers, false);
            }
            if guessed && frames.len() == 1 && registers[LINK].is_some_and(&returns) {
                // Nobody knows whether this function has saved its return address.
            } else if registers[LINK].filter(|_| !guessed).is_none() {
                let from = registers[STACK].unwrap_or(u64::MAX);
                let found = record.stack.range(from..).find(|(_, word)| returns(**word));
                let Some((at, word)) = found else { break };
                (registers[STACK], registers[LINK], guessed) =
                    (Some(at.saturating_add(8)), Some(*word), true);
            }
            let Some(address) = registers[LINK].filter(|address| returns(*address)) else { break };
            if frames.len() > 1 && registers[STACK] <= before {
                break;
            }
            frames.push(Frame { address, called: true, guessed });
        }
        frames
    }

    /// The registers as the caller of the function at `pc` has them, as far as they are known. A function
    /// that never returns may not have saved its return address: if it has made a call, that is lost.
    fn caller(
        &self,
        pc: u64,
        called: bool,
        registers: &[Option<u64>],
        record: &Record,
    ) -> Option<Vec<Option<u64>>> {
        let bases = BaseAddresses::default();
        let mut context = UnwindContext::new();
        let frames = &self.frames;
        let fde = frames.fde_for_address(&bases, pc, DebugFrame::cie_from_offset).ok()?;
        let row = fde.unwind_info_for_address(frames, &bases, &mut context, pc).ok()?;
        let cfa = match row.cfa() {
            CfaRule::RegisterAndOffset { register, offset } => {
                let known = self.isa.layout.registers.iter().position(|r| r.dwarf == Some(register.0))?;
                registers[known]?.checked_add_signed(*offset)?
            }
            CfaRule::Expression(_) => return None,
        };
        let all = self.isa.layout.registers;
        let mut callers = registers.to_vec();
        for (n, value) in callers.iter_mut().enumerate() {
            let Some(number) = all[n].dwarf else { continue };
            match row.register(Register(number)) {
                RegisterRule::Offset(offset) => {
                    *value = cfa.checked_add_signed(offset).and_then(|at| record.stack.get(&at).copied());
                }
                RegisterRule::Undefined | RegisterRule::SameValue if n == LINK => {
                    *value = value.filter(|ra| !called && !fde.contains(*ra));
                }
                RegisterRule::Undefined | RegisterRule::SameValue => {}
                _ => *value = None,
            }
        }
        callers[STACK] = Some(cfa);
        Some(callers)
    }
}

/// A name as it stands in the source.
fn plain(name: &str) -> String {
    let name = format!("{:#}", rustc_demangle::demangle(name));
    name.chars().filter(|c| !c.is_control()).take(200).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::process::Command;
    use std::sync::OnceLock;

    const SOURCE: &str = "
        __attribute__((noinline)) int third(int *at) { *at = 1; return *at; }
        __attribute__((noinline)) int second(int n) { volatile int room[20]; room[n & 7] = n; return third((int *)&room[n]) + room[1]; }
        void _start(void) { volatile int n = second(8) + 1; for (;;) n++; }";

    const SCRIPT: &str =
        "PHDRS { text PT_LOAD FLAGS(5); } SECTIONS { . = 0x10000; .text : { *(.text*) } :text }";

    fn isa() -> &'static Isa {
        Isa::of(pebble_arch::Processor::Riscv64).unwrap()
    }

    fn record() -> Record {
        Record { registers: vec![None; isa().layout.registers.len()], ..Record::default() }
    }

    /// A small program for the board, with its tables.
    fn program() -> &'static [u8] {
        static PROGRAM: OnceLock<Vec<u8>> = OnceLock::new();
        PROGRAM.get_or_init(|| {
            let dir = std::env::temp_dir().join(format!("pebble-crash-{}", std::process::id()));
            std::fs::create_dir_all(&dir).unwrap();
            let (source, elf) = (dir.join("small.c"), dir.join("small"));
            std::fs::write(&source, SOURCE).unwrap();
            let tools = crate::tools::Tools::find("virt").unwrap();
            let mut clang = Command::new(tools.llvm("clang").unwrap());
            clang.args([
                "--target=riscv64-unknown-elf",
                "-march=rv64gc",
                "-mabi=lp64d",
                "-mcmodel=medany",
                "-g",
                "-O1",
            ]);
            clang
                .args(["-ffreestanding", "-fno-asynchronous-unwind-tables", "-c", "-o"])
                .arg(dir.join("small.o"));
            assert!(clang.arg(&source).status().unwrap().success());
            let mut lld = Command::new(tools.llvm("ld.lld").unwrap());
            let script = dir.join("small.ld");
            std::fs::write(&script, SCRIPT).unwrap();
            lld.args(["-static", "-z", "max-page-size=4096", "-e", "_start", "-T"]).arg(&script);
            assert!(lld.arg(dir.join("small.o")).arg("-o").arg(&elf).status().unwrap().success());
            let bytes = std::fs::read(&elf).unwrap();
            std::fs::remove_dir_all(&dir).unwrap();
            bytes
        })
    }

    fn function(name: &str) -> u64 {
        use object::ObjectSymbol;
        let file = object::File::parse(program()).unwrap();
        file.symbols().find(|symbol| symbol.name() == Ok(name)).unwrap().address()
    }

    #[test]
    fn functions_have_names_and_lines() {
        let symbols = Symbols::of(program().to_vec(), isa()).unwrap();
        let [place] = &symbols.describe(function("third"), false)[..] else { panic!() };
        assert!(place.starts_with("third+0x0") && place.contains("small.c:2"), "{place}");
        assert_eq!(symbols.describe(u64::MAX, true), ["?"]);
        assert_eq!(symbols.describe(0, true), ["?"]);
        assert!(symbols.check(1).unwrap_err().to_string().contains("its code is another"));
    }

    #[test]
    fn a_leaf_is_unwound_by_its_return_address() {
        let symbols = Symbols::of(program().to_vec(), isa()).unwrap();
        let image = isa().program(program()).unwrap();
        let mut back = (function("second")..).filter(|address| isa().returns(&image, *address));
        let mut record = record();
        (record.registers[PC], record.registers[LINK]) = (Some(function("third")), back.next());
        record.registers[STACK] = Some(0x2000_0000);
        let frames = symbols.unwind(&record);
        assert!(frames.len() == 2 && !frames[1].guessed, "{frames:?}");
        assert!(symbols.describe(frames[1].address, true)[0].starts_with("second+"));
    }

    proptest! {
        #[test]
        fn neither_files_nor_records_do_harm(
            changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..12),
            cut in proptest::option::of(any::<prop::sample::Index>()),
            registers in proptest::collection::vec(any::<u64>(), 4),
            stack in proptest::collection::btree_map(0_u64..512, any::<u32>(), 0..64),
            near in any::<bool>(),
        ) {
            let mut file = program().to_vec();
            for (at, byte) in changes {
                let at = at.index(file.len());
                file[at] = byte;
            }
            file.truncate(cut.map_or(file.len(), |cut| cut.index(file.len())));
            let mut record = record();
            for (n, value) in registers.iter().enumerate() {
                record.registers[n] = Some(if near { 0x10000 + value % 0x100 } else { *value });
            }
            let sp = record.registers[STACK].unwrap_or(0);
            record.stack = stack.into_iter().map(|(at, word)| (sp.wrapping_add(at * 8), word.into())).collect();
            if let Ok(symbols) = Symbols::of(file, isa()) {
                let frames = symbols.unwind(&record);
                prop_assert!(frames.len() <= MOST_FRAMES);
                for frame in frames {
                    let places = symbols.describe(frame.address, frame.called);
                    let plain = places.iter().all(|place| !place.contains(char::is_control));
                    prop_assert!(plain);
                }
                let _ = symbols.check(7);
            }
        }
    }
}
