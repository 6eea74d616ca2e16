//! A Model Context Protocol server over stdio: what an agent needs of flatout, as tools with small typed answers.
//!
//! - [`wire`]: JSON-RPC messages, one per line
//! - [`server`]: the loop: versions, requests, cancellation, what becomes of bad clients
//! - [`tools`]: one file per tool
//! - `jobs`: programs that `run` and `tune` started
//! - `paths`: paths of a call stay inside the server's folder
//! - `fit`: an answer that fits the reader's context
//!
//! The protocol is implemented here, over serde_json, and not by the `rmcp` crate: rmcp 3 with a stdio server brings 28 crates that
//! nothing else here needs (tokio, futures, tracing, schemars, uuid …, by `cargo tree`), for a loop that reads one line and writes one
//! line. Both eras of the protocol are served: revisions with an `initialize` handshake (2024-11-05 to 2025-11-25) and the stateless
//! one (2026-07-28).

mod fit;
mod jobs;
mod paths;
pub mod server;
pub mod tools;
pub mod wire;

pub use server::{Host, serve};
