//! The trace: what each thread did, one thing after the other, as Perfetto (ui.perfetto.dev) shows it.
//!
//! A thread has a track, and on it a slice for each domain that it is in, from the portal in to the portal
//! out: who is called lies below who calls. An arrow leads from the one to the other. A thread that waits is
//! in the scheduler, so it has a long slice there. The unit of time is the instruction: Perfetto calls it a
//! nanosecond.
//!
//! The format is JSON, as Chromium's trace viewer has it ("Trace Event Format"). Slices are matched: each
//! that begins ends, and one that lies in another ends first.

use std::collections::BTreeMap;
use std::io::{self, Write};

use crate::{Names, NodeId, Recording};

/// Nobody else is in the trace: all threads are of one process.
const SYSTEM: u32 = 1;

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
    writer.note("process_name", 0, title)?;
    // Of each thread the nodes whose slices are open.
    let mut open: BTreeMap<u16, Vec<NodeId>> = BTreeMap::new();
    for event in &recording.events {
        let (thread, time) = (event.thread, event.time);
        if !open.contains_key(&thread) {
            writer.name_thread(thread, event.node)?;
        }
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
    for (thread, slices) in open {
        for _ in slices {
            writer.end(thread, recording.events.last().map_or(0, |event| event.time))?;
        }
    }
    writer.out.write_all(b"\n]}\n")?;
    writer.out.flush()
}

impl<W: Write> Writer<'_, W> {
    fn separate(&mut self) -> io::Result<()> {
        let comma = if std::mem::take(&mut self.first) { "\n" } else { ",\n" };
        self.out.write_all(comma.as_bytes())
    }

    fn note(&mut self, what: &str, thread: u16, name: &str) -> io::Result<()> {
        self.separate()?;
        let name = quoted(name);
        write!(
            self.out,
            r#"{{"ph":"M","name":"{what}","pid":{SYSTEM},"tid":{thread},"args":{{"name":{name}}}}}"#
        )
    }

    /// By where it has begun.
    fn name_thread(&mut self, thread: u16, node: NodeId) -> io::Result<()> {
        let home = self.recording.way(node)[0];
        let domain = self.names.domain(self.recording.nodes[home.index()].domain);
        self.note("thread_name", thread, domain)
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
    format!(r#""pid":{SYSTEM},"tid":{thread},"ts":{}.{:03}"#, time / 1000, time % 1000)
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

    /// Slices open at the end of each thread; none may end that has not begun, nor time go back.
    fn left_open(events: &[Value]) -> i64 {
        let mut open: BTreeMap<i64, i64> = BTreeMap::new();
        let mut last = 0.0;
        for event in events.iter().filter(|event| event["ph"] != "M") {
            let depth = open.entry(event["tid"].as_i64().unwrap()).or_default();
            match event["ph"].as_str().unwrap() {
                "B" => *depth += 1,
                "E" => *depth -= 1,
                _ => {}
            }
            assert!(*depth >= 0, "{event}");
            let time = event["ts"].as_f64().unwrap();
            assert!(time >= last, "{event}");
            last = time;
        }
        open.values().sum()
    }

    #[test]
    fn calls_lie_in_each_other_and_have_arrows() {
        let (recording, names) = crate::fold::tests::example();
        let events = events(&recording, &names);
        assert_eq!(left_open(&events), 0);
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
            prop_assert_eq!(left_open(&events(&recording, &names)), 0);
        }
    }

    #[test]
    fn names_are_quoted() {
        let text = "a\"b\\c\n\u{7f}é";
        assert_eq!(serde_json::from_str::<String>(&quoted(text)).unwrap(), text);
    }
}
