//! The program `sinnet`: reads the command line and calls the rooms.

mod commands;
mod output;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use commands::{
    Failure, check, clean, compare, demo, down, fairness, friendliness, help, hosts, keygen, lab, manual, papers,
    relay, sim, status, store, up,
};

/// Several network paths braided into one secure, fair connection, for programs that know nothing about it.
#[derive(Debug, Parser)]
#[command(name = "sinnet", version, about, arg_required_else_help = true, disable_help_subcommand = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Keygen(keygen::Arguments),
    Check(check::Arguments),
    Up(up::Arguments),
    Relay(relay::Arguments),
    Status(status::Arguments),
    Down(down::Arguments),
    Hosts(hosts::Arguments),
    Clean(clean::Arguments),
    Lab(lab::Arguments),
    Demo(demo::Arguments),
    Compare(compare::Arguments),
    Sim(sim::Arguments),
    Store(store::Arguments),
    Fairness(fairness::Arguments),
    Friendliness(friendliness::Arguments),
    Papers(papers::Arguments),
    Help(help::Arguments),
    Man(manual::Man),
    Completions(manual::Completions),
}

fn main() -> ExitCode {
    // clap ends the program itself, with 2, where the command line is wrong.
    let result = match Arguments::parse().command {
        Command::Keygen(arguments) => keygen::run(&arguments),
        Command::Check(arguments) => check::run(&arguments),
        Command::Up(arguments) => up::run(&arguments),
        Command::Relay(arguments) => relay::run(&arguments),
        Command::Status(arguments) => status::run(&arguments),
        Command::Down(arguments) => down::run(&arguments),
        Command::Hosts(arguments) => hosts::run(&arguments),
        Command::Clean(arguments) => clean::run(&arguments),
        Command::Lab(arguments) => lab::run(&arguments),
        Command::Demo(arguments) => demo::run(&arguments),
        Command::Compare(arguments) => compare::run(&arguments),
        Command::Sim(arguments) => sim::run(&arguments),
        Command::Store(arguments) => store::run(&arguments),
        Command::Fairness(arguments) => fairness::run(&arguments),
        Command::Friendliness(arguments) => friendliness::run(&arguments),
        Command::Papers(arguments) => papers::run(&arguments),
        Command::Help(arguments) => help::run(&arguments),
        Command::Man(arguments) => manual::man(&arguments),
        Command::Completions(arguments) => manual::completions(&arguments),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure { message, exit }) => {
            output::error(&message);
            ExitCode::from(exit)
        }
    }
}
