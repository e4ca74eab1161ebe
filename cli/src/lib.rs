//! The command line client: what a person or a script asks of a market, and how the answer is shown.
//!
//! Invariants: nothing is written but through `output`; with `--json` results are the API's own
//! documents; secrets never stand in arguments and are never printed, but where they are made.

mod api_key;
mod budget;
mod client;
mod command;
mod config;
mod context;
mod environment;
mod event;
mod fault;
mod gpu;
mod invoice;
mod lease;
mod machine;
mod offer;
mod output;
mod password;
mod payout;
mod quote;
mod session;
mod staff;
mod statement;
mod text;
mod usage;
mod wallet;

#[cfg(test)]
mod tests;

use std::ffi::OsString;
use std::io::Write;

use clap::Parser;
use clap::error::ErrorKind;

pub use environment::{Environment, Patience};

use command::provider::{MachineCommand, OfferCommand};
use command::{Cli, Command, KeyCommand};
use context::Context;
use fault::Fault;
use output::Output;

/// Runs one command line (the first argument is the program's name) and returns its exit code:
/// 0 done, 1 refused or failed, 2 wrong usage.
pub async fn run(
    arguments: Vec<OsString>,
    environment: Environment,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> u8 {
    // Wrong usage is told in JSON too, so this is asked before the arguments are understood.
    let options = arguments.iter().take_while(|a| *a != "--");
    let json = options.into_iter().any(|a| a == "--json");
    let mut output = Output::new(out, err, json).on_terminal(environment.output_is_terminal);
    let done = match Cli::try_parse_from(arguments) {
        Ok(cli) => Box::pin(perform(cli, environment, &mut output)).await,
        Err(told) => explain(&told, &mut output),
    };
    let Err(fault) = done else { return 0 };
    // A stream that is gone can be told nothing; the exit code still says it.
    drop(output.fail(&fault));
    fault.exit_code()
}

/// Help and version are answers; anything else is wrong usage.
fn explain(told: &clap::Error, output: &mut Output<'_>) -> Result<(), Fault> {
    let text = told.render().to_string();
    if matches!(
        told.kind(),
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion
    ) {
        return output.document(text.as_bytes());
    }
    if told.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand && !output.json() {
        output.note(&text)?;
        return Err(Fault::Usage("a command is missing".to_owned()));
    }
    let text = text.trim().trim_start_matches("error: ");
    let tails = ["\n\nUsage:", "\n\nFor more information"];
    let end = tails.iter().filter_map(|tail| text.find(tail)).min();
    let message = end.and_then(|end| text.get(..end)).unwrap_or(text);
    Err(Fault::Usage(message.to_owned()))
}

async fn perform(cli: Cli, environment: Environment, output: &mut Output<'_>) -> Result<(), Fault> {
    let makes_profile = matches!(cli.command, Command::Register(_) | Command::Login(_));
    let mut cx = Context::new(cli.globals, environment, makes_profile)?;
    if cx.config.is_exposed {
        let path = cx.config.shown_path();
        output.note(&format!(
            "warning: others can read {path}: chmod 600 {path}"
        ))?;
    }
    match cli.command {
        Command::Register(args) => session::register(&mut cx, output, args).await,
        Command::Login(args) => session::login(&mut cx, output, args).await,
        Command::Logout => session::logout(&mut cx, output).await,
        Command::Whoami => session::whoami(&cx, output).await,
        Command::Keys(page) => api_key::list(&cx, output, &page).await,
        Command::Key { command } => match command {
            KeyCommand::Create {
                name,
                scopes,
                expires_after,
            } => api_key::create(&cx, output, name, scopes, expires_after).await,
            KeyCommand::Revoke { key } => api_key::revoke(&cx, output, key).await,
        },
        Command::Models(page) => gpu::list(&cx, output, &page).await,
        Command::Search(args) => offer::search(&cx, output, &args).await,
        Command::Quote(args) => quote::quote(&cx, output, &args).await,
        Command::Book(args) => lease::booking::book(&cx, output, *args).await,
        Command::Leases(page) => lease::list(&cx, output, &page).await,
        Command::Show { lease, watch: true } => lease::watch::watch(&cx, output, lease).await,
        Command::Show {
            lease,
            watch: false,
        } => lease::show(&cx, output, lease).await,
        Command::Logs(args) => lease::log::print(&cx, output, &args).await,
        Command::Stop { act, keep_gpus } => lease::stop(&cx, output, (&act, keep_gpus)).await,
        Command::Resume(args) => lease::resume(&cx, output, &args).await,
        Command::End(args) => lease::end(&cx, output, &args).await,
        Command::Resize { lease, disk } => lease::resize(&cx, output, (lease, disk)).await,
        Command::Events { lease, page } => event::list(&cx, output, lease, &page).await,
        Command::Statement {
            lease,
            output: file,
        } => statement::fetch(&cx, output, lease, file).await,
        Command::Verify { files, key } => statement::verify(&cx, output, &files, key),
        Command::Wallet => wallet::show(&cx, output).await,
        Command::TopUp { amount } => wallet::top_up(&cx, output, amount).await,
        Command::Transactions(page) => wallet::transactions(&cx, output, &page).await,
        Command::Earnings => wallet::earnings(&cx, output).await,
        Command::Payouts(page) => payout::list(&cx, output, &page).await,
        Command::Payout { command } => payout::perform(&cx, output, command).await,
        Command::Admin(args) => staff::perform(&mut cx, output, *args).await,
        Command::EarningsStatement(args) => statement::fetch_earnings(&cx, output, args).await,
        Command::Usage(args) => usage::perform(&cx, output, args).await,
        Command::Invoices(page) => invoice::list(&cx, output, &page).await,
        Command::Invoice { command } => invoice::perform(&cx, output, command).await,
        Command::Budgets(page) => budget::list(&cx, output, &page).await,
        Command::Budget { command } => budget::perform(&cx, output, command).await,
        Command::Machines(page) => machine::list(&cx, output, &page).await,
        Command::Machine { command } => provide_machine(&cx, output, command).await,
        Command::Offers(page) => offer::list(&cx, output, &page).await,
        Command::Offer { command } => provide_offer(&cx, output, command).await,
    }
}

async fn provide_machine(
    cx: &Context,
    output: &mut Output<'_>,
    command: MachineCommand,
) -> Result<(), Fault> {
    use web_openapi::machine::MachineActionKind as Kind;
    match command {
        MachineCommand::Token { name } => machine::token(cx, output, name).await,
        MachineCommand::Show { machine } => machine::show(cx, output, machine).await,
        MachineCommand::List(act) => machine::act(cx, output, act, Kind::List).await,
        MachineCommand::Unlist(act) => machine::act(cx, output, act, Kind::Unlist).await,
        MachineCommand::Drain(act) => machine::act(cx, output, act, Kind::Drain).await,
        MachineCommand::Maintenance(act) => machine::act(cx, output, act, Kind::Maintenance).await,
        MachineCommand::Retire(act) => machine::act(cx, output, act, Kind::Retire).await,
    }
}

async fn provide_offer(
    cx: &Context,
    output: &mut Output<'_>,
    command: OfferCommand,
) -> Result<(), Fault> {
    match command {
        OfferCommand::Create {
            machine,
            price,
            terms,
        } => offer::create(cx, output, machine, price, &terms).await,
        OfferCommand::Show { offer } => offer::show(cx, output, offer).await,
        OfferCommand::Set {
            offer,
            price,
            terms,
            no_floor,
            no_keep,
            if_version,
        } => {
            let patch = offer::patch_of(price, &terms, (no_floor, no_keep));
            offer::set(cx, output, offer, if_version, &patch).await
        }
        OfferCommand::Withdraw { offer } => offer::withdraw(cx, output, offer).await,
    }
}
