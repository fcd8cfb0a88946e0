//! The C library of fault domains: which headers a compilation sees, and what a link gets.
//!
//! `PEBBLE_SFI_LIBC` names the directory where `pebble sfi libc` has put it, with a directory for each level.
//! Without it the tool chain is freestanding: that is how the library itself is compiled.

use crate::arguments::Compiler;
use crate::cc::Error;
use crate::elf::Elf;
use pebble_sfi_rewrite::Level;
use std::path::{Path, PathBuf};
use std::process::Command;

pub struct Library {
    /// With `include` and `lib`.
    install: PathBuf,
}

impl Library {
    /// The library of a level, if there is one.
    pub fn find(level: Level) -> Option<Library> {
        let root = PathBuf::from(std::env::var_os("PEBBLE_SFI_LIBC")?);
        let room = if level == Level::Write { "write" } else { "full" };
        let install = root.join(room).join("install");
        install.join("lib/libc.a").exists().then_some(Library { install })
    }

    /// Its headers instead of the host's, for C++ behind those of libstdc++; the compiler's own stay.
    pub fn headers(&self, compiler: Compiler, cxx: bool) -> Result<Vec<String>, Error> {
        let include = |directory: &Path| ["-isystem".to_string(), directory.display().to_string()];
        let mut own = if cxx { self.cxx_headers() } else { Vec::new() };
        own.extend(include(&self.install.join("include")));
        if compiler == Compiler::Clang {
            return Ok([vec!["-nostdlibinc".to_string()], own].concat());
        }
        let asked = Command::new("gcc").arg("-print-file-name=include").output();
        let asked = asked.map_err(|e| Error::Io("gcc".into(), e))?;
        let theirs = PathBuf::from(String::from_utf8_lossy(&asked.stdout).trim());
        Ok([vec!["-nostdinc".to_string()], own, include(&theirs).to_vec()].concat())
    }

    /// The newest libstdc++ of the system, told what it would otherwise ask glibc's headers, and ours
    /// (`sfi/libc/cxx`) in front.
    fn cxx_headers(&self) -> Vec<String> {
        let versions = std::fs::read_dir("/usr/include/c++").into_iter().flatten().flatten();
        let newest = versions.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok()).max();
        let Some(version) = newest else { return Vec::new() };
        let told = [
            "-nostdinc++",
            "-D__GLIBC_PREREQ(a,b)=0",
            "-D__locale_t=locale_t",
            "-D_GLIBCXX_EXTERN_TEMPLATE=0",
        ];
        let theirs =
            ["/usr/include/c++", "/usr/include/x86_64-linux-gnu/c++"].map(|at| format!("{at}/{version}"));
        let front = self.install.join("include/c++").display().to_string();
        let places = [front].into_iter().chain(theirs).flat_map(|place| ["-isystem".to_string(), place]);
        told.map(String::from).into_iter().chain(places).collect()
    }

    /// What a link of these files needs, before and after them: a program its beginning too.
    pub fn around(&self, program: bool, cxx: bool) -> (Vec<String>, Vec<String>) {
        let file = |name: &str| self.install.join("lib").join(name).display().to_string();
        let first = if program { vec![file("crt1.o")] } else { Vec::new() };
        let runtime = (cxx && Path::new(&file(CXX)).exists()).then(|| file(CXX));
        let place = format!("-L{}", self.install.join("lib").display());
        (first, [Some(place), runtime, Some(file("libc.a"))].into_iter().flatten().collect())
    }
}

/// `sfi/libc/glue/cxx.cc`.
const CXX: &str = "libstdc++.a";

/// Is there a `main` in one of these object files? Then they are a program, and not a library of functions to
/// be called.
pub fn is_program(files: &[String]) -> bool {
    let defines_main = |file: &String| {
        let symbols = Elf::parse(std::fs::read(file).ok()?).ok()?.symbols().ok()?;
        symbols.iter().any(|(name, _)| name == "main$code").then_some(())
    };
    files.iter().any(|file| defines_main(file).is_some())
}
