//! The boards on which systems are tested: all that there are, or the one that was named. The first board's
//! groups are `system.NAME` and `budget.ID`; those of others begin with the board's name.

use anyhow::{Result, ensure};

use super::component::{self, ComponentTest};
use super::context::{Context, Made};
use super::system::{ALL, SystemTest};
use super::{Job, Options, Tally};
use crate::bench::{self, budget};
use crate::tools::Tools;
use crate::ui;

pub struct OnBoard<'a> {
    tools: &'a Tools,
    made: Made,
    systems: Vec<&'static SystemTest>,
    components: Vec<ComponentTest>,
    budgets: Vec<(String, budget::Budget)>,
}

impl<'a> OnBoard<'a> {
    /// What the options select on this board. Tests for which the board lacks something are named.
    pub fn new(tools: &'a Tools, options: &Options) -> Result<Self> {
        let mut on = OnBoard {
            tools,
            made: Made::default(),
            systems: Vec::new(),
            components: Vec::new(),
            budgets: Vec::new(),
        };
        let runs =
            |test: &&SystemTest| options.selects(&on.named(&test.group())) && !(options.quick && test.slow);
        let (whole, lacking): (Vec<_>, _) =
            ALL.iter().filter(runs).partition(|test| test.missing(tools).is_none());
        if !options.list {
            for test in lacking {
                let what = test.missing(tools).unwrap_or_default();
                ui::note(&format!("{} is left out: it needs {what}", on.named(&test.group())));
            }
        }
        // A project is tested with its own tests.
        on.systems = if tools.is_project() { Vec::new() } else { whole };
        let components = component::all(tools, options.filter.as_deref())?.into_iter();
        on.components = components.filter(|test| options.selects(&on.named(&test.group()))).collect();
        if !options.quick && !tools.is_project() {
            let budgets = budget::load(tools)?.into_iter();
            on.budgets = budgets.filter(|(id, _)| options.selects(&on.named(&group(id)))).collect();
        }
        Ok(on)
    }

    fn named(&self, group: &str) -> String {
        match self.tools.is_default() {
            true => group.into(),
            false => format!("{}.{group}", self.tools.board.name),
        }
    }

    /// Names of all that is selected.
    pub fn groups(&self) -> Vec<String> {
        let systems = self.systems.iter().map(|test| test.group());
        let components = self.components.iter().map(ComponentTest::group);
        let budgets = self.budgets.iter().map(|(id, _)| group(id));
        systems.chain(components).chain(budgets).map(|group| self.named(&group)).collect()
    }

    pub fn systems(&self) -> impl Iterator<Item = Job<'_>> {
        self.systems.iter().map(|test| {
            let run = || test.run(&mut Context::new(self.tools, &self.made));
            Job::test(self.named(&test.group()), run)
        })
    }

    pub fn components(&self) -> impl Iterator<Item = Job<'_>> {
        self.components.iter().map(move |test| {
            let name = self.named(&test.group());
            let called = name.clone();
            Job::test(name, move || test.run(&mut Context::new(self.tools, &self.made), &called))
        })
    }

    /// One job, as all rows are measured at once.
    pub fn budgets(&self, all: bool) -> Option<Job<'_>> {
        let run = move || self.check_budgets(all);
        (!self.budgets.is_empty()).then(|| Job::new(self.named("budget"), run))
    }

    /// Measures once, all or only what is asked for, unless all has been measured already; and holds each row
    /// against its budget.
    fn check_budgets(&self, all: bool) -> Tally {
        let mut tally = Tally::default();
        let mut rows = Vec::new();
        let budgets = &self.budgets;
        tally.run(&self.named("budget.measure"), || {
            let only = budgets.iter().flat_map(|(id, budget)| [Some(id.clone()), budget.of()]).flatten();
            let measure = || bench::measure(self.tools, &only.filter(|_| !all).collect::<Vec<_>>());
            rows = self.made.rows().map_or_else(measure, Ok)?;
            Ok(())
        });
        for (id, budget) in budgets {
            tally.run(&self.named(&group(id)), || {
                let row = rows.iter().find(|row| row.id == *id);
                let excess = row.map_or(Some("was not measured".into()), |row| budget.excess(row, &rows));
                ensure!(excess.is_none(), "{}", excess.unwrap_or_default());
                Ok(())
            });
        }
        tally
    }
}

fn group(id: &str) -> String {
    format!("budget.{id}")
}
