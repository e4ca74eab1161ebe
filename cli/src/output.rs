//! The only place that writes: results to one stream, notes to the other.
//!
//! Invariant: with `--json` the first stream carries JSON documents and nothing else.

use std::io::{self, Write};

use comfy_table::{Cell, CellAlignment, LineStyle, Row, Table, TableStyle};
use serde_json::Value;

use crate::fault::Fault;
use crate::text::clean;

/// Both streams and the form of results.
pub(crate) struct Output<'a> {
    out: &'a mut dyn Write,
    err: &'a mut dyn Write,
    json: bool,
    terminal: bool,
}

impl<'a> Output<'a> {
    /// Results go to `out`, notes to `err`.
    pub(crate) fn new(out: &'a mut dyn Write, err: &'a mut dyn Write, json: bool) -> Self {
        Self {
            out,
            err,
            json,
            terminal: false,
        }
    }

    /// Says whether the results are looked at on a terminal.
    pub(crate) fn on_terminal(mut self, terminal: bool) -> Self {
        self.terminal = terminal;
        self
    }

    /// Are results JSON?
    pub(crate) const fn json(&self) -> bool {
        self.json
    }

    /// Are the results looked at on a terminal?
    pub(crate) const fn terminal(&self) -> bool {
        self.terminal
    }

    /// Lines for people; nothing with `--json`. Control characters are made harmless.
    pub(crate) fn say(&mut self, text: &str) -> Result<(), Fault> {
        if self.json {
            return Ok(());
        }
        for line in text.lines() {
            writeln!(self.out, "{}", clean(line))?;
        }
        if text.is_empty() {
            writeln!(self.out)?;
        }
        Ok(self.out.flush()?)
    }

    /// A table for people; nothing with `--json`.
    pub(crate) fn table(&mut self, table: &Table) -> Result<(), Fault> {
        self.say(&table.trim_fmt())
    }

    /// Says how to get the next page, if there is one.
    pub(crate) fn more(&mut self, next_cursor: Option<&str>) -> Result<(), Fault> {
        match next_cursor {
            Some(cursor) => self.say(&format!("There are more: --cursor {cursor}")),
            None => Ok(()),
        }
    }

    /// A remark beside the results, in both forms.
    pub(crate) fn note(&mut self, text: &str) -> Result<(), Fault> {
        for line in text.lines() {
            writeln!(self.err, "{}", clean(line))?;
        }
        Ok(self.err.flush()?)
    }

    /// Bytes as they came, and an end of line if they have none. An empty body is `{}`.
    pub(crate) fn document(&mut self, body: &[u8]) -> Result<(), Fault> {
        let body = if body.is_empty() { b"{}" } else { body };
        self.out.write_all(body)?;
        if !body.ends_with(b"\n") {
            self.out.write_all(b"\n")?;
        }
        Ok(self.out.flush()?)
    }

    /// A JSON document of our own.
    pub(crate) fn value(&mut self, value: &Value) -> Result<(), Fault> {
        self.document(value.to_string().as_bytes())
    }

    /// A line of a container: its text is the renter's own, so it is cleaned on terminals only.
    pub(crate) fn log_line(&mut self, is_error: bool, text: &str, raw: bool) -> Result<(), Fault> {
        let text = if self.terminal && !raw {
            text.split('\t').map(clean).collect::<Vec<_>>().join("\t")
        } else {
            text.to_owned()
        };
        let stream = if is_error {
            &mut self.err
        } else {
            &mut self.out
        };
        writeln!(stream, "{text}")?;
        Ok(stream.flush()?)
    }

    /// Clears the terminal before the next picture of the same thing.
    pub(crate) fn clear(&mut self) -> Result<(), Fault> {
        if self.terminal && !self.json {
            self.out.write_all(b"\x1b[H\x1b[J")?;
        }
        Ok(())
    }

    /// Tells a failure in the wanted form; a closed pipe is not told.
    pub(crate) fn fail(&mut self, fault: &Fault) -> io::Result<()> {
        if self.json {
            writeln!(self.out, "{}", fault.document())?;
            return self.out.flush();
        }
        for line in fault.lines() {
            writeln!(self.err, "{}", clean(&line))?;
        }
        self.err.flush()
    }
}

const STYLE: TableStyle =
    TableStyle::new().header_separator(LineStyle::none().fill('─').junction('─'));

fn styled() -> Table {
    let mut table = Table::new();
    table.load_style(STYLE).force_no_tty();
    table
}

/// Two blanks between columns (one is the place of the missing line), none at the edges.
fn spaced(mut table: Table) -> Table {
    for column in table.column_iter_mut() {
        column.set_padding((0, 1));
    }
    table
}

/// A table with a heading. Columns whose heading starts with `>` are right-aligned.
pub(crate) fn grid(heading: &[&str], rows: Vec<Vec<String>>) -> Table {
    let right = |column: usize| heading.get(column).is_some_and(|h| h.starts_with('>'));
    let aligned = |column: usize, text: &str| {
        let cell = Cell::new(clean(text));
        if right(column) {
            cell.set_alignment(CellAlignment::Right)
        } else {
            cell
        }
    };
    let row = |cells: Vec<&str>| {
        Row::from(
            cells
                .into_iter()
                .enumerate()
                .map(|(column, text)| aligned(column, text))
                .collect::<Vec<_>>(),
        )
    };
    let mut table = styled();
    table.set_header(row(heading
        .iter()
        .map(|h| h.trim_start_matches('>'))
        .collect()));
    for cells in &rows {
        table.add_row(row(cells.iter().map(String::as_str).collect()));
    }
    spaced(table)
}

/// Names and values, one pair a line; pairs without a value are left out.
pub(crate) fn facts<const N: usize>(pairs: [(&str, Option<String>); N]) -> Table {
    let mut table = styled();
    for (name, value) in pairs {
        if let Some(value) = value {
            table.add_row(vec![Cell::new(name), Cell::new(clean(&value))]);
        }
    }
    spaced(table)
}
