//! The catalogue of GPU models.

use comfy_table::Table;
use web_openapi::gpu::{GpuModel, GpuModelPage};

use crate::command::Page;
use crate::context::Context;
use crate::fault::Fault;
use crate::output::{Output, grid};
use crate::text::memory;

/// Lists models.
pub(crate) async fn list(cx: &Context, output: &mut Output<'_>, page: &Page) -> Result<(), Fault> {
    let answer = cx.client.get("/v1/gpu-models", &page.query()).await?;
    if output.json() {
        return output.document(&answer.body);
    }
    let page: GpuModelPage = answer.read()?;
    output.table(&table(&page.data))?;
    output.more(page.next_cursor.as_deref())
}

fn table(models: &[GpuModel]) -> Table {
    let rows = models.iter().map(|model| {
        let dense = model.fp16_gflops.map(|g| g.div_euclid(1000));
        vec![
            model.slug.clone(),
            model.vendor.clone(),
            model.architecture.clone(),
            memory(model.memory_mib.into()),
            format!("{} GB/s", model.memory_bandwidth_gbps),
            dense.map_or_else(|| "-".to_owned(), |tera| format!("{tera} TFLOPS")),
            format!("{} W", model.power_watts),
            model.interconnect.clone(),
        ]
    });
    let heading = [
        "MODEL",
        "VENDOR",
        "ARCHITECTURE",
        ">MEMORY",
        ">BANDWIDTH",
        ">FP16 DENSE",
        ">POWER",
        "LINK",
    ];
    grid(&heading, rows.collect())
}
