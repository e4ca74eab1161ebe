//! The GPU model catalogue: no login.

use actix_web::web::{Data, Path};
use actix_web::{HttpResponse, get};
use domain::gpu::GpuModel as Model;
use domain::refusal::Code;
use web_openapi::gpu::{GpuModel, GpuModelPage, MigProfile};

use super::docs::Problems;
use super::fault::Fault;
use crate::state::Shared;

fn view(m: &Model) -> GpuModel {
    let mig = |p: &domain::gpu::MigProfile| MigProfile {
        name: p.name.clone(),
        max_instances: p.max_instances,
        memory_mib: p.memory_mib,
    };
    GpuModel {
        slug: m.slug.clone(),
        name: m.name.clone(),
        vendor: m.vendor.as_str().to_owned(),
        architecture: m.architecture.clone(),
        memory_mib: m.memory_mib,
        memory_bandwidth_gbps: m.memory_bandwidth_gbps,
        fp16_gflops: m.fp16_gflops,
        bf16_gflops: m.bf16_gflops,
        fp8_gflops: m.fp8_gflops,
        power_watts: m.power_watts,
        interconnect: m.interconnect.clone(),
        mig_profiles: m.mig_profiles.iter().map(mig).collect(),
        aliases: m.aliases.clone(),
        source: m.source.clone(),
    }
}

/// List every GPU model that the market knows, in order of slug. The list is one page.
#[utoipa::path(tag = "gpu-models", responses((status = 200, body = GpuModelPage), Problems))]
#[get("/v1/gpu-models")]
pub(crate) async fn list_gpu_models(shared: Data<Shared>) -> HttpResponse {
    let data = shared.cx.catalogue.models().iter().map(view).collect();
    HttpResponse::Ok().json(GpuModelPage {
        data,
        has_more: false,
        next_cursor: None,
    })
}

/// Get one GPU model by slug or alias.
#[utoipa::path(tag = "gpu-models", params(("name" = String, Path)),
    responses((status = 200, body = GpuModel), Problems))]
#[get("/v1/gpu-models/{name}")]
pub(crate) async fn get_gpu_model(
    shared: Data<Shared>,
    name: Path<String>,
) -> Result<HttpResponse, Fault> {
    let catalogue = &shared.cx.catalogue;
    let model = catalogue.find(&name).ok_or_else(|| {
        let near = catalogue.near(&name, 3).join(", ");
        Fault::new(
            Code::NotFound,
            format!("There is no GPU model `{}`.", name.as_str()),
        )
        .suggesting(&format!("Near names: {near}."))
    })?;
    Ok(HttpResponse::Ok().json(view(model)))
}
