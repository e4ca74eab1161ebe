//! The provider's machines: enrolment, state, GPUs.

use comfy_table::Table;
use domain::id::MachineId;
use web_openapi::machine::{
    CreateEnrollmentToken, EnrollmentToken, Gpu, Machine, MachineAction, MachineActionKind,
    MachinePage,
};

use crate::command::Page;
use crate::command::provider::MachineAct;
use crate::context::Context;
use crate::fault::Fault;
use crate::output::{Output, facts, grid};
use crate::text::{View, memory};

/// Lists machines.
pub(crate) async fn list(cx: &Context, output: &mut Output<'_>, page: &Page) -> Result<(), Fault> {
    let answer = cx.client.get("/v1/machines", &page.query()).await?;
    if output.json() {
        return output.document(&answer.body);
    }
    let page: MachinePage = answer.read()?;
    if page.data.is_empty() {
        return output.say("No machines. Enrol one: gpumarket machine token --name NAME");
    }
    output.table(&table(&page.data, &cx.view()))?;
    output.more(page.next_cursor.as_deref())
}

fn models(machine: &Machine) -> String {
    let model = machine.gpus.first().map_or("-", |gpu| gpu.model.as_str());
    let note = if machine.simulated {
        " (simulated)"
    } else {
        ""
    };
    format!("{} × {model}{note}", machine.gpus.len())
}

fn leased(machine: &Machine) -> usize {
    machine.gpus.iter().filter(|gpu| gpu.leased).count()
}

fn seen(machine: &Machine, view: &View) -> String {
    let last = machine.last_seen_at.as_deref();
    last.map_or_else(|| "never".to_owned(), |at| view.distant_time(at))
}

fn table(machines: &[Machine], view: &View) -> Table {
    let rows = machines.iter().map(|machine| {
        vec![
            machine.id.clone(),
            machine.name.clone(),
            machine.state.clone(),
            models(machine),
            leased(machine).to_string(),
            seen(machine, view),
        ]
    });
    let heading = ["MACHINE", "NAME", "STATE", "GPUS", ">LEASED", "LAST SEEN"];
    grid(&heading, rows.collect())
}

/// Shows a machine.
pub(crate) async fn show(
    cx: &Context,
    output: &mut Output<'_>,
    machine: MachineId,
) -> Result<(), Fault> {
    let answer = cx
        .client
        .get(&format!("/v1/machines/{machine}"), &[])
        .await?;
    if output.json() {
        return output.document(&answer.body);
    }
    picture(output, &answer.read()?, &cx.view())
}

fn picture(output: &mut Output<'_>, machine: &Machine, view: &View) -> Result<(), Fault> {
    output.table(&facts([
        ("machine", Some(machine.id.clone())),
        ("name", Some(machine.name.clone())),
        (
            "state",
            Some(format!("{} ({})", machine.state, machine.state_reason)),
        ),
        (
            "GPUs",
            Some(format!("{}, {} leased", models(machine), leased(machine))),
        ),
        ("CPU cores", Some(machine.cpu_cores.to_string())),
        ("memory", Some(memory(machine.ram_mib))),
        ("disk", Some(format!("{} GiB", machine.disk_gib))),
        ("country", machine.country.clone()),
        ("driver", machine.driver_version.clone()),
        ("agent", Some(machine.agent_version.clone())),
        ("last seen", Some(seen(machine, view))),
        ("enrolled", Some(view.time(&machine.created_at))),
    ]))?;
    if machine.gpus.is_empty() {
        return Ok(());
    }
    output.say("")?;
    output.table(&gpu_table(&machine.gpus))
}

fn gpu_table(gpus: &[Gpu]) -> Table {
    let rows = gpus.iter().map(|gpu| {
        vec![
            gpu.index.to_string(),
            gpu.model.clone(),
            memory(gpu.memory_mib.into()),
            gpu.island.to_string(),
            if gpu.leased { "leased" } else { "free" }.to_owned(),
            gpu.uuid.clone(),
        ]
    });
    let heading = [">GPU", "MODEL", ">MEMORY", ">ISLAND", "USE", "UUID"];
    grid(&heading, rows.collect())
}

/// Gets a one-time token and says how it is used.
pub(crate) async fn token(
    cx: &Context,
    output: &mut Output<'_>,
    name: String,
) -> Result<(), Fault> {
    let request = CreateEnrollmentToken { machine_name: name };
    let answer = cx
        .client
        .post("/v1/machines/enrollment-tokens", &request)
        .await?;
    if output.json() {
        return output.document(&answer.body);
    }
    let token: EnrollmentToken = answer.read()?;
    output.say(&format!(
        "A token for one machine, good until {}. On the machine:\n\n  \
         gpumarket-agent join --server {} --token {} --state /var/lib/gpumarket-agent",
        cx.view().distant_time(&token.expires_at),
        cx.client.server(),
        token.token
    ))
}

/// Directs a machine.
pub(crate) async fn act(
    cx: &Context,
    output: &mut Output<'_>,
    act: MachineAct,
    kind: MachineActionKind,
) -> Result<(), Fault> {
    let request = MachineAction {
        kind,
        reason: act.reason,
    };
    let path = format!("/v1/machines/{}/actions", act.machine);
    let answer = cx.client.post(&path, &request).await?;
    if output.json() {
        return output.document(&answer.body);
    }
    let machine: Machine = answer.read()?;
    let leases = match leased(&machine) {
        0 => String::new(),
        1 => " 1 GPU is leased; its lease goes on.".to_owned(),
        some => format!(" {some} GPUs are leased; their leases go on."),
    };
    output.say(&format!(
        "{} ({}) is {} ({}).{leases}",
        machine.name, machine.id, machine.state, machine.state_reason
    ))
}
