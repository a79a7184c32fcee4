use std::{fs, path::Path};

use crate::{
    invocation::Invocation,
    metadata::{Metadata, root},
};

const SOURCE: &str = "tests/interop";

/// What says which packages are wanted. Copies of these, put beside the packages when all are installed, say which are
/// there; the tests compare them.
const LOCKS: [&str; 2] = ["package-lock.json", "requirements.txt"];

/// Installs the senders' own libraries, that the `interop` tests sign and verify with, below the target directory.
/// Nothing when they are there.
pub(crate) fn install(metadata: &Metadata) -> Vec<Invocation> {
    let folder = metadata.target_directory.join("interop");
    if up_to_date(&root().join(SOURCE), &folder) {
        return Vec::new();
    }
    plan(&folder)
}

fn up_to_date(source: &Path, folder: &Path) -> bool {
    LOCKS.iter().all(|lock| {
        let wanted = fs::read(source.join(lock));
        let there = fs::read(folder.join(lock));
        matches!((wanted, there), (Ok(wanted), Ok(there)) if wanted == there)
    })
}

fn plan(folder: &Path) -> Vec<Invocation> {
    let folder = folder.display();
    let (node, python) = (format!("{folder}/node"), format!("{folder}/python"));
    let source = |file| format!("{SOURCE}/{file}");
    vec![
        // What is there may be half of it, or of other versions.
        Invocation::new("rm -rf").arg(folder.to_string()),
        Invocation::new("mkdir -p").arg(&node),
        Invocation::new("cp")
            .arg(source("package.json"))
            .arg(source(LOCKS[0]))
            .arg(&node),
        // No package gets to run anything.
        Invocation::new("npm ci --ignore-scripts --no-audit --no-fund --prefix").arg(&node),
        Invocation::new("python3 -m venv").arg(&python),
        Invocation::of(format!("{python}/bin/python"))
            .arg("-m")
            .arg("pip")
            .arg("install")
            .arg("--quiet")
            .arg("--disable-pip-version-check")
            .arg("--only-binary=:all:")
            .arg("--require-hashes")
            .arg("--requirement")
            .arg(source(LOCKS[1])),
        Invocation::new("cp")
            .arg(source(LOCKS[0]))
            .arg(source(LOCKS[1]))
            .arg(folder.to_string()),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_is_left_alone_and_anything_else_is_installed_anew() {
        let source = root().join(SOURCE);
        assert!(up_to_date(&source, &source));
        assert!(!up_to_date(&source, &root().join("no-such-folder")));
        assert!(!up_to_date(&root().join("no-such-folder"), &source));
    }

    #[test]
    fn the_locks_are_put_beside_the_packages_last() {
        let lines: Vec<String> = plan(Path::new("/a b"))
            .iter()
            .map(Invocation::to_string)
            .collect();
        assert_eq!(lines[0], "rm -rf '/a b'");
        assert_eq!(
            lines[3],
            "npm ci --ignore-scripts --no-audit --no-fund --prefix '/a b/node'"
        );
        assert_eq!(
            lines.last().unwrap(),
            "cp tests/interop/package-lock.json tests/interop/requirements.txt '/a b'"
        );
    }
}
