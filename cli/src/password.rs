//! The password: from standard input, from a variable, or asked for without an echo; never an argument.

use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};

use crate::context::Context;
use crate::fault::{Fault, Local};
use crate::output::Output;

/// Takes the password from where the command line says.
pub(crate) fn take(
    cx: &mut Context,
    output: &mut Output<'_>,
    from_input: bool,
) -> Result<String, Fault> {
    if from_input {
        return first_line(cx);
    }
    if let Some(password) = cx.environment.password.take() {
        return Ok(password);
    }
    if cx.environment.input_is_terminal {
        output.note("Password (not shown): ")?;
        return without_echo(|| first_line(cx));
    }
    Err(Fault::Usage(
        "no password: give it with --password-stdin or GPUMARKET_PASSWORD".to_owned(),
    ))
}

fn first_line(cx: &mut Context) -> Result<String, Fault> {
    let mut line = String::new();
    let read = cx.environment.input.read_line(&mut line);
    read.map_err(|bad| Local::new("password", format!("The password cannot be read: {bad}.")))?;
    let password = line.trim_end_matches(['\r', '\n']).to_owned();
    if password.is_empty() {
        return Err(Local::new("password", "The password is empty.").into());
    }
    Ok(password)
}

fn without_echo<T>(read: impl FnOnce() -> Result<T, Fault>) -> Result<T, Fault> {
    let terminal = rustix::stdio::stdin();
    let told = |bad| {
        Local::new(
            "password",
            format!("The terminal's echo cannot be set: {bad}."),
        )
    };
    let before = tcgetattr(terminal).map_err(told)?;
    let mut silent = before.clone();
    silent.local_modes.remove(LocalModes::ECHO);
    silent.local_modes.insert(LocalModes::ECHONL);
    tcsetattr(terminal, OptionalActions::Now, &silent).map_err(told)?;
    let result = read();
    tcsetattr(terminal, OptionalActions::Now, &before).map_err(told)?;
    result
}
