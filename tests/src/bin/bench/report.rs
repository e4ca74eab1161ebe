//! The table and the file.

use std::path::Path;

use serde_json::{Value, json};

/// What is printed and written.
#[derive(Debug, Default)]
pub struct Report {
    rows: Vec<Row>,
    figures: Vec<(String, f64, &'static str)>,
}

/// One row: ours against a yardstick.
#[derive(Clone, Debug)]
pub struct Row {
    /// Short name.
    pub name: &'static str,
    /// Ours, one for each round.
    pub values: Vec<f64>,
    /// Of both.
    pub unit: &'static str,
    /// What it is compared with.
    pub yardstick: &'static str,
    /// The yardstick's, one for each round.
    pub yardstick_values: Vec<f64>,
    /// Least ratio wished for.
    pub goal: f64,
}

/// The middle one.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let half = sorted.len() / 2;
    if sorted.len() % 2 == 1 {
        sorted[half]
    } else {
        (sorted[half - 1] + sorted[half]) / 2.0
    }
}

/// Three figures are all that such a measurement is worth.
fn rounded(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return 0.0;
    }
    let scale = 10_f64.powf(2.0 - value.abs().log10().floor());
    (value * scale).round() / scale
}

impl Row {
    /// Ours over the yardstick, of the medians.
    pub fn ratio(&self) -> f64 {
        median(&self.values) / median(&self.yardstick_values)
    }

    fn json(&self) -> Value {
        json!({
            "name": self.name, "value": rounded(median(&self.values)), "unit": self.unit,
            "yardstick": self.yardstick,
            "yardstick_value": rounded(median(&self.yardstick_values)),
            "ratio": rounded(self.ratio()), "goal": self.goal,
            "meets_goal": self.ratio() >= self.goal,
        })
    }
}

impl Report {
    /// Adds a row, and says it at once.
    pub fn row(&mut self, row: Row) {
        let rounds = |v: &[f64]| {
            let each: Vec<String> = v.iter().map(|x| format!("{}", rounded(*x))).collect();
            each.join(" ")
        };
        println!(
            "    {}: {} against {} {}",
            row.name,
            rounds(&row.values),
            rounds(&row.yardstick_values),
            row.unit
        );
        self.rows.push(row);
    }

    /// Adds a figure without a yardstick.
    pub fn figure(&mut self, name: impl Into<String>, value: f64, unit: &'static str) {
        self.figures.push((name.into(), value, unit));
    }

    /// Prints the table.
    pub fn print(&self) {
        println!();
        println!(
            "{:<16} {:>10} {:<14} {:>10} {:<44} {:>7} {:>6}  goal met",
            "row", "ours", "unit", "yardstick", "", "ratio", "goal"
        );
        for row in &self.rows {
            let (ours, theirs) = (median(&row.values), median(&row.yardstick_values));
            let met = if row.ratio() >= row.goal { "yes" } else { "no" };
            println!(
                "{:<16} {:>10} {:<14} {:>10} {:<44} {:>6.2}x {:>5}x  {met}",
                row.name,
                rounded(ours),
                row.unit,
                rounded(theirs),
                row.yardstick,
                row.ratio(),
                row.goal
            );
        }
        if !self.figures.is_empty() {
            println!();
        }
        for (name, value, unit) in &self.figures {
            println!("{name:<52} {:>10} {unit}", rounded(*value));
        }
    }

    /// Writes the file.
    pub fn write(&self, out: &Path) {
        let rows: Vec<Value> = self.rows.iter().map(Row::json).collect();
        let figures: Vec<Value> = self
            .figures
            .iter()
            .map(
                |(name, value, unit)| json!({"name": name, "value": rounded(*value), "unit": unit}),
            )
            .collect();
        let text =
            serde_json::to_string_pretty(&json!({"rows": rows, "figures": figures})).unwrap();
        std::fs::create_dir_all(out.parent().unwrap()).unwrap();
        std::fs::write(out, text + "\n").unwrap();
    }
}
