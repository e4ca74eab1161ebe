//! Curves of a replay, drawn.

use plotters::prelude::*;

use super::report::Report;

/// Unallocated GPUs over arrived load, one line for each policy: lower is better.
pub(super) fn svg(report: &Report) -> Result<String, String> {
    let mut text = String::new();
    draw(report, &mut text).map_err(|e| format!("the plot cannot be drawn: {e}"))?;
    Ok(text)
}

fn draw(report: &Report, text: &mut String) -> Result<(), Box<dyn std::error::Error>> {
    let area = SVGBackend::with_string(text, (900, 540)).into_drawing_area();
    area.fill(&WHITE)?;
    let (begin, end) = (70, report.end().max(71));
    let (left, right) = (f64::from(begin), f64::from(u32::try_from(end)?));
    let lines: Vec<(&str, Vec<(f64, f64)>)> = report
        .policies()
        .into_iter()
        .map(|policy| {
            let points = (70..=end).filter_map(|at| {
                let free = 100.0 - report.allocated(policy, at)?;
                Some((f64::from(u32::try_from(at).ok()?), free))
            });
            (policy, points.collect())
        })
        .collect();
    let highest = lines
        .iter()
        .flat_map(|(_, points)| points.iter().map(|(_, free)| *free))
        .fold(1.0, f64::max);
    let mut chart = ChartBuilder::on(&area)
        .caption("GPUs that stay unallocated", ("sans-serif", 22))
        .margin(16)
        .x_label_area_size(44)
        .y_label_area_size(56)
        .build_cartesian_2d(left..right, 0.0..highest)?;
    chart
        .configure_mesh()
        .light_line_style(WHITE)
        .x_desc("GPUs asked for so far, % of the pool")
        .y_desc("unallocated, % of the pool")
        .label_style(("sans-serif", 14))
        .draw()?;
    for (number, (policy, points)) in lines.into_iter().enumerate() {
        let color = Palette99::pick(number).to_rgba();
        chart
            .draw_series(LineSeries::new(points, color.stroke_width(2)))?
            .label(policy)
            .legend(move |(x, y)| {
                PathElement::new(vec![(x, y), (x + 24, y)], color.stroke_width(2))
            });
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperRight)
        .background_style(WHITE.mix(0.9))
        .border_style(BLACK.mix(0.3))
        .label_font(("sans-serif", 14))
        .draw()?;
    area.present()?;
    Ok(())
}
