//! Tells the program what it is made of, as far as that decides results: a hash over the sources of this crate and of those that
//! it uses, and over the versions of others' crates.

#![allow(clippy::print_stdout, reason = "so Cargo is told")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

use sha2::{Digest, Sha256};

fn main() -> io::Result<()> {
    let here = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").ok_or(io::ErrorKind::NotFound)?);
    let root = here.ancestors().nth(2).unwrap_or(&here);
    let mut crates = BTreeSet::new();
    used(&here, &mut crates)?;
    let mut files = Vec::new();
    for one in &crates {
        files.push(one.join("Cargo.toml"));
        sources(&one.join("src"), &mut files)?;
    }
    // A package from a registry has no siblings: its version, with the sources of this crate, has to do.
    let lock = root.join("Cargo.lock");
    files.extend(lock.exists().then_some(lock));
    let mut hash = Sha256::new();
    for path in &files {
        println!("cargo::rerun-if-changed={}", path.display());
        let content = fs::read(path)?;
        for part in [path.strip_prefix(root).unwrap_or(path).to_string_lossy().as_bytes(), &content] {
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part);
        }
    }
    let program: String = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    println!("cargo::rustc-env=SINNET_PROGRAM={program}");
    Ok(())
}

/// The crate in `folder`, and those beside it that it uses.
fn used(folder: &Path, crates: &mut BTreeSet<PathBuf>) -> io::Result<()> {
    if !crates.insert(folder.to_owned()) {
        return Ok(());
    }
    let manifest = fs::read_to_string(folder.join("Cargo.toml"))?;
    let dependencies = manifest.split("[dependencies]").nth(1).unwrap_or_default();
    let dependencies = dependencies.split("\n[").next().unwrap_or_default();
    for name in dependencies.lines().filter_map(|line| line.split_once(".workspace")).map(|(name, _)| name.trim()) {
        let beside = folder.with_file_name(name);
        if beside.join("Cargo.toml").exists() {
            used(&beside, crates)?;
        }
    }
    Ok(())
}

/// All files in `folder` and below, in the order of their names. The folder is watched, too: a file may be added.
fn sources(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    println!("cargo::rerun-if-changed={}", folder.display());
    let mut entries = fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>()?;
    entries.sort();
    for path in entries {
        if path.is_dir() {
            sources(&path, files)?;
        } else {
            files.push(path);
        }
    }
    Ok(())
}
