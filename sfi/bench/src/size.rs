//! Code size: the bytes of executable sections in a program's objects.
//!
//! What was linked is not compared: linkers leave out different things, and the C library would hide the
//! program.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use object::read::elf::{ElfFile64, FileHeader, SectionHeader};
use object::{Endianness, elf};

/// Of all objects beside an executable.
pub fn objects(executable: &Path) -> Result<u64> {
    let directory = executable.parent().unwrap_or(Path::new("."));
    let mut total = 0;
    for entry in fs::read_dir(directory).with_context(|| directory.display().to_string())? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "o") {
            total += code(&path)?;
        }
    }
    Ok(total)
}

fn code(path: &Path) -> Result<u64> {
    let bytes = fs::read(path).with_context(|| path.display().to_string())?;
    let file: ElfFile64 = ElfFile64::parse(&*bytes).with_context(|| path.display().to_string())?;
    let sections = file.elf_header().sections(Endianness::Little, &*bytes)?;
    let sizes = sections.iter().filter(|s| s.sh_flags(Endianness::Little).contains(elf::SHF_EXECINSTR));
    Ok(sizes.map(|s| s.sh_size(Endianness::Little)).sum())
}

#[cfg(test)]
mod tests {
    #[test]
    fn this_test_has_code() {
        let own = std::env::current_exe().unwrap();
        let size = super::code(&own).unwrap();
        assert!(size > 10_000 && size < std::fs::metadata(own).unwrap().len());
        assert!(super::code(std::path::Path::new("/etc/passwd")).is_err());
    }
}
