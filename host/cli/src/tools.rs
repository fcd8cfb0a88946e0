//! The programs that Pebble calls, and where its own files are.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, anyhow, bail};

use pebble_abi::map;
use pebble_image::{Board, Report, board};
use pebble_qemu::Machine;

use crate::isa::Isa;
use crate::project;
use crate::ui::{self, usage};

/// The LLVM that Debian's packages provide under versioned names.
const LLVM: &str = "19";

/// Where manifests are: those that somebody would run, those of tests, those of measurements. A name is in
/// one of them alone.
const SYSTEMS: [&str; 3] = ["systems", "tests/systems", "bench/systems"];

/// The board that systems are made for unless another is named. What is made for it lies in `target/` itself.
pub const DEFAULT_BOARD: &str = map::BOARD;
/// Names all of them, where that has a meaning.
pub const EVERY_BOARD: &str = "all";
/// By which builds of components know the board.
pub const BOARD_VARIABLE: &str = "PEBBLE_BOARD";

pub struct Tools {
    /// The repository.
    pub root: PathBuf,
    /// Where the user's own systems and sources are: the repository, or a [project](crate::project).
    pub home: PathBuf,
    /// The board that systems are made for, and what is asked of its processor.
    pub board: Board,
    pub isa: &'static Isa,
    cargo: PathBuf,
    rustc: PathBuf,
}

impl Tools {
    /// The bootstrap script says where things are; without it the repository is where this was built.
    pub fn find(board: &str) -> Result<Self> {
        let path = |name: &str, otherwise: &str| env::var_os(name).map_or(otherwise.into(), PathBuf::from);
        let root = path("PEBBLE_ROOT", concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
        let root = root.canonicalize().with_context(|| root.display().to_string())?;
        let board = find_board(&root.join("boards"), board)?;
        let isa = Isa::of(board.processor).with_context(|| {
            format!("board {}: there are no systems for {} yet", board.name, board.processor)
        })?;
        let home = project::find()?.unwrap_or_else(|| root.clone());
        Ok(Tools {
            root,
            home,
            board,
            isa,
            cargo: path("PEBBLE_CARGO", "/usr/bin/cargo"),
            rustc: path("PEBBLE_RUSTC", "/usr/bin/rustc"),
        })
    }

    /// The same for every other board.
    pub fn other_boards(&self) -> Result<Vec<Self>> {
        let all = names(&self.root.join("boards"));
        all.iter().filter(|name| **name != self.board.name).map(|name| Tools::find(name)).collect()
    }

    pub fn target(&self) -> PathBuf {
        self.root.join("target")
    }

    /// Host code is compiled for this board.
    pub fn is_default(&self) -> bool {
        self.board.name == DEFAULT_BOARD
    }

    /// Where goes what is made for the board.
    pub fn made(&self) -> PathBuf {
        if self.is_default() { self.target() } else { self.target().join(&self.board.name) }
    }

    pub fn is_project(&self) -> bool {
        self.home != self.root
    }

    /// The same of the user's own.
    pub fn made_at_home(&self) -> PathBuf {
        let target = self.home.join("target");
        if self.is_default() { target } else { target.join(&self.board.name) }
    }

    /// The user's own packages are those of a project.
    pub fn at_home(&self, mut cargo: Command, made: PathBuf) -> Command {
        cargo.current_dir(&self.home).env("CARGO_TARGET_DIR", made);
        cargo
    }

    /// A file that the user names: his own, or else Pebble's.
    pub fn file(&self, named: &str) -> Option<PathBuf> {
        [&self.home, &self.root].map(|folder| folder.join(named)).into_iter().find(|path| path.exists())
    }

    /// What an image for this board says of itself.
    pub fn report(&self, image: &Path) -> Result<Report> {
        let shown = self.shown(image);
        let bytes = fs::read(image)
            .with_context(|| format!("no image {shown}: `./pebble build` makes that of a system"))?;
        let machine = bytes.get(18..20).map_or(0, |two| u16::from_le_bytes([two[0], two[1]]));
        let report = pebble_image::read_report(&bytes);
        let report = report.with_context(|| format!("{shown} is not an image of Pebble"))?;
        if machine != self.isa.machine {
            let other = self.other_boards()?.into_iter().find(|tools| tools.isa.machine == machine);
            let other = other.map_or_else(String::new, |tools| format!(": use --board {}", tools.board.name));
            bail!("{shown} is made for another processor than that of the board {}{other}", self.board.name);
        }
        Ok(report)
    }

    pub fn rustc(&self) -> &Path {
        &self.rustc
    }

    /// A path as the user would name it.
    pub fn shown(&self, path: &Path) -> String {
        let here = env::current_dir().unwrap_or_default();
        path.strip_prefix(here).unwrap_or(path).display().to_string()
    }

    /// Cargo in the workspace, shielded from settings that are meant for other projects.
    pub fn cargo(&self, subcommand: &str) -> Command {
        let mut command = Command::new(&self.cargo);
        command.current_dir(&self.root).arg(subcommand);
        command.env("RUSTC", &self.rustc).env("RUSTDOC", self.rustc.with_file_name("rustdoc"));
        command
            .env_remove("RUSTFLAGS")
            .env_remove("CARGO_BUILD_TARGET")
            .env_remove(BOARD_VARIABLE)
            .env("CARGO_TARGET_DIR", self.target());
        // As the bootstrap script builds this tool: tests then share its libraries.
        command.env("CARGO_PROFILE_DEV_PANIC", "unwind");
        command
    }

    /// `cargo fmt` of the toolchain in use.
    pub fn cargo_fmt(&self) -> Command {
        let mut command = Command::new(self.cargo.with_file_name("cargo-fmt"));
        command.current_dir(&self.root).arg("fmt");
        command.env("CARGO", &self.cargo).env("RUSTFMT", self.cargo.with_file_name("rustfmt"));
        command
    }

    /// Cargo for components: builds the core library too, and links with LLVM's linker.
    pub fn cross_cargo(&self) -> Result<Command> {
        self.cross_cargo_for(self.isa.rust_target)
    }

    /// The same for what is linked with C.
    pub fn cross_cargo_for(&self, target: &str) -> Result<Command> {
        let linker_dir = self.linker_dir()?;
        let mut command = self.cargo("build");
        command.env("RUSTC_BOOTSTRAP", "1").env("PATH", path_with(&linker_dir));
        command.env("RUSTFLAGS", self.isa.rust_flags).env(BOARD_VARIABLE, &self.board.name);
        command.env("CARGO_TARGET_DIR", self.made());
        command.arg("--release");
        if target.ends_with(".json") {
            // Wherever the packages are.
            command.arg("--target").arg(self.root.join(target)).args(["-Z", "json-target-spec"]);
        } else {
            command.args(["--target", target]);
        }
        command.args(["-Z", "build-std=core,alloc,compiler_builtins"]);
        command.args(["-Z", "build-std-features=compiler-builtins-mem"]);
        Ok(command)
    }

    /// A directory in which the linker has the name by which rustc calls it.
    fn linker_dir(&self) -> Result<PathBuf> {
        let linker = self.llvm("ld.lld")?.canonicalize()?;
        let dir = self.target().join("tools/bin");
        let link = dir.join("rust-lld");
        if fs::read_link(&link).ok().as_deref() != Some(&linker) {
            fs::create_dir_all(&dir)?;
            let _ = fs::remove_file(&link);
            symlink(&linker, &link).with_context(|| link.display().to_string())?;
        }
        Ok(dir)
    }

    /// One of LLVM's programs.
    pub fn llvm(&self, name: &str) -> Result<PathBuf> {
        in_path(&format!("{name}-{LLVM}")).or_else(|| in_path(name)).ok_or_else(|| missing(name))
    }

    /// Where cargo puts what it builds for such a target.
    pub fn cross_made(&self, target: &str) -> PathBuf {
        self.made().join(Path::new(target).file_stem().unwrap_or_default()).join("release")
    }

    /// The emulator of the board.
    pub fn qemu(&self) -> Result<PathBuf> {
        let name = &self.board.emulator.program;
        in_path(name).ok_or_else(|| missing(name))
    }

    /// The emulated board.
    pub fn machine(&self) -> Result<Machine> {
        let emulator = &self.board.emulator;
        let mut machine = Machine::new(self.qemu()?, &emulator.arguments).to_count(&emulator.counting);
        machine.status = match emulator.status {
            board::Status::Emulator => pebble_qemu::Status::Emulator,
            board::Status::Console => pebble_qemu::Status::Console,
        };
        Ok(machine)
    }

    /// The manifest of a system: a name in one of [`SYSTEMS`], or a path.
    pub fn manifest(&self, system: &str) -> Result<PathBuf> {
        if system.ends_with(".toml") {
            let path = PathBuf::from(system);
            return if path.exists() {
                Ok(path)
            } else {
                Err(usage(format!("there is no manifest {system}")))
            };
        }
        let path = |folder| self.file(&format!("{folder}/{system}.toml"));
        if let Some(path) = SYSTEMS.iter().find_map(path) {
            return Ok(path);
        }
        let names = self.systems();
        let known = if names.is_empty() { "none".into() } else { names.join(", ") };
        let path = if Path::new(system).exists() { ": a path to a manifest ends in .toml" } else { "" };
        Err(usage(format!("there is no system {system:?}{path}; known: {known}")))
    }

    /// What the products of a system are called: as its manifest, with a number that tells where that is
    /// unless it is in one of [`SYSTEMS`].
    pub fn system_name(&self, manifest: &Path) -> String {
        let name = manifest.file_stem().unwrap_or_default().to_string_lossy();
        let whole = manifest.canonicalize().unwrap_or_else(|_| manifest.into());
        if SYSTEMS.iter().any(|folder| whole.parent() == Some(&self.root.join(folder))) {
            return name.into_owned();
        }
        let mut hasher = DefaultHasher::new();
        whole.hash(&mut hasher);
        format!("{name}-{:08x}", hasher.finish() as u32)
    }

    /// Names of the user's manifests in `systems/`.
    pub fn systems(&self) -> Vec<String> {
        names(&self.home.join("systems"))
    }
}

/// Of the descriptions in a folder.
fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let stem = |path: PathBuf| Some(path.file_stem()?.to_str()?.to_string());
    let files = entries.map(|e| e.path()).filter(|p| p.extension().is_some_and(|x| x == "toml"));
    let mut names: Vec<_> = files.filter_map(stem).collect();
    names.sort();
    names
}

fn find_board(folder: &Path, name: &str) -> Result<Board> {
    let known = names(folder);
    if name == EVERY_BOARD {
        return Err(usage(format!("--board {EVERY_BOARD} is for tests; one of {}", known.join(", "))));
    }
    if !known.iter().any(|known| known == name) {
        return Err(usage(format!("there is no board {name:?}; known: {}", known.join(", "))));
    }
    let path = folder.join(name).with_extension("toml");
    Board::load(&path).with_context(|| path.display().to_string())
}

pub fn missing(name: &str) -> anyhow::Error {
    anyhow!(
        "{name} is not installed; remove target/tools/checked and run ./pebble again to have it installed"
    )
}

pub fn in_path(name: &str) -> Option<PathBuf> {
    env::split_paths(&env::var_os("PATH")?).map(|dir| dir.join(name)).find(|path| path.is_file())
}

fn path_with(first: &Path) -> OsString {
    let rest = env::var_os("PATH").unwrap_or_default();
    let dirs = std::iter::once(first.to_path_buf()).chain(env::split_paths(&rest));
    env::join_paths(dirs).unwrap_or(rest)
}

/// Runs a program to its end; its output is shown only with `-v` or when it fails.
pub fn run_quietly(command: &mut Command, what: &str) -> Result<()> {
    if ui::verbose() {
        // Standard output belongs to the command that the user gave.
        let status = command.stdin(Stdio::null()).stdout(std::io::stderr()).status();
        return if status.with_context(|| program(command))?.success() {
            Ok(())
        } else {
            Err(anyhow!("{what} failed"))
        };
    }
    let output = command.stdin(Stdio::null()).output().with_context(|| program(command))?;
    if output.status.success() {
        return Ok(());
    }
    eprint!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    bail!("{what} failed")
}

/// Names a program in an error message.
pub fn program(command: &Command) -> String {
    format!("cannot start {}", command.get_program().to_string_lossy())
}
