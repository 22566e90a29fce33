//! `sinnet help`: of a command, and of the keys of scenario files.

use clap::CommandFactory as _;
use scenario::schema;

use super::Failure;
use crate::output;

/// Tell about a command, or with `help scenario` about the keys of scenario files.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// A command, or "scenario".
    topic: Option<String>,
    /// A key of scenario files, such as queue or flow.rate.
    key: Option<String>,
    /// Of scenario files: the JSON schema, for editors.
    #[arg(long, conflicts_with = "key")]
    json_schema: bool,
    /// Of scenario files: the reference documentation, in Markdown.
    #[arg(long, conflicts_with_all = ["key", "json_schema"])]
    markdown: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    match arguments.topic.as_deref() {
        Some("scenario") => of_scenarios(arguments),
        _ if arguments.json_schema || arguments.markdown || arguments.key.is_some() => {
            Err(Failure::input("keys, --json-schema and --markdown are of `sinnet help scenario`"))
        }
        topic => of_command(topic),
    }
}

fn of_scenarios(arguments: &Arguments) -> Result<(), Failure> {
    if arguments.json_schema {
        return output::json(&schema::json_schema());
    }
    if arguments.markdown {
        return output::result(schema::markdown().trim_end());
    }
    let Some(name) = &arguments.key else { return output::result(&schema::list()) };
    let found: Vec<String> = schema::find(name).into_iter().map(schema::help).collect();
    if found.is_empty() {
        let help = match diagnostic::nearest(name, schema::keys().map(|key| key.name)) {
            Some(near) => format!("did you mean {near}?"),
            None => "`sinnet help scenario` lists them all".to_owned(),
        };
        return Err(Failure::input(format!("no key of scenario files is called {name}: {help}")));
    }
    output::result(found.join("\n").trim_end())
}

fn of_command(topic: Option<&str>) -> Result<(), Failure> {
    let mut program = crate::Arguments::command();
    program.build();
    let Some(topic) = topic else { return output::result(program.render_long_help().to_string().trim_end()) };
    match program.find_subcommand_mut(topic) {
        Some(command) => output::result(command.render_long_help().to_string().trim_end()),
        None => Err(Failure::input(format!(
            "there is no command {topic}: `sinnet help` lists them, and `sinnet help scenario` the keys"
        ))),
    }
}
