//! Tables as CSV (RFC 4180) that a spreadsheet opens without running anything.
//!
//! A cell of free text that begins like a formula gets an apostrophe in front (OWASP, "CSV
//! injection", <https://owasp.org/www-community/attacks/CSV_Injection>); numbers are ours and stay.

use thiserror::Error;

/// A table could not be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("a table could not be written")]
pub struct SheetFault;

/// A CSV document that grows row by row.
#[derive(Debug)]
pub struct Sheet {
    writer: csv::Writer<Vec<u8>>,
}

impl Sheet {
    /// With a heading.
    pub fn new(heading: &[&str]) -> Result<Self, SheetFault> {
        let mut writer = csv::WriterBuilder::new()
            .terminator(csv::Terminator::CRLF)
            .from_writer(Vec::new());
        writer.write_record(heading).map_err(|_full| SheetFault)?;
        Ok(Self { writer })
    }

    /// Adds a row; it has as many cells as the heading.
    pub fn row<S: AsRef<[u8]>>(
        &mut self,
        cells: impl IntoIterator<Item = S>,
    ) -> Result<(), SheetFault> {
        self.writer
            .write_record(cells)
            .map_err(|_uneven| SheetFault)
    }

    /// The document.
    pub fn finish(self) -> Result<Vec<u8>, SheetFault> {
        self.writer.into_inner().map_err(|_full| SheetFault)
    }
}

/// Free text as a cell: never a formula, and no control characters.
pub fn cell(text: &str) -> String {
    let plain: String = text
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    // Spreadsheets skip blanks, and know the wide forms of the signs, too.
    let first = plain.trim_start().chars().next();
    let formula = ['=', '+', '-', '@', '＝', '＋', '－', '＠'];
    if first.is_some_and(|c| formula.contains(&c)) {
        format!("'{plain}")
    } else {
        plain
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formulas_are_text() {
        for bad in [
            "=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "  =1", "＝1",
        ] {
            assert!(cell(bad).starts_with('\''), "{bad:?}");
        }
        for good in ["", "training", "a=b", "2-gpu", "Ж"] {
            assert_eq!(cell(good), good);
        }
        assert_eq!(cell("a\nb"), "a b");
    }

    #[test]
    fn quotes_and_commas_survive() {
        let mut sheet = Sheet::new(&["a", "b"]).unwrap();
        sheet.row(["x, \"y\"", "z"]).unwrap();
        let text = String::from_utf8(sheet.finish().unwrap()).unwrap();
        assert_eq!(text, "a,b\r\n\"x, \"\"y\"\"\",z\r\n");
        let mut uneven = Sheet::new(&["a", "b"]).unwrap();
        assert_eq!(uneven.row(["only one"]), Err(SheetFault));
    }
}
