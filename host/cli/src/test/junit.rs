//! What the tests said, for other tools: a file as JUnit writes it.
//!
//! Whoever runs a test says here how it went; at the end it is written, if somebody asked for it. A group of
//! host tests is one case.

use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result};
use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};

struct Case {
    name: String,
    took: Duration,
    /// What was wrong.
    failure: Option<String>,
}

static CASES: Mutex<Vec<Case>> = Mutex::new(Vec::new());

pub fn record(name: &str, took: Duration, failure: Option<String>) {
    CASES.lock().unwrap_or_else(PoisonError::into_inner).push(Case { name: name.into(), took, failure });
}

/// All that was recorded so far.
pub fn write(path: &Path) -> Result<()> {
    let mut suite = TestSuite::new("pebble");
    for Case { name, took, failure } in CASES.lock().unwrap_or_else(PoisonError::into_inner).iter() {
        let status = match failure {
            None => TestCaseStatus::success(),
            Some(failure) => {
                let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
                status
                    .set_message(failure.lines().next().unwrap_or_default())
                    .set_description(failure.as_str());
                status
            }
        };
        let mut case = TestCase::new(name.as_str(), status);
        case.set_time(*took);
        // What comes before the last part of the name, by which readers group.
        case.set_classname(
            name.rsplit_once(['.', ':']).map_or(name.as_str(), |(class, _)| class).trim_end_matches(':'),
        );
        suite.add_test_case(case);
    }
    let mut report = Report::new("pebble test");
    report.add_test_suite(suite);
    let text = report.to_string().context("the report")?;
    std::fs::write(path, text).with_context(|| path.display().to_string())
}
