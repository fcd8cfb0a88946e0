//! Generates `pebble.h`, the C view of the ABI crate.
//!
//! `lib/c/pebble.h.in` holds the prototypes and macros, which are C and need no generator; the lines in it
//! that start with `@` are replaced by what the ABI crate says, and what depends on the board.
#![forbid(unsafe_code)]

use std::fmt::Write;

use pebble_abi::fault::Cause;
use pebble_abi::{call, capability, control, errno, link, map, specification, status, sys};
const TEMPLATE: &str = include_str!("../../../lib/c/pebble.h.in");

/// What differs from board to board.
pub struct Board<'a> {
    /// Ticks a second.
    pub time_hz: u64,
    /// The illegal instruction by which a program gives up.
    pub abort: u32,
    /// `processor.h` of the processor's folder in `lib/c`.
    pub processor: &'a str,
}

/// The whole header.
pub fn header(board: &Board) -> String {
    let mut out = String::new();
    for line in TEMPLATE.lines() {
        match line {
            "@constants@" => out += &constants(board),
            "@errors@" => out += &errors(),
            "@processor@" => out += board.processor,
            _ => out.extend([line, "\n"]),
        }
    }
    out
}

/// Numbers for C and assembler alike.
fn constants(board: &Board) -> String {
    let startup = map::STARTUP_VA as usize;
    let mut out = String::new();
    for ((index, interface), (name, meaning)) in sys::ALL.iter().zip(sys::TEXTS) {
        define(&mut out, name, *index as u64, &format!("{interface}: {meaning}"));
    }
    for (name, code, meaning) in status::ALL {
        define(&mut out, name, code, &format!("status: {meaning}"));
    }
    let mut texts = Vec::new();
    for (number, (name, text)) in (0u64..).zip(specification::TEXTS) {
        define(&mut out, &format!("SPECIFICATION_{name}"), number, "");
        texts.push(format!("{text:?}"));
    }
    let _ = writeln!(out, "#define SPECIFICATION_TEXTS {}", texts.join(", "));
    for (name, value, meaning) in [
        ("NPORTALS", map::TABLE_ENTRIES, "entries of a portal table"),
        ("FIRST_FREE", sys::FIRST_FREE, "first index for imports and opened portals"),
        ("NAMELEN", link::NAMELEN, "longest interface name"),
        ("SPECLEN", link::SPECLEN, "longest specification in an export record"),
        ("PATHLEN", link::PATHLEN, "longest path"),
        ("MAX_RESULTS", call::MAX_RESULTS, "further result words (\">n\")"),
        ("ABORT_INSTRUCTION", board.abort as usize, "by which a program gives up: a fault that is told so"),
        ("RIGHT_READ", map::READ as usize, "rights to pages"),
        ("RIGHT_WRITE", map::WRITE as usize, ""),
        (
            "FAULT_FETCH",
            Cause::Fetch as usize,
            "why a handler of page faults is called: the page is to be executed,",
        ),
        ("FAULT_LOAD", Cause::Load as usize, "read,"),
        ("FAULT_STORE", Cause::Store as usize, "written"),
        ("PAGE_BYTES", map::PAGE as usize, "bytes of a page"),
        ("IO_BYTES", call::IO_BYTES, "bytes that one read or write call carries in registers"),
        ("FILE_READ", sys::FILE_READ, "portals of an open file, from its first index"),
        ("FILE_WRITE", sys::FILE_WRITE, ""),
        ("FILE_SEEK", sys::FILE_SEEK, ""),
        ("FILE_CLOSE", sys::FILE_CLOSE, ""),
        ("FILE_PORTALS", sys::FILE_PORTALS, ""),
        ("SEEK_ABOUT", sys::SEEK_ABOUT as usize, "whence: what a file is"),
        ("SEEK_CUT", sys::SEEK_CUT as usize, "whence: cuts a file off at the offset"),
        (
            "SEEK_READ_PAGE",
            sys::SEEK_READ_PAGE as usize,
            "whence: makes a portal to read into a page that is lent,",
        ),
        ("SEEK_WRITE_PAGE", sys::SEEK_WRITE_PAGE as usize, "to write from one"),
        ("SEEK_SHOW", sys::SEEK_SHOW as usize, "whence: shows a file of the archive to the caller: address,"),
        ("SHOWN_SIZE", sys::SHOWN_SIZE as usize, "and bytes from there on times this"),
        ("SEEK_FLIP", sys::SEEK_FLIP as usize, "whence: pages change places with the other side's of a pipe"),
        ("SEEK_READY", sys::SEEK_READY as usize, "whence: which calls would not wait, as bits:"),
        ("READY_READ", sys::READY_READ as usize, ""),
        ("READY_WRITE", sys::READY_WRITE as usize, ""),
        ("READY_END", sys::READY_END as usize, "nobody is at the other side any more"),
        ("ABOUT_DIRECTORY", sys::ABOUT_DIRECTORY as usize, "bits of what it is"),
        ("ABOUT_WRITABLE", sys::ABOUT_WRITABLE as usize, ""),
        ("ABOUT_SIZE", sys::ABOUT_SIZE as usize, "its size is multiplied by this"),
        ("WRITE_APPEND", sys::WRITE_APPEND as usize, "beside the count of a write: at the end of the file"),
        ("CONTROL_NOTIFY", control::NOTIFY as usize, "operations of SYS_CONTROL"),
        ("CONTROL_NOTICE", control::NOTICE as usize, ""),
        ("CONTROL_CREATE_CHILD", control::CREATE_CHILD as usize, ""),
        ("CONTROL_BEHALF_INDEX", control::BEHALF_INDEX as usize, ""),
        ("CONTROL_FAULT_RANGE", control::FAULT_RANGE as usize, ""),
        ("CONTROL_GUARD", control::GUARD as usize, ""),
        ("GUARD_NAMES", control::guard::NAMES as usize, "ways of portal_guard"),
        ("GUARD_LIST", control::guard::LIST as usize, ""),
        ("GUARD_ADMIT", control::guard::ADMIT as usize, ""),
        ("GUARD_ASK", control::guard::ASK as usize, ""),
        ("CONTROL_WATCH", control::WATCH as usize, ""),
        ("CONTROL_UNWOUND", control::UNWOUND as usize, ""),
        (
            "CAP_TRANSFER",
            capability::FLAG_TRANSFER as usize,
            "flags of a capability, passed as rights | flags << 16: can be passed on",
        ),
        ("CAP_ONCE", capability::FLAG_ONCE as usize, "gone once it has been used or passed on"),
        ("TIME_HZ", board.time_hz as usize, "ticks of hrtime in a second"),
        ("IMAGE_VA", map::IMAGE_VA as usize, "where components are linked"),
        ("STACK_SLOT", map::STACK_SLOT as usize, "size and alignment of a stack"),
        ("USER_END", map::USER_END as usize, "the end of a domain's addresses"),
        ("STARTUP_ARGC", startup + link::Startup::ARGC, "start-up page: number of arguments"),
        ("STARTUP_STDIN", startup + link::Startup::STDIN, "paths of files 0, 1 and 2"),
        ("STARTUP_STDOUT", startup + link::Startup::STDOUT, ""),
        ("STARTUP_STDERR", startup + link::Startup::STDERR, ""),
        (
            "STARTUP_ARGS",
            startup + link::Startup::ARGS,
            "the arguments, zero-terminated; then the environment",
        ),
        ("STARTUP_END", startup + link::Startup::ARGS + link::Startup::ARGS_MAX, ""),
    ] {
        define(&mut out, name, value as u64, meaning);
    }
    let places: Vec<String> = control::PLACE.iter().map(u8::to_string).collect();
    let _ = writeln!(out, "#define BEHALF_PLACES {} /* portals on behalf, plus one */", places.join(","));
    out
}

fn define(out: &mut String, name: &str, value: u64, meaning: &str) {
    let value = if value < 10_000 { value.to_string() } else { format!("{value:#x}") };
    let comment = if meaning.is_empty() { String::new() } else { format!(" /* {meaning} */") };
    // Writing to a `String` cannot fail.
    let _ = writeln!(out, "#define {name} {value}{comment}");
}

/// The C library has its own `errno.h`; a server's numbers must be the same. It has none of ours.
fn errors() -> String {
    let mut out = String::new();
    for error in errno::ALL {
        let (name, number, text) = (format!("{error:?}"), error.number(), error.text());
        if *error >= errno::OWN {
            define(&mut out, &name, number as u64, text);
            continue;
        }
        let _ = writeln!(out, "_Static_assert({name} == {number}, \"{name}: {text}\");");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOARD: Board = Board { time_hz: 1_000_000, abort: 7, processor: "" };

    #[test]
    fn every_portal_and_error_is_there() {
        let text = header(&BOARD);
        for ((index, _), (name, _)) in sys::ALL.iter().zip(sys::TEXTS) {
            assert!(text.contains(&format!("#define {name} {index} ")), "{name}");
        }
        for (name, code, _) in status::ALL {
            assert!(text.contains(&format!("#define {name} {code} ")), "{name}");
        }
        for error in errno::ALL {
            let number = error.number();
            let checked = text.contains(&format!("_Static_assert({error:?} == {number},"));
            let own = *error >= errno::OWN && text.contains(&format!("#define {error:?} {number} "));
            assert!(checked || own, "{error:?}");
        }
        assert!(!text.lines().any(|line| line.starts_with('@')), "a line of the template was not replaced");
    }

    #[test]
    fn comments_cannot_end_early() {
        assert!(constants(&BOARD).lines().all(|line| line.matches("*/").count() <= 1));
    }
}
