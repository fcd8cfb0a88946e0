//! Archives, good and bad, and the files in them.

use std::collections::BTreeMap;

use pebble_abi::capability::{ALL, FILE as KIND, READ, WRITE};
use pebble_abi::errno::*;
use pebble_abi::link::pack;
use pebble_abi::share;
use pebble_abi::sys::{
    ABOUT_DIRECTORY, ABOUT_SIZE, ABOUT_WRITABLE, SEEK_ABOUT, SEEK_APPEND, SEEK_CUT, WRITE_APPEND,
};
use pebble_abi::words::Asid;
use pebble_boot::rules::{About, Patterns, Rule, matches};
use pebble_file::*;
use proptest::prelude::*;

const FILE: u32 = 0o100_644;
const DIR: u32 = 0o040_755;

fn record(out: &mut Vec<u8>, path: &str, mode: u32, links: u32, data: &[u8]) {
    let fields = [1, mode, 0, 0, links, 0, data.len() as u32, 0, 0, 0, 0, path.len() as u32 + 1, 0];
    out.extend(b"070701");
    fields.iter().for_each(|f| out.extend(format!("{f:08x}").bytes()));
    out.extend(path.bytes());
    out.push(0);
    out.resize(out.len().next_multiple_of(4), 0);
    out.extend(data);
    out.resize(out.len().next_multiple_of(4), 0);
}

fn archive(entries: &[(&str, u32, &[u8])]) -> Vec<u8> {
    let mut out = Vec::new();
    entries.iter().for_each(|(path, mode, data)| record(&mut out, path, *mode, 1, data));
    record(&mut out, "TRAILER!!!", 0, 1, b"");
    out
}

fn sample() -> Vec<u8> {
    archive(&[
        (".", DIR, b""),
        ("readme", FILE, b"Pebble\n"),
        ("./bin/cat", FILE, b"\x7fELF and so on, longer than a single call can carry"),
        ("etc", DIR, b""),
        ("etc/a/b/c", FILE, b""),
        ("etc/a.txt", FILE, b"a"),
    ])
}

fn problem(bytes: &[u8]) -> ArchiveError {
    Archive::parse(bytes).err().unwrap()
}

#[test]
fn bad_archives_say_where() {
    let at = |offset, problem| ArchiveError { offset, problem };
    assert_eq!(problem(b""), at(0, Problem::Truncated));
    assert_eq!(problem(b"070702"), at(0, Problem::Magic));
    let good = archive(&[("a", FILE, b"data")]);
    let next = 110 + 2 + 4;
    assert_eq!(problem(&good[..next]), at(next, Problem::Truncated));
    assert_eq!(problem(&good[..next - 1]), at(next - 4, Problem::Truncated));
    let mut bad = good.clone();
    bad[next + 5] = b'2';
    assert_eq!(problem(&bad), at(next, Problem::Magic));
    let mut bad = good.clone();
    bad[60] = b'+';
    assert_eq!(problem(&bad), at(54, Problem::Number));
    let mut bad = good;
    bad[111] = b'x';
    assert_eq!(problem(&bad), at(110, Problem::Name));
    assert_eq!(problem(&archive(&[("a", 0o120_777, b"b")])), at(0, Problem::Type));
    assert_eq!(problem(&archive(&[("a/../b", FILE, b"")])), at(0, Problem::Path));
    assert_eq!(problem(&archive(&[("a//b", FILE, b"")])), at(0, Problem::Path));
    let second = 110 + 2;
    assert_eq!(problem(&archive(&[("a", FILE, b""), ("./a", FILE, b"")])), at(second, Problem::Twice));
    assert_eq!(problem(&archive(&[("a", FILE, b""), ("a/b", FILE, b"")])), at(second, Problem::NotDirectory));
    assert_eq!(
        problem(&archive(&[("a", FILE, b""), (&"b".repeat(40), FILE, b"")])),
        at(second, Problem::TooLong)
    );
    let mut linked = Vec::new();
    record(&mut linked, "a", FILE, 2, b"");
    assert_eq!(problem(&linked), at(0, Problem::HardLink));
    assert_eq!(problem(&linked).to_string(), "archive offset 0: a file with several links");
}

#[test]
fn paths_lead_to_contents() {
    let bytes = sample();
    let archive = Archive::parse(&bytes).unwrap();
    let see = |path: &str| archive.lookup(path).map(|node| archive.contents(node).unwrap());
    assert_eq!(see("/"), Ok(Contents::Directory("bin/\netc/\nram/\nreadme\n")));
    for path in ["/etc", "etc/", "//etc/.", "/bin/../etc", "/../etc"] {
        assert_eq!(see(path), Ok(Contents::Directory("a/\na.txt\n")), "{path}");
    }
    assert_eq!(see("/etc/a/b"), Ok(Contents::Directory("c\n")));
    assert_eq!(see("/readme"), Ok(Contents::File(b"Pebble\n")));
    for path in ["/readme/", "/readme/.", "/readme/..", "/readme/x"] {
        assert_eq!(see(path), Err(ENOTDIR), "{path}");
    }
    for path in ["/read", "/readme2", "/no/..", "/etc/a/b/d"] {
        assert_eq!(see(path), Err(ENOENT), "{path}");
    }
    assert_eq!(see(&"x".repeat(41)), Err(ENAMETOOLONG));
}

#[test]
fn seek_stays_inside() {
    let bytes = sample();
    let mut files = Files::new(Archive::parse(&bytes).unwrap());
    let f = files.open(Asid(1), pack("/readme").unwrap(), ALL).unwrap();
    assert_eq!(files.seek(f, -2i64 as u64, SEEK_END), 5);
    assert_eq!(files.seek(f, 3, SEEK_CUR), -EINVAL);
    assert_eq!(files.seek(f, -6i64 as u64, SEEK_CUR), -EINVAL);
    assert_eq!(files.seek(f, i64::MIN as u64, SEEK_SET), -EINVAL);
    assert_eq!(files.seek(f, i64::MAX as u64, SEEK_END), -EINVAL);
    assert_eq!(files.seek(f, 0, 5), -EINVAL);
    assert_eq!(files.seek(f, 0, SEEK_CUT), -EROFS);
    assert_eq!(files.read(f, 32), (2, [u64::from_le_bytes(*b"e\n\0\0\0\0\0\0"), 0, 0, 0]));
    assert_eq!(files.read(f, 32), (0, [0; 4]));
    assert_eq!(files.write(f, 1, [0; 4]), -EROFS);
    assert_eq!(files.close(f), 0);
    for result in [files.read(f, 1).0, files.write(f, 1, [0; 4]), files.seek(f, 0, 0), files.close(f)] {
        assert_eq!(result, -EBADF);
    }
}

#[test]
fn domains_are_limited_and_cleaned_up() {
    let bytes = sample();
    let mut files = Files::new(Archive::parse(&bytes).unwrap());
    let path = pack("/readme").unwrap();
    let opened: Vec<u64> = (0..FILES_PER_DOMAIN).map(|_| files.open(Asid(1), path, ALL).unwrap()).collect();
    assert_eq!(files.open(Asid(1), path, ALL), Err(EMFILE));
    assert!(files.open(Asid(2), path, ALL).is_ok());
    files.gone(Asid(1));
    assert_eq!(files.in_use(), 1);
    let again = files.open(Asid(3), path, ALL).unwrap();
    assert!(!opened.contains(&again));
    assert_eq!(files.read(opened[0], 1).0, -EBADF);
    assert_eq!(files.open(Asid(1), [0; 5], ALL), Err(ENOENT));
    assert_eq!(files.open(Asid(1), [u64::MAX; 5], ALL), Err(ENOENT));
}

fn tree() -> impl Strategy<Value = BTreeMap<String, Vec<u8>>> {
    let path = prop::collection::vec("[a-c]{1,2}", 1..4).prop_map(|p| p.join("/"));
    prop::collection::btree_map(path, prop::collection::vec(any::<u8>(), 0..100), 0..12).prop_map(
        |mut tree| {
            // No file is also a directory.
            let paths: Vec<String> = tree.keys().cloned().collect();
            tree.retain(|path, _| !paths.iter().any(|p| p.starts_with(&format!("{path}/"))));
            tree
        },
    )
}

proptest! {
    #[test]
    fn what_is_in_comes_out(tree in tree(), max in 1u64..40) {
        let entries: Vec<_> = tree.iter().rev().map(|(p, d)| (p.as_str(), FILE, d.as_slice())).collect();
        let bytes = archive(&entries);
        let mut files = Files::new(Archive::parse(&bytes).unwrap());
        for (path, data) in &tree {
            let f = files.open(Asid(1), pack(path).unwrap(), ALL).unwrap();
            let mut got: Vec<u8> = Vec::new();
            loop {
                let (count, words) = files.read(f, max);
                prop_assert!((0..=32.min(max as i64)).contains(&count));
                let all: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
                prop_assert!(all[count as usize..].iter().all(|b| *b == 0));
                got.extend(&all[..count as usize]);
                if count == 0 {
                    break;
                }
            }
            prop_assert_eq!(&got, data);
            files.close(f);
        }
        // Walking the listings finds exactly the files.
        let archive = Archive::parse(&bytes).unwrap();
        let mut found = Vec::new();
        let mut todo = vec![String::new()];
        while let Some(dir) = todo.pop() {
            let node = archive.lookup(&format!("/{dir}")).unwrap();
            let Contents::Directory(listing) = archive.contents(node).unwrap() else { panic!("{dir}") };
            for name in listing.lines() {
                if name.ends_with('/') { todo.push(format!("{dir}{name}")) } else { found.push(format!("{dir}{name}")) }
            }
        }
        found.sort();
        prop_assert_eq!(found, tree.keys().cloned().collect::<Vec<_>>());
    }

    #[test]
    fn damage_is_never_fatal(
        at in 0usize..600,
        byte in any::<u8>(),
        cut in 0usize..700,
        words in any::<[u64; 5]>(),
    ) {
        let mut bytes = sample();
        if let Some(b) = bytes.get_mut(at) {
            *b = byte;
        }
        bytes.truncate(cut);
        if let Ok(archive) = Archive::parse(&bytes) {
            let mut files = Files::new(archive);
            let _ = files.open(Asid(1), words, ALL);
            files.read(words[0], words[1]);
            files.seek(words[0], words[1], words[2] % 4);
            files.close(words[0]);
        }
    }
}

/// Whatever follows the trailer is never looked at, nor anything beyond the limit.
#[test]
fn the_archive_knows_its_end() {
    let mut bytes = sample();
    let end = bytes.len();
    bytes.resize(end + 4096, 0xff);
    let start = |n: usize| &bytes[..n];
    let found = length(start, bytes.len()).unwrap();
    assert!(found <= end && end - found < 4);
    Archive::parse(&bytes[..found]).unwrap();
    assert_eq!(length(start, found), Ok(found));
    let short =
        ArchiveError { offset: length(start, found - 1).unwrap_err().offset, problem: Problem::Truncated };
    assert_eq!(length(start, found - 1), Err(short));
    bytes[0] = b'1';
    assert_eq!(length(|n| &bytes[..n], found), Err(ArchiveError { offset: 0, problem: Problem::Magic }));
}

#[test]
fn files_in_memory_are_written_read_and_removed() {
    let bytes = sample();
    let mut files = Files::new(Archive::parse(&bytes).unwrap());
    let path = |text: &str| pack::<5>(text).unwrap();
    assert_eq!(files.open(Asid(1), path("/ram/note"), ALL), Err(ENOENT));
    assert_eq!(files.create(Asid(1), path("/etc/note"), ALL), Err(EROFS));
    assert_eq!(files.create(Asid(1), path("ram/a/b"), ALL), Err(ENOENT));
    let note = files.create(Asid(1), path("/ram/note"), ALL).unwrap();
    let text: Vec<u8> = (0..1000u32).map(|n| n as u8).collect();
    for chunk in text.chunks(32) {
        let mut whole = [0; 32];
        whole[..chunk.len()].copy_from_slice(chunk);
        let words = std::array::from_fn(|n| u64::from_le_bytes(*whole[n * 8..].first_chunk().unwrap()));
        assert_eq!(files.write(note, chunk.len() as u64, words), chunk.len() as i64);
    }
    let reader = files.open(Asid(2), path("ram/note"), ALL).unwrap();
    assert_eq!(files.open(Asid(2), path("ram/note/"), ALL), Err(ENOTDIR));
    assert_eq!(files.open(Asid(2), path("ram/note/."), ALL), Err(ENOTDIR));
    let spelled = files.open(Asid(2), path("/bin/..//./ram//note"), ALL).unwrap();
    assert_eq!(files.close(spelled), 0);
    assert_eq!(files.create(Asid(2), path("/ram/note/"), ALL), Err(EINVAL));
    assert_eq!(files.remove(path("/ram/note/"), ALL), Err(ENOTDIR));
    let mut seen = Vec::<u8>::new();
    loop {
        match files.read(reader, 32) {
            (0, _) => break,
            (count, words) => seen.extend(&words.map(u64::to_le_bytes).as_flattened()[..count as usize]),
        }
    }
    assert_eq!(seen, text);
    let directory = files.open(Asid(2), path("/ram"), ALL).unwrap();
    assert_eq!(files.read(directory, 32).0, 5);
    // Made anew it is empty, and who reads it starts where it ends.
    files.create(Asid(3), path("ram/note"), ALL).unwrap();
    assert_eq!(files.read(reader, 32).0, 0);
    assert_eq!(files.remove(path("/ram/note"), ALL), Ok(()));
    assert_eq!(files.write(note, 1, [65, 0, 0, 0]), -EBADF);
    assert_eq!(files.read(reader, 32).0, 0);
    assert_eq!(files.remove(path("/ram/note"), ALL), Err(ENOENT));
}

#[test]
fn memory_for_files_has_limits() {
    let bytes = sample();
    let mut files = Files::new(Archive::parse(&bytes).unwrap());
    let path = |n: usize| pack::<5>(&format!("ram/{n}")).unwrap();
    for n in 0..RAM_FILES {
        // Each family has what it gets in any case; the last ones are left to the image.
        let family = if n < RAM_FILES - share::RAM_FILES.reserve {
            1 + (n / share::RAM_FILES.least) as u16
        } else {
            0
        };
        let file = files.create(Client { asid: Asid(9), family }, path(n), ALL).unwrap();
        assert_eq!(files.close(file), 0);
    }
    let image = Client { asid: Asid(9), family: 0 };
    assert_eq!(files.create(image, path(RAM_FILES), ALL), Err(ERAM));
    files.remove(path(3), ALL).unwrap();
    assert!(files.create(image, path(RAM_FILES), ALL).is_ok());
    let big = files.create(Asid(1), path(0), ALL).unwrap();
    let full = (0..).find(|_| files.write(big, 32, [0; 4]) != 32).unwrap();
    assert_eq!(full, RAM_FILE_MAX / 32);
    assert_eq!(files.write(big, 32, [0; 4]), -ENOSPC);
}

#[test]
fn a_family_has_its_share_of_memory() {
    let bytes = sample();
    let mut files = Files::new(Archive::parse(&bytes).unwrap());
    let path = |n: usize| pack::<5>(&format!("ram/{n}")).unwrap();
    let client = |family| Client { asid: Asid::from(10 + family), family };
    let fill = |files: &mut Files, file| (0..).find(|_| files.write(file, 32, [0; 4]) != 32).unwrap() * 32;
    let [hog, other] = [client(1), client(2)];
    let big: [u64; 2] = [0, 1].map(|n| files.create(hog, path(n), ALL).unwrap());
    let filled: usize = big.iter().map(|file| fill(&mut files, *file)).sum();
    assert!((share::RAM_BYTES.family - 4096..=share::RAM_BYTES.family).contains(&filled), "{filled}");
    assert_eq!(files.write(big[1], 32, [0; 4]), -ERAM);
    for n in 2..share::RAM_FILES.family {
        let file = files.create(hog, path(n), ALL).unwrap();
        assert_eq!(files.close(file), 0);
    }
    assert_eq!(files.create(hog, path(30), ALL), Err(ERAM));
    assert!(files.open(hog, path(2), ALL).is_ok());
    // Others have theirs; whoever makes a file longer has it, with all that is in it.
    let theirs = files.create(other, path(30), ALL).unwrap();
    assert_eq!(files.write(theirs, 32, [0; 4]), 32);
    let longer = files.open(hog, path(30), ALL).unwrap();
    assert_eq!(files.write(longer, 4, [1; 4]), 4, "as long as it was");
    assert_eq!(files.write(longer, 32 | WRITE_APPEND, [0; 4]), -ERAM);
    let small = files.open(other, path(2), ALL).unwrap();
    assert_eq!(files.write(small, 32, [0; 4]), 32);
    assert!(files.create(hog, path(31), ALL).is_ok(), "one of its files is another's now");
    // What is left behind is nobody's, but there.
    files.gone(hog.asid);
    files.gone(Asid(1));
    assert!(files.create(client(1), path(32), ALL).is_ok());
    assert_eq!(files.open(other, path(0), ALL).map(|file| files.seek(file, 0, SEEK_END) > 4 << 20), Ok(true));
}

#[test]
fn a_successor_goes_on_where_the_old_one_stopped() {
    let bytes = sample();
    let mut old = Files::new(Archive::parse(&bytes).unwrap());
    let path = |text: &str| pack::<5>(text).unwrap();
    let readme = old.open(Asid(1), path("/readme"), ALL).unwrap();
    assert_eq!(old.read(readme, 3).0, 3);
    let note = old.create(Asid(2), path("/ram/note"), ALL).unwrap();
    assert_eq!(old.write(note, 5, [0x6f_6c6c_6568, 0, 0, 0]), 5);
    let saved = old.save().unwrap();
    let mut new = Files::new(Archive::parse(&bytes).unwrap());
    assert_eq!(new.load(FORMAT + 1, &saved), Err(EINVAL));
    assert_eq!(new.load(FORMAT, &saved[1..]), Err(EINVAL));
    assert_eq!(new.load(FORMAT, &saved), Ok(()));
    assert_eq!(new.read(readme, 32), old.read(readme, 32));
    assert_eq!(new.write(note, 1, [0x21, 0, 0, 0]), 1);
    let reader = new.open(Asid(3), path("/ram/note"), ALL).unwrap();
    assert_eq!(new.read(reader, 32), (6, [0x216f_6c6c_6568, 0, 0, 0]));
    assert_eq!(new.in_use(), 3);
}

fn guarded<'a>(bytes: &'a [u8], patterns: &[&str]) -> Files<'a> {
    let rule = |pattern: &&str| Rule { about: About::File((*pattern).into()), ..Rule::default() };
    let rules: Vec<Rule> = patterns.iter().map(rule).collect();
    Files::new(Archive::parse(bytes).unwrap()).under(Patterns::of(&rules, KIND))
}

#[test]
fn rules_see_where_a_path_leads() {
    let bytes = sample();
    let files = guarded(&bytes, &["/etc/a/*", "/readme", "/ram/x*"]);
    let sets = |path: &str| files.guarded(pack(path).unwrap());
    for path in ["/readme", "readme", "//readme/", "/./bin/../readme/.", "/../readme"] {
        assert_eq!(sets(path).last(), Some(&2), "{path}");
    }
    // A directory ends in `/`: what is about all that is in it is about its listing.
    for path in ["/etc/a", "etc/a/", "etc//a/b", "/etc/a/b/..", "/etc/a/none"] {
        assert_eq!(sets(path).last(), Some(&1), "{path}");
    }
    assert_eq!(sets("ram//./xyz"), [4]);
    for path in ["/", "/etc", "/etc/a.txt", "/etc/ab", "/readme2", "/ram", "/ram/y", ""] {
        assert_eq!(sets(path), [0; 0], "{path}");
    }
    // What is on the way is not to be learnt by turning back.
    assert_eq!(sets("/etc/a/b/../../../bin"), [1, 1, 0, 0]);
    assert_eq!(sets("/readme/../bin"), [2, 0]);
}

#[test]
fn an_open_file_keeps_its_rights() {
    let bytes = sample();
    let mut files = Files::new(Archive::parse(&bytes).unwrap());
    let note = pack("/ram/note").unwrap();
    assert_eq!(files.create(Asid(1), note, READ), Err(EACCES));
    let writer = files.create(Asid(1), note, WRITE).unwrap();
    assert_eq!(files.write(writer, 1, [65, 0, 0, 0]), 1);
    assert_eq!(files.read(writer, 1).0, -EACCES);
    let reader = files.open(Asid(1), note, READ).unwrap();
    assert_eq!(files.write(reader, 1, [65, 0, 0, 0]), -EACCES);
    assert_eq!(files.read(reader, 9), (1, [65, 0, 0, 0]));
    assert_eq!(files.remove(note, READ), Err(EACCES));
    let saved = files.save().unwrap();
    let mut new = Files::new(Archive::parse(&bytes).unwrap());
    new.load(FORMAT, &saved).unwrap();
    assert_eq!((new.read(writer, 1).0, new.write(reader, 1, [0; 4])), (-EACCES, -EACCES));
    assert_eq!(files.remove(note, WRITE), Ok(()));
}

/// A spelling of a path: components with what means nothing between.
fn spelling() -> impl Strategy<Value = String> {
    prop::collection::vec("[a-b]{1,2}|\\.|\\.\\.|", 0..8).prop_map(|parts| parts.join("/"))
}

proptest! {
    /// Whatever the spelling, what opens is what the rules have been asked about, and nothing opens that they
    /// have not.
    #[test]
    fn no_spelling_gets_round_a_rule(
        tree in tree(),
        path in spelling(),
        pattern in "/([a-b]{1,2}/?){0,2}\\*?",
    ) {
        // That one leads nowhere.
        prop_assume!(!path.is_empty());
        let entries: Vec<_> = tree.iter().map(|(p, d)| (p.as_str(), FILE, d.as_slice())).collect();
        let bytes = archive(&entries);
        let archive = Archive::parse(&bytes).unwrap();
        let mut files = guarded(&bytes, &[pattern.as_str()]);
        let about = files.guarded(pack(&path).unwrap()).pop().unwrap_or(0) == 1;
        // By the textbook: a stack of names.
        let mut names: Vec<&str> = Vec::new();
        for part in path.split('/') {
            match part {
                "" | "." => {}
                ".." => {
                    names.pop();
                }
                name => names.push(name),
            }
        }
        let normal = names.join("/");
        let directory = normal.is_empty() || tree.keys().any(|p| p.starts_with(&format!("{normal}/")));
        let seen = if directory && !normal.is_empty() { format!("/{normal}/") } else { format!("/{normal}") };
        prop_assert_eq!(about, matches(&pattern, &seen), "{} as {}", path, seen);
        // And that is what it leads to.
        if let Ok(node) = archive.lookup(&path) {
            prop_assert_eq!(archive.lookup(&normal), Ok(node));
            prop_assert!(files.open(Asid(1), pack(&path).unwrap(), ALL).is_ok());
        }
    }
}

/// Two that write to one file, as `> FILE 2>&1` has them, lose nothing; nobody gets a right by asking.
#[test]
fn what_is_opened_at_the_end_stays_there() {
    let bytes = sample();
    let mut files = Files::new(Archive::parse(&bytes).unwrap());
    let path = |text: &str| pack::<5>(text).unwrap();
    let word = |text: &[u8; 8]| [u64::from_le_bytes(*text), 0, 0, 0];
    let first = files.create(Asid(1), path("/ram/a"), ALL).unwrap();
    let [second, third] = [READ | WRITE, READ].map(|r| files.open(Asid(2), path("/ram/a"), r).unwrap());
    for file in [first, second] {
        assert_eq!(files.seek(file, 0, SEEK_APPEND), 0);
    }
    assert_eq!(files.write(first, 4, word(b"one \0\0\0\0")), 4);
    assert_eq!(files.write(second, 4, word(b"two \0\0\0\0")), 4);
    assert_eq!(files.seek(first, 0, SEEK_SET), 0, "what is read is read where one likes");
    assert_eq!(files.read(first, 4), (4, word(b"one \0\0\0\0")));
    assert_eq!(files.write(first, 4, word(b"also\0\0\0\0")), 4);
    assert_eq!(
        files.read(third, 32),
        (12, [u64::from_le_bytes(*b"one two "), u64::from(u32::from_le_bytes(*b"also")), 0, 0])
    );
    assert_eq!(files.seek(third, 0, SEEK_APPEND), -EACCES);
    assert_eq!(files.write(third, 4, word(b"mine\0\0\0\0")), -EACCES);
    for (there, error) in [("/readme", EROFS), ("/ram", EISDIR), ("/etc", EISDIR)] {
        let opened = files.open(Asid(1), path(there), ALL).unwrap();
        assert_eq!(files.seek(opened, 0, SEEK_APPEND), -error, "{there}");
    }
    // It goes with the state to a successor.
    let saved = files.save().unwrap();
    let mut next = Files::new(Archive::parse(&bytes).unwrap());
    next.load(FORMAT, &saved).unwrap();
    assert_eq!(next.seek(second, 0, SEEK_SET), 0);
    assert_eq!(next.write(second, 4, word(b"last\0\0\0\0")), 4);
    assert_eq!(next.seek(second, 0, SEEK_CUR), 16);
    // What is gone is gone.
    assert_eq!(next.remove(path("/ram/a"), ALL), Ok(()));
    assert_eq!(next.write(second, 4, word(b"gone\0\0\0\0")), -EBADF);
}

/// What `open`, `rename` and `stat` of the C library stand on.
#[test]
fn files_are_made_once_renamed_cut_and_appended_to() {
    let bytes = sample();
    let mut files = Files::new(Archive::parse(&bytes).unwrap());
    let path = |text: &str| pack::<5>(text).unwrap();
    let word = |text: &[u8; 8]| [u64::from_le_bytes(*text), 0, 0, 0];
    let a = files.make(Asid(1), path("/ram/a"), ALL).unwrap();
    for there in ["/ram/a", "/readme", "/ram", "/etc"] {
        assert_eq!(files.make(Asid(1), path(there), ALL), Err(EEXIST), "{there}");
    }
    assert_eq!(files.make(Asid(1), path("/ram/b"), READ), Err(EACCES));
    assert_eq!(files.write(a, 8, word(b"12345678")), 8);
    assert_eq!(files.seek(a, 2, SEEK_SET), 2);
    assert_eq!(files.write(a, 2 | WRITE_APPEND, word(b"9a\0\0\0\0\0\0")), 2);
    assert_eq!(files.seek(a, 0, SEEK_CUR), 10);
    assert_eq!(files.seek(a, 0, SEEK_ABOUT) as u64, 10 * ABOUT_SIZE + ABOUT_WRITABLE);
    assert_eq!(files.seek(a, 3, SEEK_CUT), 0);
    assert_eq!(files.seek(a, u64::MAX, SEEK_CUT), 0, "nothing is behind it");
    assert_eq!(files.seek(a, 0, SEEK_END), 3);
    for (directory, bits) in [("/ram", ABOUT_WRITABLE), ("/etc", 0)] {
        let opened = files.open(Asid(1), path(directory), ALL).unwrap();
        let about = files.seek(opened, 0, SEEK_ABOUT) as u64;
        assert_eq!(about % ABOUT_SIZE, bits | ABOUT_DIRECTORY, "{directory}");
        assert_eq!(files.write(opened, 0, [0; 4]), -EISDIR, "{directory}");
    }
    // Who has the file open keeps it; whose place it takes finds nothing more.
    let b = files.create(Asid(2), path("/ram/b"), ALL).unwrap();
    files.write(b, 8, word(b"goes now"));
    assert_eq!(files.rename_to(Asid(1), path("/ram/c"), ALL), Err(EAGAIN), "nothing was named");
    for (from, error) in [("/ram/none", ENOENT), ("/readme", EROFS), ("/ram/", ENOTDIR)] {
        assert_eq!(files.rename(Asid(1), path(from), ALL), Err(error), "{from}");
    }
    assert_eq!(files.rename(Asid(1), path("/ram/a"), READ), Err(EACCES));
    assert_eq!(files.rename(Asid(1), path("/ram/a"), ALL), Ok(()));
    assert_eq!(files.rename_to(Asid(2), path("/ram/c"), ALL), Err(EAGAIN), "another domain's");
    assert_eq!(files.rename_to(Asid(1), path("/ram/b"), READ), Err(EACCES));
    assert_eq!(files.rename_to(Asid(1), path("/ram/b"), ALL), Err(EAGAIN), "asked for once");
    for (to, outcome) in [("/etc/b", Err(EROFS)), ("/ram/b/", Err(ENOTDIR)), ("/ram/b", Ok(()))] {
        assert_eq!(files.rename(Asid(1), path("/ram/a"), ALL), Ok(()));
        assert_eq!(files.rename_to(Asid(1), path(to), ALL), outcome, "{to}");
    }
    assert_eq!(files.open(Asid(1), path("/ram/a"), ALL), Err(ENOENT));
    assert_eq!(files.read(b, 32), (0, [0; 4]));
    files.seek(a, 0, SEEK_SET);
    assert_eq!(files.read(a, 32), (3, word(b"123\0\0\0\0\0")));
    // To itself; and a file that goes meanwhile is not another that took its number.
    assert_eq!(files.rename(Asid(1), path("/ram/b"), ALL), Ok(()));
    assert_eq!(files.rename_to(Asid(1), path("/ram/b"), ALL), Ok(()));
    assert_eq!(files.rename(Asid(1), path("/ram/b"), ALL), Ok(()));
    assert_eq!(files.remove(path("/ram/b"), ALL), Ok(()));
    files.create(Asid(3), path("/ram/other"), ALL).unwrap();
    assert_eq!(files.rename_to(Asid(1), path("/ram/mine"), ALL), Err(EAGAIN));
    assert!(files.open(Asid(3), path("/ram/other"), ALL).is_ok());
    // All that a domain had named goes with it.
    assert_eq!(files.rename(Asid(3), path("/ram/other"), ALL), Ok(()));
    files.gone(Asid(3));
    assert_eq!(files.rename_to(Asid(3), path("/ram/more"), ALL), Err(EAGAIN));
}

/// A file whose data begins with a page, so many zeros, and another file.
fn with_pages(path: &str, data: &[u8], zeros: usize, behind: &[u8]) -> Vec<u8> {
    let mut bytes = archive(&[("a", FILE, b"before")]);
    bytes.truncate(110 + 2 + 8);
    let header = (110 + path.len() + 1).next_multiple_of(4);
    bytes.resize((bytes.len() + header).next_multiple_of(4096) - header, 0);
    record(&mut bytes, path, FILE, 1, data);
    bytes.resize(bytes.len() + zeros, 0);
    record(&mut bytes, "z", FILE, 1, behind);
    record(&mut bytes, "TRAILER!!!", 0, 1, b"");
    bytes
}

#[test]
fn a_file_is_shown_if_nothing_else_is_in_its_pages() {
    let data: Vec<u8> = (0..5000u16).map(|n| n as u8 | 1).collect();
    let bytes = with_pages("large", &data, 8192 - data.len(), b"behind");
    let end = length(|len| &bytes[..len], bytes.len()).unwrap();
    assert_eq!(end.next_multiple_of(4), bytes.len(), "whatever zeros are in it");
    let mut files = Files::new(Archive::parse(&bytes).unwrap());
    let open =
        |files: &mut Files, path: &str, rights| files.open(Asid(7), pack(path).unwrap(), rights).unwrap();
    let large = open(&mut files, "large", READ);
    assert_eq!(files.pages(large, 0), Ok(&data[..]));
    assert_eq!(files.pages(large, 4096), Ok(&data[4096..]));
    for offset in [1, 100, 5000, 8192, u64::MAX, u64::MAX << 12] {
        assert_eq!(files.pages(large, offset), Err(EINVAL), "{offset}");
    }
    assert_eq!(files.seek(large, 0, SEEK_CUR), 0, "it stands where it was");
    let unreadable = open(&mut files, "large", WRITE);
    assert_eq!(files.pages(unreadable, 0), Err(EACCES));
    for path in ["a", "z", "/", "ram"] {
        let file = open(&mut files, path, READ);
        assert_eq!(files.pages(file, 0), Err(EINVAL), "{path}");
    }
    let ram = files.create(Asid(7), pack("ram/a").unwrap(), ALL).unwrap();
    assert_eq!(files.pages(ram, 0), Err(EINVAL), "it may change");
    files.close(large);
    assert_eq!(files.pages(large, 0), Err(EBADF));

    // The other file is in its last page, right behind it or not; or the archive ends in that page.
    for (zeros, behind) in [(0, &[1; 9000][..]), (100, &[1; 9000]), (3188, &[1; 9000]), (0, b"")] {
        let bytes = with_pages("large", &data, zeros, behind);
        let mut files = Files::new(Archive::parse(&bytes).unwrap());
        let large = open(&mut files, "large", READ);
        assert_eq!(files.pages(large, 0), Err(EINVAL), "{zeros}");
    }
}
