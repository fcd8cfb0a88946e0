//! The trace: what each thread did, one thing after the other, as Perfetto (ui.perfetto.dev) shows it.
//!
//! A thread has a track, and on it a slice for each domain that it is in, from the portal in to the portal
//! out: who is called lies below who calls. An arrow leads from the one to the other. A thread that waits is
//! in the scheduler, so it has a long slice there. Threads that have the same number one after the other share
//! a track. The unit of time is the instruction: Perfetto calls it a nanosecond.
//!
//! The format is JSON, as Chromium's trace viewer has it ("Trace Event Format"). Slices are matched: each
//! that begins ends, and one that lies in another ends first. An arrow's tail is in the slice that is open
//! before the call, its head in the one that the call opens.

use std::collections::BTreeMap;
use std::io::{self, Write};

use crate::{Names, NodeId, Recording};

/// Nobody else is in the trace: all threads are of one process.
const SYSTEM: u32 = 1;
/// Of thread 0. Perfetto takes track 0 for an idle processor, and one with the process's number for its main
/// thread.
const FIRST_TRACK: u32 = 1000;
/// Domains that a track is named after.
const MOST_NAMED: usize = 3;

struct Writer<'a, W> {
    out: W,
    recording: &'a Recording,
    names: &'a Names,
    arrows: u64,
    first: bool,
}

pub fn write(out: impl Write, recording: &Recording, names: &Names, title: &str) -> io::Result<()> {
    let mut writer = Writer { out, recording, names, arrows: 0, first: true };
    writer.out.write_all(b"{\"displayTimeUnit\":\"ns\",\"traceEvents\":[")?;
    writer.note("process_name", FIRST_TRACK, title)?;
    for (thread, name) in tracks(recording, names) {
        writer.note("thread_name", track(thread), &name)?;
    }
    // Of each thread the nodes whose slices are open.
    let mut open: BTreeMap<u16, Vec<NodeId>> = BTreeMap::new();
    for event in &recording.events {
        let (thread, time) = (event.thread, event.time);
        let slices = open.entry(thread).or_default();
        let way = recording.way(event.node);
        let common = slices.iter().zip(&way).take_while(|(one, other)| one == other).count();
        // Who is where it was has come back from a call that the trace does not show, or has called itself
        // anew.
        let known = !slices.is_empty();
        for _ in slices.drain(common..) {
            writer.end(thread, time)?;
        }
        for node in &way[common..] {
            let called = known && !slices.is_empty();
            writer.begin(thread, time, *node, called)?;
            slices.push(*node);
        }
    }
    // Where events are missing, nobody knows what came behind.
    let last = recording.events.last().map_or(0, |event| event.time);
    let end = if recording.lost == 0 { recording.total.max(last) } else { last };
    for (thread, slices) in open {
        for _ in slices {
            writer.end(thread, end)?;
        }
    }
    writer.out.write_all(b"\n]}\n")?;
    writer.out.flush()
}

fn track(thread: u16) -> u32 {
    FIRST_TRACK + u32::from(thread)
}

/// A thread is called after its number, and after where it has begun; after the first of those that had the
/// number.
fn tracks(recording: &Recording, names: &Names) -> BTreeMap<u16, String> {
    let mut homes: BTreeMap<u16, Vec<&str>> = BTreeMap::new();
    for event in &recording.events {
        let homes = homes.entry(event.thread).or_default();
        let home = recording.way(event.node)[0];
        let name = names.domain(recording.nodes[home.index()].domain);
        if homes.len() <= MOST_NAMED && !homes.contains(&name) {
            homes.push(name);
        }
    }
    let named = |(thread, homes): (u16, Vec<&str>)| {
        let more = if homes.len() > MOST_NAMED { ", ..." } else { "" };
        (thread, format!("{thread}: {}{more}", homes[..homes.len().min(MOST_NAMED)].join(", ")))
    };
    homes.into_iter().map(named).collect()
}

impl<W: Write> Writer<'_, W> {
    fn separate(&mut self) -> io::Result<()> {
        let comma = if std::mem::take(&mut self.first) { "\n" } else { ",\n" };
        self.out.write_all(comma.as_bytes())
    }

    fn note(&mut self, what: &str, track: u32, name: &str) -> io::Result<()> {
        self.separate()?;
        let name = quoted(name);
        write!(
            self.out,
            r#"{{"ph":"M","name":"{what}","pid":{SYSTEM},"tid":{track},"args":{{"name":{name}}}}}"#
        )
    }

    fn begin(&mut self, thread: u16, time: u64, node: NodeId, called: bool) -> io::Result<()> {
        let node = &self.recording.nodes[node.index()];
        let at = place(thread, time);
        if called {
            self.arrows += 1;
            self.separate()?;
            write!(self.out, r#"{{"ph":"s","name":"portal","cat":"portal","id":{},{at}}}"#, self.arrows)?;
        }
        self.separate()?;
        let name = quoted(self.names.domain(node.domain));
        let entry = quoted(&node.parent.map_or_else(|| "start".into(), |_| self.names.entry(node)));
        write!(self.out, r#"{{"ph":"B","name":{name},"cat":"domain",{at},"args":{{"portal":{entry}}}}}"#)?;
        if called {
            self.separate()?;
            let id = self.arrows;
            write!(self.out, r#"{{"ph":"f","bp":"e","name":"portal","cat":"portal","id":{id},{at}}}"#)?;
        }
        Ok(())
    }

    fn end(&mut self, thread: u16, time: u64) -> io::Result<()> {
        self.separate()?;
        write!(self.out, r#"{{"ph":"E",{}}}"#, place(thread, time))
    }
}

/// Times are in thousands.
fn place(thread: u16, time: u64) -> String {
    let (track, whole, rest) = (track(thread), time / 1000, time % 1000);
    format!(r#""pid":{SYSTEM},"tid":{track},"ts":{whole}.{rest:03}"#)
}

/// A string of JSON.
fn quoted(text: &str) -> String {
    let mut out = String::from('"');
    for letter in text.chars() {
        match letter {
            '"' | '\\' => out.extend(['\\', letter]),
            control if control.is_control() => out.push_str(&format!("\\u{:04x}", u32::from(control))),
            other => out.push(other),
        }
    }
    out + "\""
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::Value;

    fn events(recording: &Recording, names: &Names) -> Vec<Value> {
        let mut text = Vec::new();
        write(&mut text, recording, names, "a \"system\"").unwrap();
        let whole: Value = serde_json::from_slice(&text).unwrap();
        whole["traceEvents"].as_array().unwrap().clone()
    }

    /// What Perfetto's importer makes of it: slices with their begin, end and depth, arrows between them.
    /// Whatever it would drop, or bind to another slice than is meant, fails here.
    #[derive(Default)]
    struct Imported {
        /// Begin, end, depth.
        slices: Vec<(f64, f64, usize)>,
        /// Slices by number: who calls, who is called.
        arrows: BTreeMap<i64, (usize, Option<usize>)>,
        tracks: BTreeMap<i64, String>,
    }

    fn imported(events: &[Value]) -> Imported {
        let mut all = Imported::default();
        let mut open: BTreeMap<i64, Vec<usize>> = BTreeMap::new();
        let mut now = 0.0;
        for event in events {
            let track = event["tid"].as_i64().unwrap();
            assert!(event["pid"] == SYSTEM && track >= i64::from(FIRST_TRACK), "{event}");
            let kind = event["ph"].as_str().unwrap();
            if kind == "M" {
                let name = event["args"]["name"].as_str().unwrap();
                let twice = event["name"] == "thread_name" && all.tracks.insert(track, name.into()).is_some();
                assert!(!twice, "{event}");
                continue;
            }
            let time = event["ts"].as_f64().unwrap();
            assert!(time >= now && all.tracks.contains_key(&track), "{event}");
            now = time;
            let slices = open.entry(track).or_default();
            match kind {
                "B" => {
                    assert!(event["name"].as_str().is_some_and(|name| !name.is_empty()), "{event}");
                    slices.push(all.slices.len());
                    all.slices.push((time, f64::NAN, slices.len()));
                }
                "E" => all.slices[slices.pop().expect("none is open")].1 = time,
                "s" => {
                    let from = *slices.last().expect("nobody calls");
                    assert!(all.arrows.insert(event["id"].as_i64().unwrap(), (from, None)).is_none());
                }
                "f" => {
                    assert!(event["bp"] == "e", "binds to the next slice: {event}");
                    let to = all.arrows.get_mut(&event["id"].as_i64().unwrap()).expect("no tail");
                    assert!(to.1.replace(*slices.last().expect("nobody is called")).is_none());
                }
                _ => panic!("{event}"),
            }
        }
        assert!(open.values().all(Vec::is_empty), "slices without an end");
        for (from, to) in all.arrows.values() {
            let (from, to) = (all.slices[*from], all.slices[to.expect("no head")]);
            assert!(to.2 == from.2 + 1 && from.0 <= to.0 && to.1 <= from.1, "{from:?} {to:?}");
        }
        all
    }

    #[test]
    fn calls_lie_in_each_other_and_have_arrows() {
        let (recording, names) = crate::fold::tests::example();
        let events = events(&recording, &names);
        let Imported { slices, arrows, tracks } = imported(&events);
        assert_eq!(slices[1..3], [(0.04, 0.3, 2), (0.09, 0.2, 3)]);
        // The second thread is where it was until the end.
        assert_eq!(slices[3], (0.25, 0.5, 1));
        assert_eq!(arrows.into_values().collect::<Vec<_>>(), [(0, Some(1)), (1, Some(2))]);
        assert_eq!(tracks.into_values().collect::<Vec<_>>(), ["1: shell", "2: shell"]);
        let of = |kind: &str| events.iter().filter(|event| event["ph"] == kind).count();
        assert_eq!(["M", "B", "E", "s", "f"].map(of), [3, 4, 4, 2, 2]);
        let call = events.iter().find(|event| event["args"]["portal"] == "file.read").unwrap();
        assert_eq!((&call["name"], &call["ts"]), (&"file".into(), &0.04.into()));
    }

    proptest! {
        #[test]
        fn whatever_happens_slices_match(
            steps in proptest::collection::vec((0_u64..9, 0_u16..3, 0_usize..3), 0..50),
        ) {
            let (mut recording, names) = crate::fold::tests::example();
            let mut time = 0;
            recording.events.clear();
            for (pause, thread, node) in steps {
                time += pause;
                recording.events.push(crate::Event { time, thread, node: NodeId::new(node) });
            }
            imported(&events(&recording, &names));
        }
    }

    #[test]
    fn a_trace_that_was_cut_off_ends_where_it_was() {
        let (mut recording, names) = crate::fold::tests::example();
        recording.lost = 1;
        let slices = imported(&events(&recording, &names)).slices;
        assert_eq!(slices[3], (0.25, 0.3, 1));
    }

    #[test]
    fn who_shares_a_track_names_it() {
        let (mut recording, mut names) = crate::fold::tests::example();
        let mut named = |homes: &[&str]| {
            names.domains = homes.iter().map(|home| home.to_string()).collect();
            let node = |n| {
                let (domain, blocks) = (crate::DomainId::new(n), Vec::new());
                crate::Node { parent: None, domain, entry: 0, calls: 0, legs: 0, short: 0, blocks }
            };
            recording.nodes = (0..homes.len()).map(node).collect();
            let event = |n| crate::Event { time: 0, thread: 9, node: NodeId::new(n) };
            recording.events = (0..homes.len()).chain(0..homes.len()).map(event).collect();
            tracks(&recording, &names).remove(&9)
        };
        assert_eq!(named(&["ls", "wc", "cat"]), Some("9: ls, wc, cat".into()));
        assert_eq!(named(&["ls", "wc", "cat", "ps"]), Some("9: ls, wc, cat, ...".into()));
        assert_eq!(named(&["ls", "wc"]), Some("9: ls, wc".into()));
    }

    #[test]
    fn names_are_quoted() {
        let text = "a\"b\\c\n\u{7f}é";
        assert_eq!(serde_json::from_str::<String>(&quoted(text)).unwrap(), text);
    }
}
