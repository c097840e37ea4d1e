//! `tadoc mcp`: a server of the Model Context Protocol on standard input and output, or over HTTP, so that agents ask
//! corpora.
//!
//! ```text
//! messages ─▶ rmcp ─▶ handler ─┬─▶ tools: arguments ─▶ a statement ─▶ statements, in safe mode
//!    ▲                         ├─▶ passage: the lines of a document      │
//!    │                         └─▶ resources                             │
//!    └──────────────────────────── answer: rows as JSON, up to a size ◀──┘
//! ```
//!
//! `http` has the way over HTTP. On standard input a message is a line. Standard output carries nothing else, and
//! notes go to standard error. The statements of tools have the limits and the safe mode of `tadoc serve`. Texts of
//! documents are data: nothing reads them as statements. Arguments reach statements as parameters, so no text of a
//! client becomes SQL, but that of the tool `sql`.

mod answer;
mod arguments;
mod handler;
mod http;
mod messages;
mod passage;
mod source;
mod tools;

use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use rmcp::ServiceExt;
use rmcp::service::ServerInitializeError;
use tadoc_session::{Failure, Outcome, interrupt, note, runtime_of};
use tokio::sync::Notify;

use self::handler::Handler;
use self::http::HttpArguments;
use self::messages::Messages;
use self::source::Source;
use crate::REQUEST;
use crate::corpora::{Served, StatementLimits};
use crate::statements::{Statements, threads_of_statements};

/// Threads of messages.
const MESSAGE_THREADS: usize = 2;
/// Threads that read standard input and write standard output.
const MAX_STREAM_THREADS: usize = 8;
/// Maximum number of statements that wait, run or send rows.
const MAX_STATEMENTS: usize = 64;

/// Let agents ask corpora, over the Model Context Protocol
///
/// A client such as Claude Code or VS Code starts this command and speaks with it over standard input
/// and output. With --http it is a server that clients connect to. Each CORPUS has the name of its file.
/// Tools: search, grep, kwic, rank, read, list_documents, templates and sql. The server only reads, and
/// only these corpora.
#[derive(Args)]
#[command(disable_version_flag = true, after_long_help = EXAMPLES)]
pub struct Arguments {
    #[command(flatten)]
    served: Served,

    #[command(flatten)]
    limits: StatementLimits,

    #[command(flatten)]
    http: HttpArguments,
}

const EXAMPLES: &str = "\
Examples:
  claude mcp add notes -- tadoc mcp /home/me/notes.tadoc       Claude Code
  tadoc mcp law=laws.tadoc s3://bucket/tickets/                two corpora, law and tickets
  tadoc mcp --timeout 30s --memory-limit 2GiB notes.tadoc

Claude Desktop (claude_desktop_config.json):
  {\"mcpServers\": {\"notes\": {\"command\": \"tadoc\", \"args\": [\"mcp\", \"/home/me/notes.tadoc\"]}}}

VS Code (.vscode/mcp.json):
  {\"servers\": {\"notes\": {\"type\": \"stdio\", \"command\": \"tadoc\", \"args\": [\"mcp\", \"notes.tadoc\"]}}}

Clients start it in a folder of their own: name corpora by whole paths.

Over HTTP:
  tadoc mcp --http 127.0.0.1:8817 notes.tadoc
  claude mcp add --transport http notes http://127.0.0.1:8817/mcp
  {\"servers\": {\"notes\": {\"type\": \"http\", \"url\": \"http://127.0.0.1:8817/mcp\"}}}      VS Code

Exit status: 0 at the end of the input, or stopped by Ctrl-C or SIGTERM; 1 failed, 2 usage.";

/// Runs the command.
///
/// # Errors
/// A corpus cannot be opened, or the client does not speak the protocol.
pub fn run(arguments: &Arguments) -> Outcome {
    let server = arguments.http.server()?;
    let corpora = arguments.served.named()?;
    let names: Vec<String> = corpora.into_iter().map(|corpus| corpus.name).collect();
    let threads = threads_of_statements()?;
    let session = threads.block_on(arguments.served.open(arguments.limits.memory_of_process()))?;
    let limits = arguments.limits.for_statements(MAX_STATEMENTS);
    let statements = Statements::new(session, threads.handle().clone(), limits, Arc::default());
    let about = names.join(", ");
    let stop = interrupt::ask_twice();
    let handler = Handler::new(Source::new(statements, names));
    let served = match server {
        Some(server) => server.serve(handler, arguments.limits.timeout.saturating_add(REQUEST), stop),
        None => {
            note(format_args!("answering on standard input and output about {about}"));
            serve_streams(handler, &stop)
        }
    };
    // Dropping the runtime would wait for statements that never end.
    threads.shutdown_timeout(interrupt::GRACE);
    served
}

/// Answers messages on standard input and output.
fn serve_streams(handler: Handler, stop: &Notify) -> Outcome {
    let messages = runtime_of(MESSAGE_THREADS, MAX_STREAM_THREADS)?;
    let served = messages.block_on(serve(handler, stop));
    // Dropping the runtime would wait for a read of standard input.
    messages.shutdown_timeout(Duration::ZERO);
    served
}

/// Answers messages until the input ends, or until `stop` wakes.
async fn serve(handler: Handler, stop: &Notify) -> Outcome {
    tokio::select! {
        answered = answer_all(handler) => answered,
        () = stop.notified() => Ok(()),
    }
}

async fn answer_all(handler: Handler) -> Outcome {
    match handler.serve(Messages::new()).await {
        Ok(service) => match service.waiting().await {
            Ok(_) => Ok(()),
            Err(error) => Err(Failure::with_cause("answering messages", &error)),
        },
        // The input has ended before the first message.
        Err(ServerInitializeError::ConnectionClosed(_)) => Ok(()),
        Err(error) => Err(Failure::with_cause("the first messages of the client", &error)),
    }
}
