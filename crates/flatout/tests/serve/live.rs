//! A running job: a real training under `flatout run`, seen in a real browser while it goes on.

use super::browser::{Browser, chromium};
use super::{Served, root};
use flatout_testing::torch_python;
use std::process::{Command, Stdio};

/// Trains until the file `stop` appears.
const TRAIN: &str = r#"
import os, time, torch
class Slow(torch.utils.data.Dataset):
    def __len__(self): return 100000
    def __getitem__(self, index):
        time.sleep(0.002)
        return torch.randn(16), torch.randn(1)
torch.set_num_threads(1)
model = torch.nn.Linear(16, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for x, y in torch.utils.data.DataLoader(Slow(), batch_size=8):
    loss = torch.nn.functional.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if os.path.exists("stop"): break
"#;

#[test]
fn chromium_follows_a_running_job() {
    let (Some(program), Some(python)) = (chromium(), torch_python()) else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("train.py"), TRAIN).unwrap();
    let served = Served::start(folder.path(), &[]);
    let mut browser = Browser::start(program);
    browser.size(1200, 900);
    browser.dark(false);
    browser.open(&served.link);
    assert_eq!(browser.value("document.querySelectorAll('.empty').length"), 1);

    let mut command = Command::new(env!("CARGO_BIN_EXE_flatout"));
    command
        .args(["run", "--name", "live", "--"])
        .arg(&python)
        .arg("train.py");
    command
        .current_dir(folder.path())
        .env("LANG", "C")
        .env_remove("LC_ALL")
        .env_remove("FLATOUT_HOME");
    command.env("PYTHONPATH", root().join("python"));
    let mut child = command
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();

    // The list shows it as soon as it begins, without loading the page again.
    browser.until(
        "document.querySelector('#rows tr[data-state=running] a')?.textContent === 'live'",
        "the new run",
    );
    assert_eq!(browser.value("document.querySelectorAll('.empty').length"), 0);
    browser.click("#rows a");
    browser.until("document.querySelector('#now .tiles')", "what happens now");
    let steps = "Number([...document.querySelectorAll('#now li')].find((tile) => tile.querySelector('span').textContent === 'steps')?.querySelector('b').textContent ?? 0)";
    browser.until(&format!("{steps} > 0"), "the first steps");
    let before = browser.value(steps).as_f64().unwrap();
    browser.value("window.kept = true");
    browser.until(&format!("{steps} > {before}"), "more steps");
    let version = browser.text("document.querySelector('#run').dataset.version");
    browser.until(
        &format!("document.querySelector('#run').dataset.version !== '{version}'"),
        "a new analysis",
    );
    // The account and the findings are those of the run so far.
    browser.until("[...document.querySelectorAll('h2')].some((title) => title.textContent.startsWith('Where step time goes'))", "the account");
    browser.until(
        "document.querySelectorAll('article.finding').length > 0",
        "findings",
    );
    browser.until(
        "document.querySelectorAll('#chart-rate svg .line').length > 0",
        "the charts",
    );
    browser.picture("live");

    std::fs::write(folder.path().join("stop"), "").unwrap();
    assert!(child.wait().unwrap().success());
    // Its end, still on the same page: nothing was loaded again.
    browser.until(
        "document.querySelector('#run').dataset.live === 'false' && !document.querySelector('#now .tiles')",
        "the end",
    );
    browser.until(
        "document.querySelector('header p').textContent.includes('done')",
        "the state",
    );
    assert_eq!(browser.value("window.kept"), true);
    assert!(browser.complaints.is_empty(), "{:?}", browser.complaints);
}
