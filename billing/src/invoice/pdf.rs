//! An invoice as PDF: pure, so the same invoice is the same bytes.

use domain::money::{Micros, MoneyError, Period as Per};
use thiserror::Error;

use super::{Invoice, InvoiceKind, Line, tax_parts, to_cents};
use crate::meter::Resource;
use crate::month::{date_text, second_text};

mod font;
mod page;

use page::{Canvas, Style, WIDTH, bold, faint, plain};

/// Why an invoice could not be drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum PdfFault {
    /// The embedded typeface cannot be used.
    #[error("the typeface cannot be used")]
    Font,
    /// More pages than a document can have.
    #[error("the invoice has too many pages")]
    TooLong,
    /// A sum does not fit.
    #[error(transparent)]
    Money(#[from] MoneyError),
}

const LEFT: i16 = 850;
const RIGHT: i16 = WIDTH.saturating_sub(LEFT);
/// Nothing but the footer stands below.
const BOTTOM: i16 = 15_700;
const FOOT: i16 = 16_250;
/// Right edges of the columns: time, rate, and three amounts.
const EDGES: [i16; 5] = [5_600, 7_250, 8_550, 9_750, RIGHT];
/// How wide the words of a row may be.
const WORDS: i16 = 3_550;
const ROW: i16 = 700;

/// A page with a place for the next thing on it.
struct Writer<'a> {
    invoice: &'a Invoice,
    canvas: Canvas,
    y: i16,
}

/// Draws an invoice.
pub fn render(invoice: &Invoice) -> Result<Vec<u8>, PdfFault> {
    let mut writer = Writer {
        invoice,
        canvas: Canvas::new()?,
        y: 0,
    };
    writer.canvas.turn();
    writer.head();
    writer.parties();
    if !invoice.lines.is_empty() {
        writer.heading();
    }
    for line in &invoice.lines {
        writer.line(line)?;
    }
    writer.totals()?;
    writer.notes();
    writer.feet();
    writer
        .canvas
        .finish(&format!("{} {}", title(invoice.kind), invoice.number))
}

const fn title(kind: InvoiceKind) -> &'static str {
    match kind {
        InvoiceKind::Sale => "Invoice",
        InvoiceKind::SelfBilling => "Self-billing invoice",
        InvoiceKind::CreditNote => "Credit note",
    }
}

/// `1234:05:09.007`: hours, minutes, seconds.
fn duration(millis: i64) -> String {
    let hour = Per::Hour.millis();
    let (hours, rest) = (millis.div_euclid(hour), millis.rem_euclid(hour));
    let (minutes, rest) = (rest.div_euclid(60_000), rest.rem_euclid(60_000));
    let (seconds, millis) = (rest.div_euclid(1_000), rest.rem_euclid(1_000));
    format!("{hours}:{minutes:02}:{seconds:02}.{millis:03}")
}

fn percent(bps: u32) -> String {
    format!("{}.{:02} %", bps.div_euclid(100), bps.rem_euclid(100))
}

/// `12.35`: an amount in whole cents without the decimals that are zero.
fn cents(rounded: Micros) -> String {
    let text = rounded.to_string();
    text.strip_suffix("0000").unwrap_or(&text).to_owned()
}

impl Writer<'_> {
    fn say(&mut self, x: i16, style: Style, text: &str) {
        self.canvas.text((x, self.y), style, text);
    }

    fn down(&mut self, by: i16) {
        self.y = self.y.saturating_add(by);
    }

    /// Begins a page unless `room` is left.
    fn ensure(&mut self, room: i16) -> bool {
        if self.y.saturating_add(room) <= BOTTOM {
            return false;
        }
        self.canvas.turn();
        self.y = 1_100;
        let name = format!("{} {}", title(self.invoice.kind), self.invoice.number);
        self.say(LEFT, faint(160), &name);
        self.down(500);
        true
    }

    fn head(&mut self) {
        self.y = 1_500;
        self.say(LEFT, bold(440), title(self.invoice.kind));
        self.canvas
            .text_right((RIGHT, self.y), bold(240), &self.invoice.number.to_string());
        if self.invoice.sandbox {
            self.down(420);
            let text = "SANDBOX: paid with play money. No tax document.";
            self.say(LEFT, bold(200), text);
        }
        self.down(600);
        let invoice = self.invoice;
        let mut facts = vec![
            ("Number", invoice.number.to_string()),
            ("Issued", format!("{} (UTC)", date_text(invoice.issued_at))),
            (
                "Period",
                format!(
                    "{} – {} (UTC, end not included)",
                    second_text(invoice.period.from),
                    second_text(invoice.period.to)
                ),
            ),
            ("Account", invoice.party.to_string()),
        ];
        if let Some(credited) = &invoice.credited {
            facts.push(("Refers to", format!("Invoice {}", credited.number)));
            facts.push(("Reason", credited.reason.clone()));
        }
        for (name, value) in facts {
            self.say(LEFT, faint(180), name);
            let value = self.canvas.fitted(plain(180), 8_500, &value);
            self.say(2_400, plain(180), &value);
            self.down(270);
        }
        self.down(250);
    }

    fn parties(&mut self) {
        let top = self.y;
        let mut lowest = top;
        let sides = [
            (LEFT, "From", &self.invoice.seller),
            (6_100, "To", &self.invoice.buyer),
        ];
        for (x, side, who) in sides {
            self.y = top;
            self.say(x, faint(170), side);
            self.down(270);
            let name = self.canvas.fitted(bold(200), 4_900, &who.name);
            self.say(x, bold(200), &name);
            let country = who.country.iter().cloned();
            let vat = who.vat_id.iter().map(|id| format!("VAT ID {id}"));
            let rest: Vec<String> = who
                .address
                .iter()
                .cloned()
                .chain(country)
                .chain(vat)
                .collect();
            for text in rest {
                self.down(250);
                let text = self.canvas.fitted(plain(180), 4_900, &text);
                self.say(x, plain(180), &text);
            }
            lowest = lowest.max(self.y);
        }
        self.y = lowest;
        self.down(600);
    }

    fn heading(&mut self) {
        let amounts = match self.invoice.kind {
            InvoiceKind::Sale | InvoiceKind::CreditNote => ["Net", "Tax", "Amount"],
            InvoiceKind::SelfBilling => ["Gross", "Fee", "Earned"],
        };
        let names = ["Proven time", "Rate"].into_iter().chain(amounts);
        self.say(LEFT, bold(160), "Service");
        for (edge, name) in EDGES.into_iter().zip(names) {
            self.canvas.text_right((edge, self.y), bold(160), name);
        }
        self.down(120);
        self.canvas.rule((LEFT, self.y), RIGHT);
        self.down(260);
    }

    fn line(&mut self, line: &Line) -> Result<(), PdfFault> {
        if self.ensure(ROW) {
            self.heading();
        }
        let due = line.due;
        let amounts = match self.invoice.kind {
            InvoiceKind::Sale | InvoiceKind::CreditNote => [due.gross, due.tax, due.renter()?],
            InvoiceKind::SelfBilling => [due.gross, due.fee, due.provider()?],
        };
        let per = match line.rate.per {
            Per::Hour => "h",
            Per::Month => "730 h",
        };
        let values = [
            duration(line.billable_ms),
            format!("{} / {per}", line.rate.price),
        ];
        let values = values.into_iter().chain(amounts.map(|a| a.to_string()));
        for (edge, value) in EDGES.into_iter().zip(values) {
            self.canvas.text_right((edge, self.y), plain(160), &value);
        }
        let simulated = if line.simulated { " (simulated)" } else { "" };
        let what = match line.resource {
            Resource::Compute => format!("{} × {}{simulated}", line.gpu_count, line.gpu_model),
            Resource::Storage => format!("Disk, {} GiB", line.disk_gib),
        };
        let lease = match &line.label {
            Some(label) => format!("{} · {label}", line.lease),
            None => line.lease.to_string(),
        };
        let when = format!("{} – {}", second_text(line.from), second_text(line.to));
        for (style, text) in [(plain(160), what), (faint(140), lease), (faint(140), when)] {
            let text = self.canvas.fitted(style, WORDS, &text);
            self.say(LEFT, style, &text);
            self.down(190);
        }
        self.down(130);
        Ok(())
    }

    fn sum(&mut self, style: Style, name: &str, amount: &str) {
        self.say(6_100, style, name);
        let amount = format!("{amount} {}", self.invoice.currency.code());
        self.canvas.text_right((RIGHT, self.y), style, &amount);
        self.down(270);
    }

    fn totals(&mut self) -> Result<(), PdfFault> {
        let sums = self.invoice.totals;
        let parts = tax_parts(&self.invoice.lines)?;
        let rows = i16::try_from(parts.len()).unwrap_or(i16::MAX);
        self.ensure(rows.saturating_mul(270).saturating_add(2_400));
        self.canvas.rule((6_100, self.y), RIGHT);
        self.down(300);
        let (net, last) = match self.invoice.kind {
            InvoiceKind::Sale => ("Net", "Total"),
            InvoiceKind::CreditNote => ("Net", "Total credited"),
            InvoiceKind::SelfBilling => ("Gross", "Total earned"),
        };
        self.sum(plain(180), net, &sums.gross.to_string());
        match self.invoice.kind {
            InvoiceKind::SelfBilling => {
                self.sum(plain(180), "Platform's fee", &format!("-{}", sums.fee));
            }
            InvoiceKind::Sale => {
                for part in parts {
                    let name = format!("Tax {} on {}", percent(part.tax_bps), part.net);
                    self.sum(plain(180), &name, &part.tax.to_string());
                }
            }
            InvoiceKind::CreditNote => self.sum(plain(180), "Tax", &sums.tax.to_string()),
        }
        self.sum(bold(180), last, &sums.total.to_string());
        let (rounded, added) = to_cents(sums.total)?;
        if added != Micros::ZERO {
            self.sum(
                faint(160),
                "Rounding to cents, not charged",
                &added.to_string(),
            );
        }
        self.down(60);
        self.sum(bold(220), "In cents", &cents(rounded));
        self.down(300);
        Ok(())
    }

    fn notes(&mut self) {
        let settled = match self.invoice.kind {
            InvoiceKind::Sale => {
                "Paid from the wallet as it was used: nothing is due. Amounts are exact to the \
                 millionth; each line is the sum of its booked charges."
            }
            InvoiceKind::SelfBilling => {
                "Credited to the earnings account as it was used. Issued by the operator in the \
                 provider's name (self-billing)."
            }
            InvoiceKind::CreditNote => match self.invoice.credited.as_ref().map(|c| c.transfer) {
                Some(Some(_transfer)) => "The amount was given back to the account.",
                Some(None) | None => "This document moves no money by itself.",
            },
        };
        let note = self.invoice.tax_note.clone();
        let moved = self.invoice.credited.as_ref().and_then(|c| c.transfer);
        let moved = moved.map(|transfer| format!("Movement: {transfer}"));
        for text in note.into_iter().chain([settled.to_owned()]).chain(moved) {
            for line in self.canvas.wrapped(plain(160), 10_000, &text) {
                self.ensure(220);
                self.say(LEFT, plain(160), &line);
                self.down(220);
            }
        }
    }

    fn feet(&mut self) {
        let all = self.canvas.count();
        for page in 0..all {
            let text = format!(
                "{} · page {} of {all}",
                self.invoice.number,
                page.saturating_add(1)
            );
            self.canvas.text_on(page, (LEFT, FOOT), faint(150), &text);
        }
    }
}

#[cfg(test)]
mod tests;
