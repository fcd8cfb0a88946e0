//! Making a program of a file: one at a time, since there is one loader's window.
//!
//! From the moment a domain exists it is in the table, and it is the loader's alone as long as it is
//! `Loading` there. What goes wrong after that moment is undone by the undertaker, like any other death. No
//! number is used again under the loader's feet: only the loader creates domains.

use crate::components::console;
use crate::kept::{self, Contents};
use crate::services::{self, WINDOW_PAGES};
use crate::{TABLE, end_if_idle};
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use pebble::abi::errno;
use pebble::abi::map::{EXECUTE, PAGE, READ, STARTUP_VA, WRITE};
use pebble::abi::{link, sys};
use pebble::api::{self, Errno, PortalError};
use pebble::io::File;
use pebble::portal;
use pebble::region::{LOADER, fence_i};
use pebble::sync::Lock;
use pebble::wait::{Parking, leave};
use pebble::words::{Asid, PortalIndex, ThreadId, VirtAddr};
use pebble_arch::Native;
use pebble_process::elf::{Image, Problem, Segment};
use pebble_process::fault::Printable;
use pebble_process::manifest::{self, Limits, Mistake};
use pebble_process::startup::{self, Path};
use pebble_process::table::{Plan, State};
use pebble_process::{FILE_LIMIT, FIRST_PRIORITY, PAGE_LIMIT, PRIORITY};

/// The thread that may create domains and use the window.
static LOADING: Lock<Option<Loading>> = Lock::new(None);
/// Those that wait for it.
static NEXT: Parking<1> = Parking::new(&services::WILL_WAKE, &services::WAKE);

/// Who is the loader holds it for long, and whoever waits is parked: the scheduler does not know that it is
/// waited for. So it is as urgent as the most urgent that has asked meanwhile; or one of the lowest priority
/// would never be done while others compute.
struct Loading {
    thread: ThreadId,
    /// Its own priority, and that which it has now.
    own: u64,
    now: u64,
}

/// The loader is whoever has this.
pub struct Turn(());

/// The loader, at the beginning of an entry. While somebody else has it, which may be for long, the call ends
/// with status `WAIT`.
pub fn turn() -> Turn {
    let thread = ThreadId::from(api::get_thread_id());
    let own = services::priority(thread);
    let mut loading = LOADING.lock();
    let Some(other) = &mut *loading else {
        *loading = Some(Loading { thread, own, now: own });
        return Turn(());
    };
    if own > other.now {
        other.now = own;
        services::set_priority(other.thread, own);
    }
    NEXT.enter(0);
    drop(loading);
    leave()
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut loading = LOADING.lock();
        let done = loading.take();
        // Under the lock: who comes meanwhile waits for that, and so lends this thread what it needs to wake
        // the others.
        NEXT.wake(0);
        drop(loading);
        // Last: until then they wait for it.
        if let Some(Loading { thread, own, now }) = done
            && now != own
        {
            services::set_priority(thread, own);
        }
    }
}

/// What the undertaker shall print.
static REFUSALS: Lock<Vec<Refusal>> = Lock::new(Vec::new());
/// More than so many that are not printed yet are forgotten.
const REFUSALS_MAX: usize = 16;

/// What the console is to be told of a program's file: mostly, why it was not started.
pub struct Refusal {
    path: Path,
    why: Why,
}

pub enum Why {
    File(Problem),
    Import([u64; link::NAMELEN / 8], PortalError),
    Export(String, PortalError),
    /// In the place of a component: an interface that this one has is missing, or its portals cannot be made.
    Incomplete(Errno),
    Manifest(Mistake),
    /// The manifest's pages are too few for it to begin.
    Pages(u64),
    /// It does not understand, or want, the state of the component in use.
    State(Errno),
    /// It ran, but nobody heard what it had to say.
    Unheard(Errno),
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "process: {}: ", Text(&self.path))?;
        match &self.why {
            Why::File(problem) => write!(f, "not a program: {problem}"),
            Why::Import(name, error) => write!(f, "import {}: {error}", Text(name)),
            // Whose it is, the path says.
            Why::Export(name, PortalError::Specification(_, error)) => {
                write!(f, "export {}: {error}", Printable(name))
            }
            Why::Export(name, error) => write!(f, "export {}: {error}", Printable(name)),
            Why::Manifest(mistake) => write!(f, "{mistake}"),
            Why::Pages(pages) => write!(f, "manifest: pages = {pages} is not enough to start it"),
            Why::Incomplete(errno::ENOENT) => {
                write!(f, "an interface of the component in use is missing, or has another specification")
            }
            Why::Incomplete(error) => write!(f, "portals of the clients: {error}"),
            Why::Unheard(error) => write!(f, "output lost: {error}"),
            Why::State(error) => write!(f, "the state of the component in use: {error}"),
        }
    }
}

/// A packed name or path.
pub struct Text<'a>(pub &'a [u64]);

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut bytes = [0; link::PATHLEN];
        let len = link::unpack(self.0, &mut bytes);
        Printable(core::str::from_utf8(&bytes[..len]).unwrap_or("?")).fmt(f)
    }
}

/// Remembers why, for the console, and gives the caller's error.
pub fn refuse(path: &Path, why: Why) -> Errno {
    let error = match &why {
        Why::File(problem) => problem.errno(),
        Why::Manifest(_) | Why::Pages(_) => errno::ENOEXEC,
        Why::Import(_, error) | Why::Export(_, error) => (*error).into(),
        Why::Incomplete(error) | Why::State(error) | Why::Unheard(error) => *error,
    };
    let mut refusals = REFUSALS.lock();
    if refusals.len() < REFUSALS_MAX && refusals.try_reserve(1).is_ok() {
        refusals.push(Refusal { path: *path, why });
    }
    drop(refusals);
    services::signal();
    error
}

pub fn next_refusal() -> Option<Refusal> {
    let mut refusals = REFUSALS.lock();
    (!refusals.is_empty()).then(|| refusals.remove(0))
}

/// A whole file of the file server.
pub fn read(path: &Path) -> Result<Contents, Errno> {
    read_if(path, |_| true)
}

/// The same, if so many bytes are `granted`. Whoever this is for may read it: the file server is asked each
/// time, also about a file that has been read before.
pub fn read_if(path: &Path, granted: impl FnOnce(u64) -> bool) -> Result<Contents, Errno> {
    let fixed = services::fixed(path)?;
    if let Some(contents) = Contents::known(fixed) {
        return if granted(contents.len() as u64) { Ok(contents) } else { Err(errno::EAGAIN) };
    }
    let file = File(api::answer(portal::call(sys::SYS_FILE_OPEN, *path))? as usize);
    let result = contents(&file, fixed, granted);
    file.close();
    result
}

fn contents(file: &File, fixed: u64, granted: impl FnOnce(u64) -> bool) -> Result<Contents, Errno> {
    let size = file.seek(0, sys::SEEK_ABOUT)? / sys::ABOUT_SIZE;
    if size > FILE_LIMIT {
        return Err(errno::ENOEXEC);
    }
    if !granted(size) {
        return Err(errno::EAGAIN);
    }
    let mut contents = Contents::new(size as usize)?;
    file.read_exact(contents.room())?;
    // Nothing is read there: the VM manager looks whether it is so.
    let shown = if fixed == 0 { None } else { file.seek(0, sys::SEEK_SHOW).ok() };
    contents.name(fixed, shown.map(|shown| shown % sys::SHOWN_SIZE));
    Ok(contents)
}

/// Before anybody calls.
pub fn prepare() {
    REFUSALS.prepare();
    kept::prepare();
    LOADING.prepare();
    NEXT.prepare();
}

/// A new, suspended child.
pub fn spawn(parent: Asid, path: Path) -> Result<Asid, Errno> {
    let _loading = turn();
    let control = services::subject()?.control;
    TABLE.lock().prepare(parent)?;
    let data = read(&path)?;
    let image =
        Image::parse::<Native>(&data, PAGE_LIMIT).map_err(|problem| refuse(&path, Why::File(problem)))?;
    let limits = limits(&path, &image)?;
    let priority = if TABLE.lock().is_boot(parent) { FIRST_PRIORITY } else { PRIORITY };
    let plan = Plan { path, entry: image.entry, end: image.end(), limits };
    let child = services::create(image.float, limits.priority.unwrap_or(priority), &limits)
        .map_err(|error| too_small(&plan, error))?;
    TABLE.lock().create(parent, child, plan, console());
    let built = build(child, &plan, (&data, &image), control).map_err(|error| too_small(&plan, error));
    finish(child, State::Suspended, built)
}

/// Out of memory, while the machine has more than any program may: it is the manifest that gives too little.
fn too_small(plan: &Plan, error: Errno) -> Errno {
    let pages = plan.limits.pages;
    let limited = error == errno::ENOMEM && pages < PAGE_LIMIT;
    if limited && services::free_pages().is_ok_and(|free| free > PAGE_LIMIT) {
        refuse(&plan.path, Why::Pages(pages))
    } else {
        error
    }
}

/// What the file's manifest says, or that beside it.
fn limits(path: &Path, image: &Image) -> Result<Limits, Errno> {
    let beside = match image.manifest {
        Some(_) => None,
        None => startup::with_ending(path, ".toml").and_then(|path| read(&path).ok()),
    };
    let bytes = image.manifest.or(beside.as_deref()).unwrap_or_default();
    manifest::parse(bytes).map_err(|mistake| refuse(path, Why::Manifest(mistake)))
}

/// The child is made, or goes.
pub fn finish(child: Asid, state: State, made: Result<(), Errno>) -> Result<Asid, Errno> {
    let mut table = TABLE.lock();
    let result = made.and_then(|()| table.release(child, state));
    if result.is_err() {
        table.abandon(child);
        drop(table);
        services::signal();
    }
    result.map(|()| child)
}

/// `control`: what a controlled domain starts is controlled as it is.
fn build(
    child: Asid,
    plan: &Plan,
    (file, image): (&Contents, &Image),
    control: Option<(Asid, VirtAddr)>,
) -> Result<(), Errno> {
    let path = &plan.path;
    let family = TABLE.lock().family(child);
    services::family(child, family)?;
    services::name(child, startup::name_for_rules(path))?;
    for segment in &image.segments {
        load(child, file, segment)?;
    }
    services::map(child, VirtAddr(STARTUP_VA), 1, READ | WRITE)?;
    services::heap(child, VirtAddr(image.end()))?;
    match control {
        None => services::fill_table(child)?,
        Some((controller, handler)) => services::control(child, controller, handler, false)?,
    };
    services::limit(child, plan.limits.portals)?;
    services::keep_share(child, &plan.limits)?;
    import(child, path, image, services::open_for)?;
    image.exports.iter().try_for_each(|export| {
        let registered = services::register(child, export.name, export.spec, export.entry);
        registered.map(|_| ()).map_err(|error| refuse(path, Why::Export(export.name.into(), error)))
    })
}

/// Opens what the program imports, by `open`, and writes the indices where it wants them.
pub fn import(
    child: Asid,
    path: &Path,
    image: &Image,
    open: impl Fn(Asid, &str) -> Result<PortalIndex, PortalError>,
) -> Result<(), Errno> {
    for import in &image.imports {
        let optional = import.name.strip_prefix(link::OPTIONAL);
        let index = match (optional, open(child, optional.unwrap_or(import.name))) {
            (_, Ok(index)) => index,
            (Some(_), Err(PortalError::Errno(errno::ENOENT))) => PortalIndex(0),
            (_, Err(error)) => {
                return Err(refuse(path, Why::Import(link::pack(import.name).unwrap_or_default(), error)));
            }
        };
        if import.slot == 0 {
            continue;
        }
        let page = import.slot / PAGE * PAGE;
        services::with_pages(child, VirtAddr(page), 1, || LOADER.write(import.slot - page, index.get()))?;
    }
    fence_i();
    Ok(())
}

/// What is never written to is seen where the file lies in the archive; of all else there is a copy.
pub fn load(child: Asid, file: &Contents, segment: &Segment) -> Result<(), Errno> {
    let rights = READ | if segment.write { WRITE } else { 0 } | if segment.execute { EXECUTE } else { 0 };
    if let Some(shown) = file.shown().filter(|_| segment.is_of_file()) {
        let (address, from) = (VirtAddr(segment.address), VirtAddr(shown + segment.offset));
        return services::map_shown(child, address, from, segment.pages, rights).map(|_| ());
    }
    let mut bytes = segment.bytes.chunks((WINDOW_PAGES * PAGE) as usize);
    for first in (0..segment.pages).step_by(WINDOW_PAGES as usize) {
        let address = VirtAddr(segment.address + first * PAGE);
        services::map(child, address, WINDOW_PAGES.min(segment.pages - first), rights)?;
        let Some(bytes) = bytes.next() else { continue };
        let pages = (bytes.len() as u64).div_ceil(PAGE);
        services::with_pages(child, address, pages, || LOADER.write_bytes(0, bytes))?;
    }
    Ok(())
}

/// Fills the start-up page and starts the first thread.
pub fn start(caller: Asid, child: Asid) -> Result<(), Errno> {
    let _loading = turn();
    TABLE.lock().start(caller, child)?;
    let launched = launch(child).map_err(|error| {
        let plan = TABLE.lock().gathered(child).map(|(plan, _)| *plan);
        plan.map_or(error, |plan| too_small(&plan, error))
    });
    if launched.is_ok() {
        TABLE.lock().forget_arguments(child);
    }
    let_go(child, if launched.is_ok() { State::Running } else { State::Suspended });
    launched
}

/// A child that may run already is no longer the loader's. Doomed meanwhile: it may even have run and ended,
/// or have no thread any more; who frees threads has not looked at one that was the loader's.
pub fn let_go(child: Asid, state: State) {
    let released = TABLE.lock().release(child, state);
    match released {
        Ok(()) if state == State::Running => end_if_idle(child),
        Ok(()) => {}
        Err(_) => services::signal(),
    }
}

fn launch(child: Asid) -> Result<(), Errno> {
    let mut entry = VirtAddr(0);
    services::with_pages(child, VirtAddr(STARTUP_VA), 1, || {
        if let Some((plan, gathered)) = TABLE.lock().gathered(child) {
            entry = VirtAddr(plan.entry);
            for (offset, word) in gathered.words(&plan.path, plan.end) {
                LOADER.write(offset, word);
            }
        }
    })?;
    services::spawn_thread(child, entry).map(|_| ())
}
